#!/usr/bin/env python3
"""`./run bench aggregate`: the same aggregations over the same documents by Fjord and by other systems."""

import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import documents as documents_module
import queries
import systems
import result_page  # From the folder above, which systems.py adds to the path.

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUTPUT = ROOT / "build" / "bench-aggregate"
MARK = "bench-aggregate"

Documents = collections.namedtuple("Documents", "json csv count bytes")


def say(text):
    print(f"bench aggregate: {text}", file=sys.stderr, flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="./run bench aggregate",
        description="Makes documents of 800 bytes from a seed, starts a cluster of three storage nodes, and runs three "
        "aggregations on it and on others over the very same documents: DuckDB (over lines of JSON, and over its own "
        "columns) and PostgreSQL. All answers have to be equal, or the exit code is 1. Times are from submitting a query "
        "until its result is readable; systems take turns. The table is printed and written to build/bench-aggregate, "
        "with the default numbers also to docs/performance-parts.md. Databases and documents lie in a folder in TMPDIR (/tmp), "
        "which is removed at the end.")
    parser.add_argument("--documents", type=int, default=300_000, metavar="N", help="how many, 25000 or more (300000)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what they are made from (1)")
    parser.add_argument("--repeat", type=int, default=7, metavar="N", help="how often each query runs (7)")
    parser.add_argument("--without", action="append", default=[], choices=["duckdb", "postgresql"], help="leave one out")
    parser.add_argument("--clickhouse", action="store_true", help="also ClickHouse inside a Python process; fetches chdb (about 150 MB)")
    parser.add_argument("--spark", action="store_true",
                        help="also Spark, local with all processors; fetches pyspark (about 400 MB) and needs a Java "
                        "runtime of version 17 or later (Debian: default-jre-headless)")
    parser.add_argument("--no-page", action="store_true", help="leave docs/performance-parts.md as it is")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin", metavar="DIR",
                        help="folder of fjord, fjordd and fjord-bench (build/release/bin)")
    arguments = parser.parse_args()
    if arguments.documents < documents_module.CITIES:
        parser.error(f"--documents {arguments.documents}: expected {documents_module.CITIES} or more, one for each city")
    if arguments.repeat < 1:
        parser.error("--repeat: expected 1 or more")
    for program in ("fjord", "fjordd", "fjord-bench"):
        if not os.access(arguments.bin / program, os.X_OK):
            parser.error(f"no {program} in {arguments.bin}; ./run bench aggregate builds it")
    return arguments


def make_work_folder():
    """In TMPDIR: PostgreSQL may run as another user, which may lack access to a folder above the checkout."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-bench-aggregate."))
    folder.chmod(0o755)
    return folder


def python_with(packages):
    """Returns the Python of a virtual environment with these packages, in the versions of versions.txt."""
    wanted = [line.strip() for line in (HERE / "versions.txt").read_text().splitlines()
              if line.split("==")[0].strip() in packages]
    folder = OUTPUT / "venv"
    python = folder / "bin" / "python3"
    stamp = folder / "installed.txt"
    installed = stamp.read_text().splitlines() if stamp.exists() else []
    if not set(wanted) <= set(installed):
        say(f"installing {', '.join(wanted)} into {folder.relative_to(ROOT)}")
        if not python.exists():
            made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True)
            if made.returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                raise systems.Unavailable(f"no virtual environment (Debian: python3-venv): {made.stdout[-300:]}")
        systems.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])
        stamp.write_text("\n".join(sorted({*installed, *wanted})) + "\n")
    return python


def make_systems(arguments, folder):
    made = [systems.Fjord(folder, arguments.bin)]
    threads = os.cpu_count()
    if "duckdb" not in arguments.without:
        python = python_with(["duckdb", "numpy"])
        made += [systems.DuckDb(folder, python, threads, own) for own in (False, True)]
    if "postgresql" not in arguments.without:
        made.append(systems.Postgres(folder))
    if arguments.clickhouse:
        made.append(systems.ClickHouse(folder, python_with(["chdb"]), threads))
    if arguments.spark:
        made.append(systems.Spark(folder, python_with(["pyspark"]), threads))
    return made


def answer_of(path):
    with open(path, encoding="utf-8") as rows:
        answer = {}
        for line in rows:
            key, *values = json.loads(line)
            answer[str(key)] = values
    return answer


def difference(answer, expected):
    """Returns an empty string if the answers are equal."""
    if answer.keys() != expected.keys():
        return f"{len(answer)} groups instead of {len(expected)}, {len(answer.keys() ^ expected.keys())} not in both"
    wrong = [key for key in expected if answer[key] != expected[key]]
    return f"{len(wrong)} groups differ, for example {wrong[0]}: {answer[wrong[0]]} instead of {expected[wrong[0]]}" if wrong else ""


def expected_answers(documents):
    """Computes the answers from the rows one after the other."""
    groups = {name: collections.defaultdict(lambda: [0, 0]) for name in queries.QUERIES}
    with open(documents.csv, encoding="ascii") as rows:
        for row in rows:
            number, city, country, population = row.rstrip("\n").split(",")
            for name, key in zip(queries.QUERIES, (city, country, number)):
                group = groups[name][key]
                group[0] += 1
                group[1] += int(population)
    by_city, by_country, by_number = (groups[name] for name in queries.QUERIES)
    return dict(zip(queries.QUERIES, ({key: [count] for key, (count, _) in by_city.items()},
                                      {key: [total / count] for key, (count, total) in by_country.items()},
                                      {key: [count, total] for key, (count, total) in by_number.items()})))


def measure(arguments, documents, made, folder):
    """Returns lists of (seconds, CPU seconds) by (system, query). Raises if an answer is wrong."""
    expected = expected_answers(documents)
    figures = collections.defaultdict(list)
    rows = folder / "rows"
    rows.mkdir()
    rows.chmod(0o777)
    for turn in range(arguments.repeat + 1):
        for system in made:
            for number, (name, query) in enumerate(queries.QUERIES.items()):
                path = rows / f"{made.index(system)}-{number}"
                seconds, cpu = system.ask(name, query, path)
                wrong = difference(answer_of(path), expected[name])
                if wrong:
                    raise RuntimeError(f"{system.name}, {name}: {wrong}")
                path.unlink()
                if turn > 0:  # the first one warms up
                    figures[system.name, name].append((seconds, cpu))
        say(f"turn {turn} of {arguments.repeat}: all answers are equal")
    return figures


def table(arguments, made, figures, load):
    versions = ", ".join(dict.fromkeys(f"{one.name.split(chr(44))[0]} {one.version}" for one in made[1:]))
    lines = [f"{arguments.documents} documents of {documents_module.LINE_BYTES} bytes of JSON, seed {arguments.seed}. {result_page.circumstances(load)} "
             f"Versions: {versions}.", ""]
    lines += ["| Query | System | best, s | median, s | CPU, s | best, over Fjord's |", "|---|---|---:|---:|---:|---:|"]
    for name in queries.QUERIES:
        ours = min(seconds for seconds, _ in figures[made[0].name, name])
        for system in made:
            runs = figures[system.name, name]
            best = min(seconds for seconds, _ in runs)
            cpus = [cpu for _, cpu in runs if cpu is not None]
            cpu = f"{statistics.median(cpus):.2f}" if cpus else ""
            lines.append(f"| {name} | {system.name} | {best:.3f} | {statistics.median(s for s, _ in runs):.3f} | {cpu} | {best / ours:.2f} |")
    lines += ["", "| System | documents taken in after, s |", "|---|---:|"]
    lines += [f"| {system.name} | {system.loaded_seconds:.1f} |" for system in made if system.loaded_seconds > 0]
    return "\n".join(lines) + "\n"


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Exits through `finally`.
    OUTPUT.mkdir(parents=True, exist_ok=True)
    folder = make_work_folder()
    made = []
    try:
        made = make_systems(arguments, folder)
        say("making the documents")
        json_path, csv_path = folder / "places.jsonl", folder / "places.csv"
        written = documents_module.write(json_path, csv_path, arguments.documents, arguments.seed)
        documents = Documents(json_path, csv_path, arguments.documents, written)
        for system in made:
            say(f"starting {system.name}")
            system.start(documents)
        before = os.getloadavg()[0]
        figures = measure(arguments, documents, made, folder)
        text = table(arguments, made, figures, (before, os.getloadavg()[0]))
        print(text)
        (OUTPUT / "result.md").write_text(text)
        result = {"documents": arguments.documents, "seed": arguments.seed, "bytes": written,
                  "versions": {system.name: system.version for system in made},
                  "loaded_seconds": {system.name: system.loaded_seconds for system in made},
                  "runs": [{"system": system, "query": query, "seconds": [s for s, _ in runs], "cpu_seconds": [c for _, c in runs]}
                           for (system, query), runs in figures.items()]}
        (OUTPUT / "result.json").write_text(json.dumps(result, indent=1) + "\n")
        is_default = (arguments.documents, arguments.seed, arguments.without) == (300_000, 1, [])
        if is_default and not arguments.no_page:
            result_page.update_page("performance-parts.md", MARK, text)
            say("the table in docs/performance-parts.md is new")
        return 0
    except (RuntimeError, systems.Unavailable) as error:
        say(str(error))
        return 1
    finally:
        for system in made:
            try:
                system.stop()
            except Exception as error:  # the others have to be stopped, too
                say(f"stopping {system.name}: {error}")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
