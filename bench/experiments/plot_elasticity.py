#!/usr/bin/env python3
"""Plot and tables of `./run experiment elasticity`: reads the output folder of elasticity.py, writes elasticity.png
there and the tables in Markdown to standard output."""

import csv
import json
import math
import pathlib
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

INTERVAL = 0.5  # Seconds per point of the plot.
DOCUMENT_BYTES = 800
SLOW_S = 0.25  # A put that takes longer counts as held up.


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def quantile(values, fraction):
    values = sorted(values)
    return values[min(int(fraction * len(values)), len(values) - 1)] if values else math.nan


class Operations:
    def __init__(self, folder):
        self.by_kind = defaultdict(list)  # (due, latency, ok), in seconds.
        for row in read(folder / "operations.csv"):
            self.by_kind[row["kind"]].append((float(row["due_us"]) / 1e6, float(row["latency_us"]) / 1e6, row["status"] == "OK"))

    def latencies(self, kind, start, end):
        return [latency for due, latency, _ in self.by_kind[kind] if start <= due < end]

    def failed(self, start, end):
        return sum(not ok for rows in self.by_kind.values() for due, _, ok in rows if start <= due < end)

    def ended_each(self, kind, start, end):
        """Returns the number of ended operations by interval."""
        counts = [0] * (int((end - start) / INTERVAL) + 1)
        for due, latency, _ in self.by_kind[kind]:
            if start <= due + latency < end:
                counts[int((due + latency - start) / INTERVAL)] += 1
        return counts[:-1]

    def p99_each(self, kind, start, end):
        groups = [[] for _ in range(int((end - start) / INTERVAL) + 1)]
        for due, latency, _ in self.by_kind[kind]:
            if start <= due < end:
                groups[int((due - start) / INTERVAL)].append(latency * 1000)
        return [quantile(group, 0.99) for group in groups[:-1]]


def plot(folder, operations, phases, visits, moved):
    start, end = phases[0][1], phases[-1][2]
    figure, axes = plt.subplots(4, 1, figsize=(12, 12), sharex=True)
    for kind in ("get", "put"):
        counts = [count / INTERVAL for count in operations.ended_each(kind, start, end)]
        axes[0].plot([i * INTERVAL for i in range(len(counts))], counts, label=f"{kind}s ended a second")
        p99 = operations.p99_each(kind, start, end)
        axes[1].plot([i * INTERVAL for i in range(len(p99))], p99, label=f"p99 of {kind}s, ms")
    axes[0].set_ylim(0, None)
    axes[1].set_yscale("log")
    within = [row for row in visits if row["seconds"] and start <= float(row["time"]) < end]
    axes[2].plot([float(row["time"]) - start for row in within], [float(row["seconds"]) for row in within], marker=".",
                 label="seconds a visit took")
    axes[2].set_ylim(0, None)
    fetched = [(float(row["time"]) - start, float(row["merged_entries"]) * DOCUMENT_BYTES / 1e6) for row in moved
               if start <= float(row["time"]) < end]
    axes[3].plot([time for time, _ in fetched], [megabytes - fetched[0][1] for _, megabytes in fetched],
                 label="MB fetched by merges (since the start of nodes that live)")
    for axis in axes:
        for name, first, last in phases:
            if name in ("add", "retire", "dead node"):
                axis.axvspan(first - start, last - start, alpha=0.2, color="red" if name == "dead node" else "orange")
        axis.legend(loc="upper right")
    for name, first, last in phases:
        axes[0].text((first + last) / 2 - start, 5, name, rotation=90, va="bottom", ha="center", fontsize=8)
    axes[-1].set_xlabel("seconds")
    figure.tight_layout()
    figure.savefig(folder / "elasticity.png", dpi=110)
    plt.close(figure)


def print_phases(operations, phases, visits):
    quiet = {kind: quantile(operations.latencies(kind, *phases[0][1:]), 0.99) for kind in ("get", "put")}
    print("\n| phase | seconds | failed | gets/s | p50 ms | p99 ms | of quiet | puts/s | p50 ms | p99 ms | of quiet | "
          f"fewest gets and puts in {INTERVAL} s, of the mean | visits: failed, median s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, start, end in phases:
        cells = [name, f"{end - start:.1f}", str(operations.failed(start, end))]
        for kind in ("get", "put"):
            latencies = operations.latencies(kind, start, end)
            p99 = quantile(latencies, 0.99)
            cells += [f"{len(latencies) / (end - start):.0f}", f"{quantile(latencies, 0.5) * 1000:.2f}", f"{p99 * 1000:.1f}",
                      f"{p99 / quiet[kind]:.2f}"]
        gets, puts = operations.ended_each("get", start, end), operations.ended_each("put", start, end)
        both = [a + b for a, b in zip(gets, puts)]
        cells.append(f"{min(both) / (sum(both) / len(both)):.2f}" if both and sum(both) else "")
        within = [row for row in visits if start <= float(row["time"]) < end]
        times = [float(row["seconds"]) for row in within if row["seconds"]]
        cells.append(f"{sum(row['ok'] != '1' for row in within)} of {len(within)}, {quantile(times, 0.5):.2f}" if times else "")
        print("| " + " | ".join(cells) + " |")


def print_moved(figures):
    print("\n| change | documents fetched | MB | least possible | ratio |")
    print("|---|---:|---:|---:|---:|")
    for name, change in (("add", figures["added"]), ("retire", figures["retired"])):
        print(f"| {name} | {change['fetched']:,.0f} | {change['fetched'] * DOCUMENT_BYTES / 1e6:.1f} | {change['least']:,.0f} | "
              f"{change['fetched'] / change['least']:.3f} |")


def print_dead(operations, figures):
    killed = figures["killed_at"]
    print("\n| a storage node is killed | |")
    print("|---|---:|")
    for kind in ("put", "get"):
        after = [(due + latency - killed, latency) for due, latency, _ in operations.by_kind[kind] if due + latency >= killed and due < killed + 60]
        held_up = [ended for ended, latency in after if latency > SLOW_S]
        print(f"| longest {kind}, s | {max(latency for _, latency in after):.2f} |")
        print(f"| the last {kind} that took more than {SLOW_S} s ended after, s | {max(held_up, default=0):.2f} |")
    print(f"| two copies of {figures['documents']:,} documents again after, s | {figures['restored_s']:.1f} |")


def main():
    folder = pathlib.Path(sys.argv[1])
    operations = Operations(folder)
    phases = [(row["phase"], float(row["start"]), float(row["end"])) for row in read(folder / "phases.csv")]
    visits = read(folder / "visits.csv")
    figures = json.loads((folder / "figures.json").read_text())
    plot(folder, operations, phases, visits, read(folder / "moved.csv"))
    print(f"\n{figures['documents']:,} documents of {DOCUMENT_BYTES} bytes, redundancy 2; {figures['gets']:g} gets and "
          f"{figures['puts']:g} puts a second, visits one after the other with a pause of a second.")
    print_phases(operations, phases, visits)
    print_moved(figures)
    print_dead(operations, figures)


if __name__ == "__main__":
    main()
