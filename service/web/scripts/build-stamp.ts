/**
 * Writes `build.json` next to the built files: a digest of everything the build was made from, and one of every file
 * it made. `tests/service/test_static.py` recomputes both without Node, so a stale or edited build is noticed.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import type { Plugin } from "vite";

/** What the build reads, relative to `service/web`; folders count with everything in them. */
const SOURCES = [
  "index.html",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "vite.config.ts",
  "public",
  "scripts",
  "src",
];

const STAMP = "build.json";

function sha256(...parts: (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .sort(byBytes);
}

/** One line per source file, `<sha256 of its bytes>  <path>\n`, sorted by path; the digest of those lines. */
function sourceDigest(root: string): string {
  const lines = SOURCES.flatMap((source) =>
    source.includes(".") ? [source] : filesUnder(join(root, source)).map((path) => `${source}/${path}`),
  )
    .sort(byBytes)
    .map((path) => `${sha256(readFileSync(join(root, path)))}  ${path}\n`);
  return sha256(lines.join(""));
}

export function buildStamp(root: string, output: string): Plugin {
  return {
    name: "build-stamp",
    apply: "build",
    closeBundle() {
      const files = Object.fromEntries(
        filesUnder(output)
          .filter((path) => path !== STAMP)
          .map((path) => [path, sha256(readFileSync(join(output, path)))]),
      );
      const stamp = { sources: sourceDigest(root), files };
      writeFileSync(join(output, STAMP), `${JSON.stringify(stamp, null, 2)}\n`);
    },
  };
}
