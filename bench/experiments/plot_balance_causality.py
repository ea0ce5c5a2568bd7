#!/usr/bin/env python3
"""Plot of `./run experiment balance-causality`: reads delays.csv of a folder and writes delays.png beside it."""

import csv
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def main():
    folder = sys.argv[1]
    lines = defaultdict(list)
    with open(f"{folder}/delays.csv", newline="") as file:
        for row in csv.DictReader(file):
            lines[row["rule"]].append(row)
    figure, (losses, waits) = plt.subplots(1, 2, figsize=(10, 4))
    for rule, rows in lines.items():
        delays = [float(row["delay_max"]) for row in rows]
        losses.plot(delays, [100 * int(row["seeds_with_lost_removals"]) / int(row["seeds"]) for row in rows],
                    marker="o", label=rule)
        waits.plot(delays, [float(row["wait"]) for row in rows], marker="o", label=rule)
    losses.set_ylabel("seeds with a lost removal, %")
    waits.set_ylabel("mean time from a change to its slave")
    for axes in (losses, waits):
        axes.set_xlabel("greatest mean delay of a link, times between two changes")
        axes.set_xscale("log")
        axes.set_ylim(0, None)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(f"{folder}/delays.png", dpi=120)


if __name__ == "__main__":
    main()
