#!/usr/bin/env python3
"""Puts each bug of a table into a copy of the sources and checks that the tests notice it.

`./run mutants [storage|cluster|visiting|balancing|library|search|http]` calls this: mutants.tsv (the storage engine), cluster.tsv,
visiting.tsv, balancing.tsv, library.tsv (the client library, the programs), search.tsv, http.tsv (the HTTP gateway), or all. A test is a test
program, a run of fjord-sim with its arguments, or a script of test/integration; those of a row are tried in order until
one fails. `--sample N --seed S` draws N of the rows. The copy and its build are in build/mutants, so that a run after the first builds
little. A run of few rows compiles the sources in the groups of build/release, so that its first build finds most in the compiler cache;
one of many compiles each source by itself, so that each row compiles little.
Exit code 1: a bug was not noticed, or the text it should replace is not there once. `--texts` looks at the latter only.
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"
BUILD = COPY / "build" / "release"
TABLES = {"storage": "mutants.tsv", "cluster": "cluster.tsv", "visiting": "visiting.tsv", "balancing": "balancing.tsv",
          "library": "library.tsv", "search": "search.tsv", "http": "http.tsv"}
PROGRAMS = ["fjord", "fjordd"]
FEW = 150  # Rows; with more, what a group compiles too much is longer than a first build without the compiler cache.


def run(*command, **options):
    return subprocess.run(command, check=True, **options)


def copy_sources():
    """Writes only the files that differ, so that the others keep their times and are not compiled again."""
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


def programs_of(test):
    """What has to be built for the test. A script of test/integration uses the programs."""
    name = test.split()[0]
    return [f"bin/{program}" for program in PROGRAMS] if name.endswith(".py") else [name]


def build(programs):
    return subprocess.run(["nice", "-n", "5", "ninja", "-C", BUILD, *programs], capture_output=True, text=True)


def fails(test, seconds):
    """True if the test fails or never ends."""
    name, *arguments = test.split()
    if name.endswith(".py"):
        command = [sys.executable, "-B", COPY / name, *arguments]
        environment = {**os.environ, "FJORD_BIN": str(BUILD / "bin")}
        try:
            return subprocess.run(command, capture_output=True, timeout=seconds, env=environment).returncode != 0
        except subprocess.TimeoutExpired:
            return True
    program = next(path for path in BUILD.rglob(name) if path.is_file() and os.access(path, os.X_OK))
    try:
        return subprocess.run([program, *arguments], capture_output=True, timeout=seconds, cwd=program.parent).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def judge(tests, seconds):
    """Returns the test that notices the bug in the copy; None: none does."""
    for test in tests:
        built = build(programs_of(test))
        if built.returncode != 0:
            return "CANNOT", "it does not compile: " + built.stdout[-400:]
        if fails(test, seconds):
            return "noticed", test
    return "MISSED", ""


def try_one(file, text, replacement, tests, seconds):
    target = COPY / file
    before = target.read_text()
    if before.count(text) != 1:
        return "CANNOT", f"the text is in {file} {before.count(text)} times"
    try:
        target.write_text(before.replace(text, replacement))
        return judge(tests, seconds)
    finally:
        target.write_text(before)


def check_without_bugs(mutants, seconds):
    every = sorted({test for *_, tests in mutants for test in tests.split("|")})
    clean = build(sorted({program for test in every for program in programs_of(test)}))
    if clean.returncode != 0:
        sys.exit(clean.stdout[-3000:])
    for test in every:
        if fails(test, seconds):
            sys.exit(f"mutants: {test} fails without any bug put in")


def check_texts(mutants):
    """Checks that the tables match the sources."""
    gone = [f"{name}: the text is in {file} {times} times" for name, file, text, *_ in mutants
            if (times := (ROOT / file).read_text().count(text) if (ROOT / file).is_file() else 0) != 1]
    print("\n".join(gone + [f"mutants: {len(mutants) - len(gone)} of {len(mutants)} have their place"]))
    sys.exit(1 if gone else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="storage, cluster, visiting, balancing, library, search, http; all if there is none")
    parser.add_argument("--only", help="those with this in their names")
    parser.add_argument("--sample", type=int, metavar="N", help="N rows that are drawn at random; all if there are fewer")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--seconds", type=int, default=300, help="a test that takes longer has noticed (300)")
    parser.add_argument("--unchecked", action="store_true", help="do not run all tests without any bug first")
    parser.add_argument("--texts", action="store_true", help="only see that each text to be replaced is in the sources once")
    options = parser.parse_args()
    mutants = []
    for table in options.tables or TABLES:
        if table not in TABLES:
            parser.error(f"there is no table {table}; there are: {', '.join(TABLES)}")
        mutants += read_mutants(pathlib.Path(__file__).with_name(TABLES[table]))
    if options.only:
        mutants = [mutant for mutant in mutants if options.only in mutant[0]]
    if options.sample is not None:
        mutants = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    if options.texts:
        check_texts(mutants)
    copy_sources()
    run("cmake", "--preset", "release", f"-DFJORD_UNITY={'ON' if len(mutants) <= FEW else 'OFF'}", f"-DFJORD_SHARED_DIR={ROOT.parent / 'shared'}", cwd=COPY, stdout=subprocess.DEVNULL)
    if not options.unchecked:
        check_without_bugs(mutants, options.seconds)
    counts = {}
    for name, file, text, replacement, tests in mutants:
        verdict, why = try_one(file, text, replacement, tests.split("|"), options.seconds)
        counts[verdict] = counts.get(verdict, 0) + 1
        print(f"{verdict:8} {name}" + (f" ({why})" if why else ""), flush=True)
    noticed = counts.get("noticed", 0)
    print(f"mutants: {noticed} of {len(mutants)} noticed")
    sys.exit(1 if noticed < len(mutants) else 0)


if __name__ == "__main__":
    main()
