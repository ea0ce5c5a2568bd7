"""Runs clang-tidy over the sources of the product, with the checks of .clang-tidy that are errors.

    python3 -B test/house/tidy.py --build build/release [--since REVISION] [--jobs 2]

--since: only sources that differ from that revision, or include a header beside them that does. With FJORD_UNITY the
compiler reads eight sources as one file, and so does clang-tidy: that is four times as fast. A fault is named by the source
that it is in. Without clang-tidy the run is skipped, with 77. Prints the faults, and ends with 1 if there is one.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("clang-tidy-14", "clang-tidy")
SKIPPED = 77
# The command is for g++: clang knows neither its precompiled headers nor all of its warnings.
WITHOUT = re.compile(r"-W|-fpch|-g|-O|-fdiagnostics")


def checks():
    """Returns the checks that .clang-tidy declares to be errors."""
    text = (ROOT / ".clang-tidy").read_text(encoding="utf-8")
    listed = re.search(r"WarningsAsErrors: >\n((?:  .*\n)+)", text).group(1)
    return ",".join(part.strip() for part in listed.split(",") if part.strip())


def program():
    for name in PROGRAMS:
        for folder in os.environ["PATH"].split(os.pathsep):
            if os.access(os.path.join(folder, name), os.X_OK):
                return name
    return None


def sources_of(file):
    """Returns the sources of the repository that a compilation reads: one, or those that a unity file includes."""
    if "/Unity/" not in file:
        return [file]
    return re.findall(r'#include "([^"]+\.cpp)"', pathlib.Path(file).read_text(encoding="utf-8"))


def compilations(build):
    """Returns (file, sources, options of the compiler) for each file of the product that is compiled."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        file = entry["file"]
        sources = [str(pathlib.Path(name).relative_to(ROOT)) for name in sources_of(file) if name.startswith(f"{ROOT}/")]
        if not sources or any(name.startswith(("build/", "test/", "bench/", "cmake/", "api/")) for name in sources):
            continue
        words = shlex.split(entry["command"])
        options, skip = [], False
        for word in words[next(i for i, word in enumerate(words) if re.search(r"(\+\+|cc)(-\d+)?$", word)) + 1:]:
            if skip:
                skip = False
            elif word in ("-o", "-MF", "-MT", "-c", "-include"):
                skip = True
            elif word != "-MD" and not WITHOUT.match(word):
                options.append(word)
        found[file] = (sources, options)
    return found


def changed_since(revision):
    run = subprocess.run(["git", "-c", "safe.directory=*", "diff", "--name-only", revision, "--", "*.cpp", "*.h"], cwd=ROOT,
                         capture_output=True, text=True, check=True)
    return {name.rsplit(".", 1)[0] for name in run.stdout.splitlines()}


def check(name, file, options):
    command = [name, "--quiet", f"--checks=-*,{checks()}", "--warnings-as-errors=*", file, "--", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return run.returncode, run.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--since", help="only what differs from this revision")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    name = program()
    if name is None:
        print("SKIPPED: there is no clang-tidy; Debian's package clang-tidy-14 has it")
        return SKIPPED
    files = compilations(options.build)
    if options.since:
        changed = changed_since(options.since)
        files = {file: one for file, one in files.items() if any(source.rsplit(".", 1)[0] in changed for source in one[0])}
    faults = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(check, name, file, one[1]) for file, one in sorted(files.items())]
        for run in concurrent.futures.as_completed(runs):
            status, text = run.result()
            if status != 0:
                faults += 1
                print(text.replace(f"{ROOT}/", ""))
    print(f"{len(files)} compilations, {faults} with faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
