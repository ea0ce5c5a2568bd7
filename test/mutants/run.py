#!/usr/bin/env python3
"""Puts each bug of a table into a copy of the sources and checks that the tests notice it.

`./run mutants [storage|cluster|visiting|balancing|library|search|http]` calls this: mutants.tsv (the storage engine), cluster.tsv,
visiting.tsv, balancing.tsv, library.tsv (the client library, the programs), search.tsv, http.tsv (the HTTP gateway), or all. A test is a test
program, a run of fjord-sim with its arguments, or a script of test/integration; those of a row are tried in order until
one fails. `--sample N --seed S` draws N of the rows. The copy and its build are in build/mutants, so that a run after the first builds
little. A run of few rows builds as build/release is built, so that its first build finds most in the compiler cache; one of many
compiles each source by itself, so that each row compiles little. While a row is built, the rows before it are tested.
`--log FILE` keeps the verdicts, and a run with the same file tries only the rows that are not in it.
Exit code 1: a bug was not noticed, or the text it should replace is not there once. `--texts` looks at the latter only.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

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


def program_of(name):
    return next(path for path in BUILD.rglob(name) if path.is_file() and os.access(path, os.X_OK))


def copy_programs(tests, folder):
    """Copies what the tests start, because the next build replaces it."""
    for name in {test.split()[0] for test in tests}:
        if not name.endswith(".py"):
            shutil.copy2(program_of(name), folder)
        elif not (folder / "bin").exists():
            (folder / "bin").mkdir()
            # The Python package and its interpreter, where ./run test has made them: no row is about them.
            (folder / "python").symlink_to(ROOT / "build" / "release" / "python")
            environment = COPY / "build" / "test-python"
            if not environment.is_symlink():
                environment.symlink_to(ROOT / "build" / "test-python")
            for program in (BUILD / "bin").iterdir():
                if program.name in PROGRAMS:
                    shutil.copy2(program, folder / "bin")
                else:
                    (folder / "bin" / program.name).symlink_to(program)


def fails(test, seconds, folder):
    """True if the test fails or never ends. The programs that it starts are in `folder`."""
    name, *arguments = test.split()
    environment = dict(os.environ)
    where = None
    if name.endswith(".py"):
        environment |= {"FJORD_BIN": str(folder / "bin"), "FJORD_SHARED_DIR": str(ROOT.parent / "shared"),
                        "FJORD_GENERATED_PYTHON": str(BUILD / "test" / "integration" / "python" / "gen-py")}
        command = [sys.executable, "-B", COPY / name, *arguments]
    else:
        command = [folder / name, *arguments]
        where = program_of(name).parent
        if name == "fjord-sim":
            command.append("--expect-failure")  # It stops at the first seed that fails.
    try:
        code = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds, cwd=where, env=environment
        ).returncode
    except subprocess.TimeoutExpired:
        return True
    return code <= 0 if name == "fjord-sim" else code != 0


def first_that_fails(tests, seconds, folder):
    with folder:
        return next((test for test in tests if fails(test, seconds, pathlib.Path(folder.name))), None)


def build_and_copy(tests):
    """Returns a temporary folder with the programs of the tests. Errors: ValueError if they cannot be built."""
    built = build(sorted({program for test in tests for program in programs_of(test)}))
    if built.returncode != 0:
        raise ValueError("it does not compile: " + built.stdout[-400:])
    folder = tempfile.TemporaryDirectory(prefix="fjord-mutant-")
    copy_programs(tests, pathlib.Path(folder.name))
    return folder


def build_with_bug(file, text, replacement, tests):
    """As build_and_copy(), with the bug in the copy. Errors: ValueError."""
    target = COPY / file
    before = target.read_text()
    if before.count(text) != 1:
        raise ValueError(f"the text is in {file} {before.count(text)} times")
    try:
        target.write_text(before.replace(text, replacement))
        return build_and_copy(tests)
    finally:
        target.write_text(before)


def try_all(mutants, seconds, jobs, report):
    """Calls report(name, verdict, why) for each row, not in their order."""
    with concurrent.futures.ThreadPoolExecutor(2 * jobs) as pool:  # Some tests wait, and some do not end with a bug.
        running = {}

        def report_ended(limit):
            while len(running) > limit:
                for ended in concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED).done:
                    noticed_by = ended.result()
                    report(running.pop(ended), "noticed" if noticed_by else "MISSED", noticed_by or "")

        for name, file, text, replacement, tests in mutants:
            try:
                folder = build_with_bug(file, text, replacement, tests.split("|"))
            except ValueError as error:
                report(name, "CANNOT", str(error))
                continue
            running[pool.submit(first_that_fails, tests.split("|"), seconds, folder)] = name
            report_ended(3 * jobs)
        report_ended(0)


def check_without_bugs(mutants, seconds, jobs):
    every = sorted({test for *_, tests in mutants for test in tests.split("|")})
    try:
        folder = build_and_copy(every)
    except ValueError as error:
        sys.exit(str(error))
    with folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        outcomes = pool.map(lambda test: fails(test, seconds, pathlib.Path(folder.name)), every)
        failed = [test for test, is_failed in zip(every, outcomes) if is_failed]
    if failed:
        sys.exit(f"mutants: without any bug put in, these fail: {', '.join(failed)}")


def check_texts(mutants):
    """Checks that the tables match the sources."""
    gone = [f"{name}: the text is in {file} {times} times" for name, file, text, *_ in mutants
            if (times := (ROOT / file).read_text().count(text) if (ROOT / file).is_file() else 0) != 1]
    print("\n".join(gone + [f"mutants: {len(mutants) - len(gone)} of {len(mutants)} have their place"]))
    sys.exit(1 if gone else 0)


def read_log(path):
    """Returns the verdicts of an earlier run, by name."""
    if path is None or not path.is_file():
        return {}
    return dict(reversed(line.split("\t")[:2]) for line in path.read_text().splitlines())


def configure(is_many):
    options = {"FJORD_UNITY": "OFF" if is_many else "ON", "FJORD_SHARED_DIR": ROOT.parent / "shared"}
    run("cmake", "--preset", "release", *(f"-D{name}={value}" for name, value in options.items()), cwd=COPY,
        stdout=subprocess.DEVNULL)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="storage, cluster, visiting, balancing, library, search, http; all if there is none")
    parser.add_argument("--only", help="those with this in their names")
    parser.add_argument("--sample", type=int, metavar="N", help="N rows that are drawn at random; all if there are fewer")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--seconds", type=int, default=200, help="a test that takes longer has noticed (200)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="half of the tests at a time (the number of processors)")
    parser.add_argument("--log", type=pathlib.Path, metavar="FILE", help="add the verdicts to FILE; leave out the rows that it has")
    parser.add_argument("--unchecked", action="store_true", help="do not run all tests without any bug first")
    parser.add_argument("--texts", action="store_true", help="only see that each text to be replaced is in the sources once")
    options = parser.parse_args()
    unknown = [table for table in options.tables if table not in TABLES]
    if unknown:
        parser.error(f"there is no table {unknown[0]}; there are: {', '.join(TABLES)}")
    return options


def main():
    options = parse_options()
    tables = [pathlib.Path(__file__).with_name(TABLES[table]) for table in options.tables or TABLES]
    mutants = [mutant for table in tables for mutant in read_mutants(table) if (options.only or "") in mutant[0]]
    if options.sample is not None:
        mutants = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    if options.texts:
        check_texts(mutants)
    known = read_log(options.log)
    verdicts = [known[name] for name, *_ in mutants if name in known]
    left = [mutant for mutant in mutants if mutant[0] not in known]
    copy_sources()
    configure(len(left) > FEW)
    if left and not options.unchecked:
        check_without_bugs(left, options.seconds, options.jobs)

    def report(name, verdict, why):
        verdicts.append(verdict)
        print(f"{verdict:8} {name}" + (f" ({why})" if why else ""), flush=True)
        if options.log:
            with options.log.open("a") as log:
                log.write(f"{verdict}\t{name}\t{' '.join(why.split())}\n")

    try_all(left, options.seconds, options.jobs, report)
    noticed = verdicts.count("noticed")
    print(f"mutants: {noticed} of {len(mutants)} noticed")
    sys.exit(1 if noticed < len(mutants) else 0)


if __name__ == "__main__":
    main()
