#!/usr/bin/env python3
"""The tuner's advice against a grid of settings, on this machine: six workloads on a real local cluster. For each of them all
combinations of four levels of the three settings that matter most to it are measured, and then the best of these, the advice and the
defaults again."""

import csv
import itertools
import json
import math
import os
import random
import resource
import statistics
import subprocess
import threading
import time
import urllib.request

import experiment
from experiment import harness

KIB, MIB = 1 << 10, 1 << 20
NODES = 2
DOCUMENT_BYTES = 800
TARGET_MS = 20
IN_FLIGHT = 16
SETTLING_S = 0.3  # Start of each measurement that does not count.
TURNS, TURNS_WITH_VISITS = 2, 8  # Rounds in which the best are compared; figures with visits vary more.

HELD, FILE, INDEX = "storage.held_bytes_max", "storage.file_bytes_max", "storage.index_bytes_max"
VISITORS, DOCBLOCK = "storage.visitors_max", "storage_options.docblock_bytes"
DEFAULTS = {HELD: 64 * MIB, FILE: 16 * MIB, INDEX: 1024 * MIB, VISITORS: 5, DOCBLOCK: MIB}
LEVELS = {
    HELD: [MIB, 8 * MIB, 64 * MIB, 256 * MIB],
    FILE: [MIB, 4 * MIB, 16 * MIB, 64 * MIB],
    INDEX: [MIB, 2 * MIB, 16 * MIB, 1024 * MIB],
    VISITORS: [1, 2, 5, 16],
    DOCBLOCK: [64 * KIB, 256 * KIB, MIB, 4 * MIB],
}
# Settings that determine the layout of files, or are read at the start: each level gets a cluster of its own.
FROM_START = (FILE, DOCBLOCK)

# Name: documents, share of puts, share of visits in the objective, durability, settings of the grid.
WORKLOADS = {
    "reads": (60_000, 0.0, 0.0, "process", (HELD, FILE, INDEX)),
    "half puts": (60_000, 0.5, 0.0, "process", (HELD, FILE, INDEX)),
    "puts": (60_000, 1.0, 0.0, "process", (HELD, FILE, INDEX)),
    "puts, synced": (60_000, 1.0, 0.0, "sync", (HELD, FILE, INDEX)),
    "reads and visits": (60_000, 0.1, 0.3, "process", (HELD, VISITORS, DOCBLOCK)),
    "puts and visits": (60_000, 0.5, 0.5, "process", (HELD, VISITORS, DOCBLOCK)),
}


def text(name, value):
    return str(value) if name in (VISITORS, DOCBLOCK) else f"{value // KIB}KiB"


def workload_file(name, memory):
    documents, puts, scans, durability, _ = WORKLOADS[name]
    rate = 10_000
    return (f"documents: {documents}\ndocument_bytes: {{mean: {DOCUMENT_BYTES}, p99: {DOCUMENT_BYTES + 100}}}\n"
            f"operations:\n  reads_per_s: {rate * (1 - puts)}\n  writes_per_s: {rate * puts}\n  overwrite_share: 1\n  key_skew: 0\n  headroom: 0\n"
            f"  latency_target_ms: {TARGET_MS}\n"
            f"give_up_max: 1\nscans: {{share: {scans}}}\nredundancy: 1\ndurability: {durability}\n"
            f"nodes: {{count: {NODES}, cores: {max(1, os.cpu_count() // NODES)}, memory: {memory // NODES}}}\n")


def advice_for(name, profile, folder):
    """Returns the advised value of each setting of DEFAULTS, and all other advice."""
    with open("/proc/meminfo") as file:
        memory = 1024 * int(file.readline().split()[1])
    path = folder / "workload.yaml"
    path.write_text(workload_file(name, memory))
    advised = harness.run_program("fjord", "tune", "advise", "--workload", path, "--profile", profile, "-o", "json")
    assert advised.code == 0, advised
    values, others = dict(DEFAULTS), {}
    for one in advised.json()["advice"]:
        if one["knob"] in DEFAULTS:
            values[one["knob"]] = one["new"]
        elif not one["knob"].startswith(("-", "storage_options")):
            others[one["knob"]] = one["new_text"]
    return values, others


class Cpu:
    """CPU time since its construction, in cores: of the machine, and of processes outside of this experiment."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.begin = self.read()

    def read(self):
        with open("/proc/stat") as file:
            ticks = [int(field) for field in file.readline().split()[1:9]]
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
        return time.monotonic(), busy, self.cluster.metric("fjord_process_cpu_seconds")

    def others(self, children):
        at, busy, nodes = self.read()
        seconds = at - self.begin[0]
        return max(0.0, (busy - self.begin[1]) - (nodes - self.begin[2]) - children) / seconds


class Cluster(harness.Cluster):
    """A cluster with the documents of a workload, and with its own settings from the start."""

    def __init__(self, workload, values):
        self.documents, self.puts, self.scans, durability, _ = WORKLOADS[workload]
        super().__init__(storage=NODES, redundancy=1, settings=f"storage_options:\n  docblock_bytes: {values[DOCBLOCK]}\n"
                                                               f"  durability: {durability}\n")

    def __enter__(self):
        super().__enter__()
        config = (self.directory / "cluster.yaml").read_text()
        self.http = [line.split("http:")[1].strip() for line in config.splitlines() if "http:" in line]
        self.deploy((experiment.ROOT / "bench" / "listing.sd").read_text())
        return self

    def use(self, values, others=None):
        wanted = [f"{name}={text(name, value)}" for name, value in values.items() if name != DOCBLOCK]
        self.must("config", "set", *wanted, *(f"{name}={value}" for name, value in (others or {}).items()))

    def metric(self, name):
        total = 0.0
        for address in self.http:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
                for line in page.read().decode().splitlines():
                    if line.startswith(name) and line[len(name)] in " {":
                        total += float(line.rsplit(" ", 1)[1])
        return total

    def bench(self, *arguments):
        command = [harness.BIN / "fjord-bench", "--documents", self.documents, *arguments]
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "FJORD_CLUSTER": self.address})

    def feed(self):
        fed = self.bench("feed")
        assert fed.wait(timeout=300) == 0, fed.stderr.read()
        fed.stderr.close()

    def load(self, seconds):
        """Returns the outcome of each operation."""
        path = self.folder / "load.csv"
        load = self.bench("load", "--in-flight", IN_FLIGHT, "--put-share", self.puts, "--seconds", SETTLING_S + seconds, "--output", path)
        assert load.wait(timeout=seconds + 120) == 0, load.stderr.read()
        load.stderr.close()
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        begin = min(int(row["due_us"]) for row in rows) + SETTLING_S * 1e6
        return [row for row in rows if int(row["due_us"]) >= begin]

    def measure(self, seconds):
        over = threading.Event()

        def visit():
            while not over.is_set():
                visited = self.bench("visit", "--repeat", 1)
                _, errors = visited.communicate(timeout=300)
                assert visited.returncode == 0, errors
        visitor = threading.Thread(target=visit) if self.scans else None
        cpu, children = Cpu(self), time_of_children()
        if visitor:
            visitor.start()
        scanned, began = self.metric("fjord_visitor_docblock_bytes_total"), time.monotonic()
        rows = self.load(seconds)
        scan_rate = (self.metric("fjord_visitor_docblock_bytes_total") - scanned) / (time.monotonic() - began)
        over.set()
        if visitor:
            visitor.join()
        others = cpu.others(time_of_children() - children)
        due = [int(row["due_us"]) for row in rows]
        latencies = sorted(int(row["latency_us"]) for row in rows)
        assert all(row["status"] == "OK" for row in rows), "operations failed"
        rate = len(rows) / max(1e-3, (max(due) - min(due)) / 1e6)
        p99 = latencies[len(latencies) * 99 // 100] / 1000
        objective = rate * min(1, TARGET_MS / p99)
        if self.scans:
            objective = objective ** (1 - self.scans) * max(1, scan_rate) ** self.scans
        return {"ops_per_s": round(rate, 1), "p99_ms": round(p99, 3), "scan_mb_per_s": round(scan_rate / 1e6, 2),
                "objective": round(objective, 2), "others_cpu": round(others, 2), "load": round(os.getloadavg()[0], 2)}


def time_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(workload, phase, label, values, measured):
    return {"workload": workload, "phase": phase, "label": label, **values, **measured}


def grid_of(workload, quick):
    settings = WORKLOADS[workload][4]
    levels = {name: [LEVELS[name][0], LEVELS[name][2]] if quick else LEVELS[name] for name in settings}
    return [{**DEFAULTS, **dict(zip(settings, chosen))} for chosen in itertools.product(*(levels[name] for name in settings))]


def measure_grid(workload, options, seconds):
    """Measures the whole grid, and the defaults three times in each cluster, which shows the noise of the machine."""
    chooser = random.Random(1)
    grid = grid_of(workload, options.quick)
    start = sorted({tuple(values[name] for name in FROM_START) for values in grid})
    chooser.shuffle(start)
    for number, key in enumerate(start):
        here = [("grid", values) for values in grid if tuple(values[name] for name in FROM_START) == key]
        same = {**DEFAULTS, **dict(zip(FROM_START, key))}
        here += [("repeat", same)] * 3
        chooser.shuffle(here)
        with Cluster(workload, here[0][1]) as cluster:
            cluster.use(same)
            cluster.feed()
            cluster.load(seconds)  # So that warm-up does not slow the first setting.
            for phase, values in here:
                cluster.use(values)
                yield row(workload, phase, "", values, cluster.measure(seconds))
        experiment.say(f"{workload}: cluster {number + 1} of {len(start)}, load {os.getloadavg()[0]:.1f}")


def measure_finals(workload, rows, profile, folder, options, seconds):
    grid = sorted((one for one in rows if one["phase"] == "grid"), key=lambda one: -one["objective"])
    advised, others = advice_for(workload, profile, folder)
    contenders = [("defaults", DEFAULTS, {}), ("advice", advised, others)]
    for number, one in enumerate(grid[:1 if options.quick else 2]):
        contenders.append((f"grid {number + 1}", {name: one[name] for name in DEFAULTS}, {}))
    chooser = random.Random(2)
    for _ in range(TURNS_WITH_VISITS if WORKLOADS[workload][2] and not options.quick else TURNS):
        chooser.shuffle(contenders)
        for label, values, more in contenders:
            with Cluster(workload, values) as cluster:
                cluster.use(values, more)
                cluster.feed()
                cluster.load(seconds)
                yield row(workload, "final", label, values, cluster.measure(2 * seconds))
    experiment.say(f"{workload}: compared; advice {json.dumps({**{k: v for k, v in advised.items() if v != DEFAULTS[k]}, **others})}")


def measure(options):
    seconds = 1.0 if options.quick else 0.8
    folder = options.output
    profile = folder / "profile.yaml"
    calibrated = harness.run_program("fjord", "tune", "calibrate", "--dir", folder, "--seconds", 5 if options.quick else 20, "--output",
                                     profile, timeout=300)
    assert calibrated.code == 0, calibrated
    for workload in WORKLOADS:
        rows = []
        for one in measure_grid(workload, options, seconds):
            rows.append(one)
            yield one
        yield from measure_finals(workload, rows, profile, folder, options, seconds)


def spread(values):
    """Returns the standard deviation as a share of the mean."""
    return statistics.stdev(values) / statistics.mean(values) if len(values) > 1 else 0.0


def short(values):
    def one(name):
        value = values[name]
        return str(value) if name == VISITORS else f"{value // MIB} MiB" if value % MIB == 0 else f"{value // KIB} KiB"
    return ", ".join(f"{name.split('.')[1].removesuffix('_bytes_max').removesuffix('_max').removesuffix('_bytes')} {one(name)}"
                     for name in DEFAULTS if values[name] != DEFAULTS[name]) or "defaults"


def noise_of(rows):
    """Returns the noise of repeated measurements of the same settings in one cluster, the median over the clusters."""
    groups = {}
    for one in rows:
        if one["phase"] == "repeat":
            groups.setdefault(tuple(one[name] for name in FROM_START), []).append(one["objective"])
    return statistics.median(spread(values) for values in groups.values())


def show(rows, output):
    table, ratios, gains, noises, same = [], [], [], [], 0
    bars = {"best of the grid": [], "advice": [], "defaults": []}
    names = [name for name in WORKLOADS if any(one["workload"] == name and one["phase"] == "final" for one in rows)]
    for name in names:
        mine = [one for one in rows if one["workload"] == name]
        finals = {}
        for one in mine:
            if one["phase"] == "final":
                finals.setdefault(one["label"], []).append(one)
        mean = {label: statistics.mean(one["objective"] for one in group) for label, group in finals.items()}
        best = max((label for label in mean if label.startswith("grid")), key=mean.get)
        top = max(mean.values())
        between = statistics.median(spread([one["objective"] for one in group]) for group in finals.values())
        grid = [one["objective"] for one in mine if one["phase"] == "grid"]
        ratios.append(mean["advice"] / top)
        gains.append(mean["advice"] / mean["defaults"])
        for label, key in (("best of the grid", best), ("advice", "advice"), ("defaults", "defaults")):
            bars[label].append(mean[key] / top)
        advised = finals["advice"][0]
        noises.append(max(between, noise_of(mine)))
        same += all(advised[setting] == DEFAULTS[setting] for setting in DEFAULTS)
        table.append([name, short(finals[best][0]), short(advised), mean[best] / top, mean["advice"] / top, mean["defaults"] / top,
                      f"{100 * noise_of(mine):.0f} %", f"{100 * between:.0f} %", f"{max(grid) / min(grid):.2f}",
                      statistics.mean(one["ops_per_s"] for one in finals["advice"]), statistics.mean(one["p99_ms"] for one in finals["advice"])])
    others = [one["others_cpu"] for one in rows]
    loads = [one["load"] for one in rows]
    print(f"{len(rows)} measurements. Other programs took {statistics.mean(others):.2f} of {os.cpu_count()} cores in the mean while it was measured, "
          f"{max(others):.2f} at most; load average {min(loads):.1f} to {max(loads):.1f}."
          f" {'**The machine was not quiet.** ' if statistics.mean(others) > 0.1 * os.cpu_count() else ''}\n")
    noise = statistics.median(noises)
    print(f"The same settings, measured again, differed by {100 * noise:.0f} % (standard deviation, the median of the workloads): "
          f"{'**no difference here says anything about settings.**' if noise > 0.15 else 'smaller differences say nothing.'} "
          f"For {same} of {len(names)} workloads the advice is the defaults, as far as the settings of the grid go.\n")
    print("| what | figure |\n|---|---:|")
    print(f"| advice, of the best that was found: median | {statistics.median(ratios):.3f} |")
    print(f"| the same: worst | {min(ratios):.3f} |")
    print(f"| advice, of the defaults: worst | {min(gains):.3f} |")
    print(f"| the same: geometric mean | {math.exp(statistics.mean(map(math.log, gains))):.3f} |\n")
    experiment.table(["workload", "best of the grid", "advice", "best, of the top", "advice", "defaults", "noise in a cluster",
                      "noise between clusters", "best / worst of the grid", "operations/s with the advice", "p99 ms"], table)
    figure, axes = experiment.pyplot().subplots(figsize=(9, 4.2))
    for number, (label, values) in enumerate(bars.items()):
        axes.bar([at + 0.27 * (number - 1) for at in range(len(names))], values, 0.27, label=label)
    for at, name in enumerate(names):
        points = [one["objective"] for one in rows if one["workload"] == name and one["phase"] == "grid"]
        axes.plot([at - 0.45] * len(points), [value / max(points) for value in points], "k.", markersize=3, label="_")
    axes.set_xticks(range(len(names)), names, rotation=15)
    axes.set_ylabel("objective, of the best found")
    axes.set_title("settings on a real cluster; dots: all of the grid")
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(output / "tuner-grid-real.png", dpi=120)


if __name__ == "__main__":
    experiment.run(__doc__, "tuner-grid-real", measure, show)
