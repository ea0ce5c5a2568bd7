#!/usr/bin/env python3
"""Plot of `./run experiment balance-causality`: reads delays.csv of a folder and writes delays.png beside it."""

import sys

import plots


def main():
    folder = sys.argv[1]
    figure, (losses, waits) = plots.plt.subplots(1, 2, figsize=(10, 4))
    for rule, rows in plots.by(plots.read(folder, "delays"), "rule").items():
        delays = [float(row["delay_max"]) for row in rows]
        losses.plot(delays, [100 * int(row["seeds_with_lost_removals"]) / int(row["seeds"]) for row in rows],
                    marker="o", label=rule)
        waits.plot(delays, [float(row["wait"]) for row in rows], marker="o", label=rule)
    for axes, y in ((losses, "seeds with a lost removal, %"), (waits, "mean time from a change to its slave")):
        plots.finish(axes, "greatest mean delay of a link, times between two changes", y, "")
        axes.set_xscale("log")
        axes.set_ylim(0, None)
    plots.save(figure, f"{folder}/delays.png")


if __name__ == "__main__":
    main()
