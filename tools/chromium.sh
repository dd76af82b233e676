#!/usr/bin/env bash
# Makes sure that there is a Chromium for the browser tests. Run by `make test`.
set -euo pipefail
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium for the browser tests" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null
    apt-get install -y -qq --no-install-recommends chromium >/dev/null
    command -v chromium >/dev/null && exit 0
fi
echo "tests: no Chromium found, and the dashboard's tests need one" >&2
echo "fix:   sudo apt-get install chromium" >&2
exit 1
