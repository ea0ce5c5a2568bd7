// Checks the sources of the console.
// Usage: node run.mjs types|functions FOLDER, where FOLDER is the one in which console/build.py has installed the libraries.

import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [part, given] = process.argv.slice(2);
const folder = resolve(given);
const here = dirname(fileURLToPath(import.meta.url));
if (!existsSync(join(folder, "node_modules", "installed"))) {
  console.log("SKIPPED: the console was left out of this build");
  process.exit(77);
}

function run(...words) {
  const ended = spawnSync(process.execPath, words, { cwd: folder, stdio: "inherit" });
  process.exit(ended.status ?? 1);
}

if (part === "types") {
  const config = join(folder, "tsconfig.json");
  writeFileSync(config, JSON.stringify({ extends: resolve(here, "../../console/tsconfig.json"), include: ["page"], compilerOptions: { preserveSymlinks: true } }));
  run(join(folder, "node_modules/typescript/bin/tsc"), "-p", config, "--pretty", "false");
} else {
  const esbuild = createRequire(join(folder, "package.json"))("esbuild");
  const out = join(folder, "functions_test.mjs");
  esbuild.buildSync({
    entryPoints: [join(here, "functions_test.mjs")],
    outfile: out,
    bundle: true,
    platform: "node",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    preserveSymlinks: true,
    alias: { "#page": join(folder, "page") },
    nodePaths: [join(folder, "node_modules")],
    // What a browser has and Node.js has not, for modules that look at it when they are loaded.
    banner: { js: 'globalThis.matchMedia = () => ({ addEventListener() {} }); globalThis.devicePixelRatio = 1;' },
  });
  run("--test", out);
}
