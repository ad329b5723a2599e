// Bundles the editor: node build.js FOLDER TARGET, where FOLDER has node_modules. The licences of all that is in the
// bundle stand at its top.

import { createRequire } from "node:module";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [folder, target] = process.argv.slice(2).map((one) => resolve(one));
const { buildSync } = createRequire(join(folder, "package.json"))("esbuild");
const built = buildSync({
  absWorkingDir: folder,
  entryPoints: [join(here, "editor.js")],
  nodePaths: [join(folder, "node_modules")],
  bundle: true,
  charset: "ascii",
  format: "esm",
  legalComments: "none",
  metafile: true,
  minify: true,
  target: "es2022",
  write: false,
});

const used = new Set();
for (const path of Object.keys(built.metafile.inputs)) {
  const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
  if (name) {
    used.add(name);
  }
}
const byLicence = new Map();
for (const name of [...used].sort()) {
  const own = join(folder, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(own, "package.json"), "utf-8"));
  const file = readdirSync(own).find((one) => /^licen[cs]e/i.test(one));
  if (!file) {
    throw new Error(`${name} has no licence in its package; do not bundle it`);
  }
  const text = readFileSync(join(own, file), "utf-8").replace(/\r/g, "").replace(/ <[^>]*@[^>]*>/g, "").trim();
  byLicence.set(text, [...(byLicence.get(text) ?? []), `${name} ${version}`]);
}
const notices = [...byLicence].map(([text, names]) => `${names.join(", ")}\n\n${text}`);
const head = `/*! Made by scripts/editor, not to be edited. It contains:\n\n${notices.join("\n\n----\n\n")}\n*/\n`;
writeFileSync(target, head + built.outputFiles[0].text);
