#!/usr/bin/env python3
"""Plots of `./run experiment tars-simulated`: reads the CSV files of a folder and writes PNG files beside them."""

import sys

import plots
from plots import by, plt, read


def save(figure, axes, path, x, y, title):
    plots.finish(axes, x, y, title)
    axes.set_ylim(0, None)
    plots.save(figure, path)


def plot_cache_sizes(folder):
    figure, axes = plt.subplots(figsize=(6, 4))
    for label, rows in by(read(folder, "cache-sizes"), "log").items():
        axes.plot([float(row["cache_over_s10"]) for row in rows], [100 * float(row["miss_rate"]) for row in rows],
                  marker=".", label=label)
    save(figure, axes, f"{folder}/figure-5.png", "size of one cache, times S10", "pages missed, %",
         "[CALB 2019, figure 5]")


def plot_clusterings(folder):
    figure, axes = plt.subplots(figsize=(6, 4))
    for label, rows in by(read(folder, "clusterings"), "log").items():
        axes.plot([float(row["cut"]) for row in rows], [100 * float(row["miss_rate"]) for row in rows], ".",
                  markersize=3, label=label)
    save(figure, axes, f"{folder}/figure-3.png", "cost of cut edges over that of all", "pages missed, %",
         "[CALB 2019, figure 3]")


def plot_refinement(folder):
    for number, log in ((6, "train"), (7, "valid")):
        figure, axes = plt.subplots(figsize=(6, 4))
        for label, rows in by(read(folder, "refinement"), "log", "tau").items():
            axes.plot([int(row["round"]) for row in rows], [100 * float(row[log]) for row in rows], label=f"{label}")
        save(figure, axes, f"{folder}/figure-{number}.png", "rounds of refinement", "pages missed, %",
             f"log {log}, R = 3 [CALB 2019, figure {number}]")


def plot_misses(folder):
    rows = read(folder, "misses")
    ways = [name[5:] for name in rows[0] if name.startswith("miss ")]
    for log, group in by(rows, "log").items():
        figure, axes = plt.subplots(figsize=(6, 4))
        for way in ways:
            axes.plot([int(row["replicas"]) for row in group], [100 * float(row[f"miss {way}"]) for row in group],
                      marker=".", label=way)
        save(figure, axes, f"{folder}/misses-{log.replace(' ', '-')}.png", "replicas", "pages missed, %", log)


def main():
    folder = sys.argv[1]
    plot_cache_sizes(folder)
    plot_clusterings(folder)
    plot_refinement(folder)
    plot_misses(folder)


if __name__ == "__main__":
    main()
