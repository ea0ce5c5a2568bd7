#!/usr/bin/env python3
"""What does it cost that storage nodes count the load of each bucket? `./run bench` with storage nodes that count and with
storage nodes from whose source the counting of gets and writes was taken, in turns."""

import os
import random
import shutil
import statistics
import subprocess

import experiment

SOURCE = experiment.ROOT / "storage" / "stripe_operations.cpp"
BUILD = experiment.ROOT / "build" / "release"
COUNTING = ("""    loads_.add_write(operation.bucket, each_ns, operation.header.size() + operation.body.size());
""", """  loads_.add_read(operation.bucket, static_cast<std::uint64_t>(took.count()) * 1000,
                  result.header.size() + result.body.size());
""")
FIGURES = {"feed docs_per_s": "feed_per_s", "get inflight64_per_s": "get_per_s"}
TURNS = int(os.environ.get("FJORD_EXPERIMENT_RUNS", "6"))


def build_into(folder):
    subprocess.run(["ninja", "-C", str(BUILD), "fjordd", "fjord", "fjord-bench"], check=True, stdout=subprocess.DEVNULL)
    folder.mkdir(parents=True, exist_ok=True)
    for program in ("fjordd", "fjord", "fjord-bench"):
        shutil.copy2(BUILD / "bin" / program, folder / program)


def build_both(output):
    """Builds without counting and then as before, so that the build folder is left as it was."""
    text = SOURCE.read_text()
    without = text
    for part in COUNTING:
        assert text.count(part) == 1, f"{SOURCE} does not count as this script expects: {part}"
        without = without.replace(part, "    static_cast<void>(operation), static_cast<void>(each_ns);\n" if "each_ns" in part else "")
    try:
        SOURCE.write_text(without)
        build_into(output / "off")
    finally:
        SOURCE.write_text(text)
        build_into(output / "on")


def bench(folder, documents):
    done = subprocess.run([str(experiment.ROOT / "bench" / "run.sh"), "--no-page", "--bin", str(folder), "--documents", str(documents),
                           "feed", "get"], check=True, capture_output=True, text=True)
    figures = {}
    for line in done.stdout.splitlines():
        words = line.split()
        name = " ".join(words[:2])
        if name in FIGURES:
            figures[FIGURES[name]] = float(words[2].replace(",", ""))
    assert len(figures) == len(FIGURES), done.stdout
    return figures


def measure(options):
    build_both(options.output)
    documents, turns = (20_000, 2) if options.quick else (150_000, TURNS)
    for turn in range(turns):
        for counting in ("on", "off") if turn % 2 == 0 else ("off", "on"):
            row = {"turn": turn, "counting": counting, "documents": documents, **bench(options.output / counting, documents)}
            experiment.say(str(row))
            yield row


def interval(values, seed=1):
    """Returns the median of the values, and the interval in which 95 % of the medians of draws from them lie."""
    chooser = random.Random(seed)
    medians = sorted(statistics.median(chooser.choices(values, k=len(values))) for _ in range(2000))
    return statistics.median(values), medians[50], medians[-51]


def show(rows, output):
    del output
    table, losses = [], {}
    for figure in FIGURES.values():
        by_way = {way: {row["turn"]: float(row[figure]) for row in rows if row["counting"] == way} for way in ("on", "off")}
        losses[figure] = interval([100 * (1 - by_way["on"][turn] / by_way["off"][turn]) for turn in by_way["on"]])
        table.append([figure, *(f"{statistics.median(by_way[way].values()):.0f}" for way in ("off", "on")),
                      "{:.2f} % ({:.2f} to {:.2f})".format(*losses[figure])])
    print(f"{len(table) and max(int(row['turn']) for row in rows) + 1} turns of {rows[0]['documents']} documents; loss by pairs of neighbouring runs: "
          "median, and 95 % interval of the median.\n")
    experiment.table(["figure", "not counted", "counted", "loss"], table)
    print("| goal | | |\n|---|---|---|")
    worst = max(losses.values())
    print(f"| counting costs at most 1 % of throughput | {worst[0]:.2f} % | "
          f"{'holds' if worst[0] <= 1 else '**does not hold**'}{'' if worst[2] <= 1 else ', the interval exceeds it'} |\n")


if __name__ == "__main__":
    experiment.run(__doc__, "load-counting", measure, show)
