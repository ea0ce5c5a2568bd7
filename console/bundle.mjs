// Bundles page/ into the files of the console, compresses them, and prints what they are as JSON.
// Usage: node bundle.mjs FOLDER, where FOLDER has page/ and node_modules/.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const folder = resolve(process.argv[2]);
const esbuild = createRequire(join(folder, "package.json"))("esbuild");
const out = join(folder, "dist");
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

const contentTypes = {
  ".html": "text/html; charset=UTF-8",
  ".js": "text/javascript; charset=UTF-8",
  ".css": "text/css; charset=UTF-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=UTF-8",
};

let built;
try {
  built = await esbuild.build({
    entryPoints: [join(folder, "page/main.tsx"), join(folder, "page/style.css"), join(folder, "page/icon.svg")],
    outdir: out,
    entryNames: "[name]-[hash]",
    absWorkingDir: folder,
    preserveSymlinks: true,
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: ["chrome123", "firefox121", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".svg": "copy" },
    define: { "process.env.NODE_ENV": '"production"' },
    legalComments: "none",
    logLevel: "warning",
  });
} catch {
  process.exit(1); // esbuild has said why.
}

const files = built.outputFiles.map((file) => ({ name: basename(file.path), contents: Buffer.from(file.contents) }));
const nameOf = (ending) => files.find((file) => file.name.endsWith(ending)).name;
const html = readFileSync(join(folder, "page/index.html"), "utf8")
  .replaceAll("{{style}}", nameOf(".css"))
  .replaceAll("{{script}}", nameOf(".js"))
  .replaceAll("{{icon}}", nameOf(".svg"));
files.push({ name: "index.html", contents: Buffer.from(html) });

// What is copied into the script carries its license with it.
const licenseOf = (name) => {
  const files = join(folder, "node_modules", name);
  return readFileSync(join(files, readdirSync(files).find((file) => /^LICENSE/.test(file))), "utf8");
};
const licenses = ["lossless-json", "preact", "uplot"].map((name) => `${name}\n\n${licenseOf(name)}`);
files.push({ name: "licenses.txt", contents: Buffer.from(licenses.join("\n\n")) });

const described = files.map(({ name, contents }) => {
  const path = join(out, `${name}.gz`);
  writeFileSync(path, gzipSync(contents, { level: 9 }));
  return {
    name,
    path,
    contentType: contentTypes[name.slice(name.lastIndexOf("."))],
    etag: `"${createHash("sha256").update(contents).digest("hex").slice(0, 16)}"`,
    isImmutable: /-[0-9A-Z]{8}\./.test(name),
  };
});
console.log(JSON.stringify(described));
