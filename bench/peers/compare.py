#!/usr/bin/env python3
"""`./run bench peers`: Fjord, Redis, PostgreSQL, DuckDB and ClickHouse with the same documents, in one run."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

import systems
import result_page  # From the folder above, which systems.py adds to the path.

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUTPUT = ROOT / "build" / "bench-peers"
AGGREGATE = ROOT / "build" / "bench-aggregate" / "result.json"
MARK = "bench-peers"


def say(text):
    print(f"bench peers: {text}", file=sys.stderr, flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="./run bench peers",
        description="Stores the same documents of 0.8 kB of JSON in Fjord (three storage nodes), Redis and PostgreSQL, and reads them "
        "one by one and all together; systems take turns, and what is read has to be what was stored. Then runs `./run bench "
        "aggregate` with DuckDB, PostgreSQL and, with --clickhouse, ClickHouse. Prints one table of medians, and writes it to "
        "build/bench-peers and, with the default numbers, to docs/performance.md.")
    parser.add_argument("--documents", type=int, default=300_000, metavar="N", help="how many (300000)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="turns of each system (3)")
    parser.add_argument("--without", action="append", default=[], choices=["redis", "postgresql"], help="leave one out of the single operations")
    parser.add_argument("--clickhouse", action="store_true", help="aggregations by ClickHouse, too; fetches chdb (about 150 MB)")
    parser.add_argument("--no-aggregations", action="store_true", help="single operations only")
    parser.add_argument("--no-page", action="store_true", help="leave docs/performance.md as it is")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release" / "bin", metavar="DIR",
                        help="folder of fjord, fjordd and fjord-bench (build/release/bin)")
    arguments = parser.parse_args()
    if arguments.documents < 1 or arguments.repeat < 1:
        parser.error("--documents and --repeat: expected 1 or more")
    return arguments


def measure_operations(arguments, folder):
    """Returns the systems, and lists of figures by (system, figure)."""
    made = [systems.Fjord(folder, arguments.bin)]
    if "redis" not in arguments.without:
        made.append(systems.Redis(folder))
    if "postgresql" not in arguments.without:
        made.append(systems.Postgres(folder))
    figures = {}
    try:
        say("making the documents")
        made[0].write_documents(folder / "documents.jsonl", arguments.documents)
        documents = systems.Documents(folder / "documents.jsonl")
        for turn in range(1, arguments.repeat + 1):
            for system in made:
                for name, value in system.measure(documents).items():
                    figures.setdefault((system.name, name), []).append(value)
            say(f"turn {turn} of {arguments.repeat}: what was read is what was stored")
    finally:
        for system in made:
            try:
                system.stop()
            except Exception as error:  # The others have to be stopped, too.
                say(f"stopping {system.name}: {error}")
    return made, figures


def measure_aggregations(arguments):
    """Returns the result of `./run bench aggregate`."""
    command = [sys.executable, "-B", HERE.parent / "aggregate" / "compare.py", "--documents", max(arguments.documents, 25_000), "--no-page", "--bin", arguments.bin]
    if arguments.clickhouse:
        command.append("--clickhouse")
    if subprocess.run([str(one) for one in command], stdout=subprocess.DEVNULL).returncode != 0:
        raise RuntimeError("the aggregations have failed")
    return json.loads(AGGREGATE.read_text())


def heading(arguments, versions, load):
    return (f"{arguments.documents} documents of 0.8 kB, medians of {arguments.repeat} turns. {result_page.circumstances(load)} "
            f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}.")


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def table_of_operations(made, figures):
    names = [system.name for system in made]
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for name, meaning in systems.FIGURES.items():
        cells = [number(statistics.median(figures[system, name])) if (system, name) in figures else "" for system in names]
        lines.append(f"| {meaning} | " + " | ".join(cells) + " |")
    return lines


def table_of_aggregations(result):
    names = list(dict.fromkeys(run["system"] for run in result["runs"]))
    lines = ["| seconds | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for query in dict.fromkeys(run["query"] for run in result["runs"]):
        medians = {run["system"]: statistics.median(run["seconds"]) for run in result["runs"] if run["query"] == query}
        lines.append(f"| {query} | " + " | ".join(f"{medians[name]:.3f}" for name in names) + " |")
    return lines


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Exits through `finally`.
    OUTPUT.mkdir(parents=True, exist_ok=True)
    # In TMPDIR: PostgreSQL may run as another user, who may lack access to a folder above the checkout.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-bench-peers."))
    folder.chmod(0o755)
    try:
        before = os.getloadavg()[0]
        made, figures = measure_operations(arguments, folder)
        versions = {system.name: system.version for system in made[1:]}
        lines = table_of_operations(made, figures)
        if not arguments.no_aggregations:
            result = measure_aggregations(arguments)
            versions |= {name.split(",")[0]: version for name, version in result["versions"].items() if name != "Fjord"}
            lines += ["", *table_of_aggregations(result)]
        text = "\n".join([heading(arguments, versions, (before, os.getloadavg()[0])), "", *lines]) + "\n"
        print(text)
        (OUTPUT / "result.md").write_text(text)
        (OUTPUT / "result.json").write_text(json.dumps({f"{system}: {name}": values for (system, name), values in figures.items()}, indent=1) + "\n")
        is_whole = (arguments.documents, arguments.without, arguments.no_aggregations) == (300_000, [], False) and arguments.clickhouse
        if is_whole and not arguments.no_page:
            result_page.update_page("performance.md", MARK, text)
            say("the table in docs/performance.md is new")
        return 0
    except (RuntimeError, systems.Unavailable) as error:
        say(str(error))
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
