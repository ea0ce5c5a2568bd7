#!/usr/bin/env python3
"""What does it cost that storage nodes count the load of each bucket? `./run bench` with storage nodes that count and with
storage nodes from whose source the counting of gets and writes was taken, in turns."""

import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess

import experiment

SOURCE = experiment.ROOT / "storage" / "stripe_operations.cpp"
BUILD = pathlib.Path(os.environ["FJORD_BIN"]).parent
COUNTING = ("""    loads_.add_write(operation.bucket, each_ns, operation.header.size() + operation.body.size());
""", """  loads_.add_read(operation.bucket, static_cast<std::uint64_t>(took.count()) * 1000,
                  result.header.size() + result.body.size());
""")
FIGURES = {"feed docs_per_s": "feed_per_s", "get inflight64_per_s": "get_per_s"}
TURNS = int(os.environ.get("FJORD_EXPERIMENT_RUNS", "6"))


def without_counting():
    text = SOURCE.read_text()
    for part in COUNTING:
        assert text.count(part) == 1, f"{SOURCE} does not count as this script expects: {part}"
        text = text.replace(part, "    static_cast<void>(operation), static_cast<void>(each_ns);\n" if "each_ns" in part else "")
    return text


def changed_source(command, folder):
    """Returns the file that the command compiles, and what it has to be without counting; None if it is another file.
    Several sources may be compiled as one, which includes them."""
    source = pathlib.Path(re.search(r" -c (\S+)$", command).group(1))
    if source == SOURCE:
        return source, without_counting()
    if "Unity" not in source.parts or str(SOURCE) not in source.read_text():
        return None
    (folder / SOURCE.name).write_text(without_counting())
    return source, source.read_text().replace(str(SOURCE), str(folder / SOURCE.name))


def build_without(folder):
    """Links a second `fjordd`, with an object that does not count ahead of the library that has the one that does. The sources
    and the build folder stay as they are."""
    listed = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", "fjordd"], check=True, capture_output=True, text=True)
    commands = listed.stdout.splitlines()
    link = commands[-1]
    assert " -o bin/fjordd " in link, link
    found = [(command, *changed) for command in commands if "/fjord_storage.dir/" in command and " -c " in command
             for changed in [changed_source(command, folder)] if changed]
    assert len(found) == 1, f"{len(found)} commands compile {SOURCE}"
    command, source, text = found[0]
    copy, target = folder / "changed.cpp", folder / "changed.o"
    copy.write_text(text)
    command = command.replace(f" -c {source}", f" -x c++ -c {copy}")
    command = re.sub(r" -o \S+", f" -o {target}", re.sub(r" -MF \S+", f" -MF {target}.d", command))
    for each in (command, link.replace(" -o bin/fjordd ", f" {target} -o {folder / 'fjordd'} ")):
        subprocess.run(each, shell=True, cwd=BUILD, check=True)


def build_both(output):
    subprocess.run(["ninja", "-C", str(BUILD), "fjordd", "fjord", "fjord-bench"], check=True, stdout=subprocess.DEVNULL)
    for way in ("on", "off"):
        (output / way).mkdir(parents=True, exist_ok=True)
        for program in ("fjordd", "fjord", "fjord-bench"):
            shutil.copy2(BUILD / "bin" / program, output / way / program)
    build_without((output / "off").resolve())


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


def plot(rows, output):
    figure, axes = experiment.pyplot().subplots(1, len(FIGURES), figsize=(9, 4))
    for axis, name in zip(axes, FIGURES.values()):
        for way, label in (("off", "not counted"), ("on", "counted")):
            points = [(row["turn"] + 1, float(row[name])) for row in rows if row["counting"] == way]
            axis.plot(*zip(*points), marker="o", label=label)
        axis.set_ylim(bottom=0)
        axis.set_xlabel("turn")
        axis.set_ylabel(name.replace("_per_s", "s a second"))
        axis.legend()
    figure.tight_layout()
    figure.savefig(output / "load-counting.png", dpi=120)


def show(rows, output):
    plot(rows, output)
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
