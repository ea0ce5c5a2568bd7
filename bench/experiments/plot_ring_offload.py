#!/usr/bin/env python3
"""Plots of `./run experiment ring-offload`: reads cells.csv and rules.csv of a folder and writes cells.png and rules.png beside them."""

import sys

import plots


def plot_cells(folder):
    designs = plots.by(plots.read(folder, "cells"), "design")
    figure, axes = plots.plt.subplots(1, len(designs), figsize=(5 * len(designs), 4.4), sharey=True, squeeze=False)
    for axis, (design, cells) in zip(axes.flat, designs.items()):
        for keys, rows in plots.by(cells, "keys").items():
            axis.errorbar([float(row["paper_seconds"]) for row in rows], [float(row["seconds"]) for row in rows],
                          [float(row["interval"]) for row in rows], fmt="o", markersize=4, label=f"{keys} keys")
        axis.plot([24, 32], [24, 32], color="black", linewidth=0.8, label="the same")
        plots.finish(axis, "seconds in [ADLB, tables 1 to 3]", "seconds here", f"design {design}: a point for each N and T")
    plots.save(figure, f"{folder}/cells.png")


def plot_rules(folder):
    designs = plots.by(plots.read(folder, "rules"), "design")
    figure, axes = plots.plt.subplots(1, len(designs), figsize=(5 * len(designs), 4), sharey=True, squeeze=False)
    for axis, (design, rows) in zip(axes.flat, designs.items()):
        for at, (rule, points) in enumerate(plots.by(rows, "rule").items()):
            axis.bar([i + 0.2 * at for i in range(len(points))], [float(row["seconds"]) for row in points], 0.2,
                     yerr=[float(row["interval"]) for row in points], label=rule)
        axis.set_xticks([i + 0.3 for i in range(3)], [row["keys"] for row in points])
        axis.set_ylim(bottom=20)
        plots.finish(axis, "keys", "seconds", f"design {design}")
    plots.save(figure, f"{folder}/rules.png")


def main():
    plot_cells(sys.argv[1])
    plot_rules(sys.argv[1])


if __name__ == "__main__":
    main()
