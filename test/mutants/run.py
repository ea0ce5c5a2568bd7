#!/usr/bin/env python3
"""Puts each bug of mutants.tsv into a copy of the sources and checks that the tests notice it.

`./run mutants` calls this. The copy and its build are in build/mutants, so that a run after the first builds little.
Exit code 1: a bug was not noticed, or the text it should replace is not there once.
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants" / "src"
BUILD = ROOT / "build" / "mutants" / "build"


def run(*command, **options):
    return subprocess.run(command, check=True, **options)


def copy_sources():
    """Only what differs is written, so that files keep their times and are not compiled again."""
    names = run("git", "-C", ROOT, "ls-files", "-z", capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source, target = ROOT / name, COPY / name
        if not source.is_file():
            continue
        content = source.read_bytes()
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(source.stat().st_mode)


def read_mutants(path):
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, file, text, replacement, tests = line.split("\t")
            yield name, file, text, replacement, tests


def build(tests):
    return subprocess.run(["ninja", "-C", BUILD, *tests.split("|")], capture_output=True, text=True)


def noticed(tests, seconds):
    """True if one of the tests fails, or never ends."""
    for test in tests.split("|"):
        program = next(path for path in BUILD.rglob(test) if path.is_file() and os.access(path, os.X_OK))
        try:
            code = subprocess.run([program], capture_output=True, timeout=seconds, cwd=program.parent).returncode
        except subprocess.TimeoutExpired:
            code = 1
        if code != 0:
            return test
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="those with this in their names")
    parser.add_argument("--seconds", type=int, default=300, help="a test that takes longer has noticed (300)")
    options = parser.parse_args()
    mutants = list(read_mutants(pathlib.Path(__file__).with_name("mutants.tsv")))
    copy_sources()
    run("cmake", "-S", COPY, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        f"-DFJORD_SHARED_DIR={ROOT.parent / 'shared'}", stdout=subprocess.DEVNULL)
    every = "|".join(sorted({test for *_, tests in mutants for test in tests.split("|")}))
    clean = build(every)
    if clean.returncode != 0:
        sys.exit(clean.stdout[-3000:])
    if test := noticed(every, options.seconds):
        sys.exit(f"mutants: {test} fails without any bug put in")
    missed = 0
    for name, file, text, replacement, tests in mutants:
        if options.only and options.only not in name:
            continue
        target = COPY / file
        before = target.read_text()
        if before.count(text) != 1:
            print(f"CANNOT   {name}: the text is in {file} {before.count(text)} times", flush=True)
            missed += 1
            continue
        try:
            target.write_text(before.replace(text, replacement))
            built = build(tests)
            test = "the compiler" if built.returncode != 0 else noticed(tests, options.seconds)
        finally:
            target.write_text(before)
        missed += test is None
        print(f"{'noticed ' if test else 'MISSED  '} {name}" + (f" ({test})" if test else ""), flush=True)
    print(f"mutants: {missed} not noticed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
