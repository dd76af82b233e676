import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { buildStamp } from "./scripts/build-stamp.ts";

const root = fileURLToPath(new URL(".", import.meta.url));
const output = fileURLToPath(new URL("../static", import.meta.url));

export default defineConfig({
  // Relative addresses: the dashboard works behind any path prefix of a reverse proxy.
  base: "./",
  plugins: [buildStamp(root, output)],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: output,
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    // Inlined assets would need a wider content security policy.
    assetsInlineLimit: 0,
  },
  server: { proxy: { "/search": "http://127.0.0.1:8000" } },
  test: {
    environment: "happy-dom",
    environmentOptions: { happyDOM: { url: "http://127.0.0.1:8000/dashboard/" } },
    include: ["tests/**/*.test.{ts,tsx}"],
  },
});
