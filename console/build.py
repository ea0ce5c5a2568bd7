"""Makes the file assets.cpp, which holds the console, of the sources in page/.

Runs `npm ci` in the output folder if the lock file is new there, makes types of the answers from the description of the HTTP paths
(openapi.d.ts), then runs bundle.mjs. If node, npm or the npm registry is missing, it prints one line and makes an assets.cpp without a
console. A fault in page/ is an error.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent
DESCRIPTION = SOURCE.parent / "gateway" / "http" / "openapi.yaml"
NPM_FILES = ["package.json", "package-lock.json", ".npmrc"]
NPM_SECONDS = 300
BYTES_PER_LINE = 40


def write_if_changed(path, text):
    """An unchanged file keeps its time, so that nothing is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def literal(text):
    return json.dumps(text)


def bytes_of(data):
    lines = (data[at:at + BYTES_PER_LINE] for at in range(0, len(data), BYTES_PER_LINE))
    return "\n".join("    " + "".join(f"{byte}," for byte in line) for line in lines)


def assets_source(files, why_missing):
    """Returns the text of assets.cpp. `files`: those that bundle.mjs describes."""
    arrays, rows = [], []
    for number, file in enumerate(files):
        data = pathlib.Path(file["path"]).read_bytes()
        arrays.append(f"constexpr unsigned char kFile{number}[] = {{\n{bytes_of(data)}\n}};\n")
        rows.append(f'    {{{literal(file["name"])}, {literal(file["contentType"])}, {literal(file["etag"])}, '
                    f'{"true" if file["isImmutable"] else "false"}, text_of(kFile{number}, sizeof kFile{number})}},\n')
    table = f"const fjord::console::Asset kAssets[] = {{\n{''.join(rows)}}};\n" if rows else ""
    text_of = ("std::string_view text_of(const unsigned char* bytes, std::size_t count) {\n"
               "  return {reinterpret_cast<const char*>(bytes), count};\n}\n") if rows else ""
    returned = "kAssets" if rows else "{}"
    return f"""// Made by console/build.py.
#include "fjord/console/assets.h"

#include <cstddef>

namespace {{
{''.join(arrays)}{text_of}{table}}}  // namespace

std::span<const fjord::console::Asset> fjord::console::assets() {{ return {returned}; }}
std::string_view fjord::console::why_missing() {{ return {literal(why_missing)}; }}
"""


def leave_out(output, why):
    print(f"console: left out of this build, as {why}; console/README.md says how to get it", file=sys.stderr)
    write_if_changed(output / "assets.cpp", assets_source([], why))
    (output / "complete.stamp").unlink(missing_ok=True)


def install(npm, folder):
    """Fetches the libraries that the lock file names. Returns why that is not possible; empty: they are there."""
    wanted = hashlib.sha256(b"".join((SOURCE / name).read_bytes() for name in NPM_FILES)).hexdigest()
    installed = folder / "node_modules" / "installed"
    if installed.exists() and installed.read_text() == wanted:
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NPM_FILES:
        shutil.copy(SOURCE / name, folder / name)
    try:
        done = subprocess.run([npm, "ci", "--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=1000",
                               "--fetch-timeout=30000"], cwd=folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=NPM_SECONDS)
    except subprocess.TimeoutExpired:
        return f"npm ci took longer than {NPM_SECONDS} s"
    except OSError as error:
        return f"npm does not start: {error}"
    if done.returncode != 0:
        reasons = [line for line in done.stderr.splitlines() if "npm error" in line or "npm ERR!" in line]
        return f"npm ci failed: {' '.join(reasons[:2]) or done.stderr.strip()[-200:]}".replace("\n", " ")
    installed.write_text(wanted)
    return ""


def make_types(node, folder):
    """Makes openapi.d.ts beside node_modules from the description of the HTTP paths. Returns the exit code."""
    wanted = hashlib.sha256(DESCRIPTION.read_bytes() + (folder / "node_modules" / "installed").read_bytes()).hexdigest()
    made, stamp = folder / "openapi.d.ts", folder / "openapi.stamp"
    if made.exists() and stamp.exists() and stamp.read_text() == wanted:
        return 0
    program = folder / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
    done = subprocess.run([node, program, DESCRIPTION, "--output", made], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
        return done.returncode
    stamp.write_text(wanted)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--node", required=True)
    parser.add_argument("--npm", required=True)
    parser.add_argument("--left-out", default="", help="why the console is not built; empty: it is")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    folder = options.output / "npm"
    why = options.left_out or install(options.npm, folder)
    if why:
        leave_out(options.output, why)
        return 0
    # The page is a folder beside node_modules, so that its imports are found there.
    page = folder / "page"
    if not page.is_symlink():
        page.symlink_to(SOURCE / "page")
    if make_types(options.node, folder) != 0:
        return 1
    bundled = subprocess.run([options.node, SOURCE / "bundle.mjs", folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             text=True, env={**os.environ, "NODE_ENV": "production"})
    if bundled.returncode != 0:
        return bundled.returncode
    made = json.loads(bundled.stdout)
    write_if_changed(options.output / "assets.cpp", assets_source(made, ""))
    (options.output / "complete.stamp").write_text("")
    return 0


if __name__ == "__main__":
    sys.exit(main())
