#!/usr/bin/env python3
"""Plots of `./run experiment balance-simulated`: reads results and rounds of a folder and writes p95.png and rounds.png beside
them; with the suffix -large or -designs those of a run with that option."""

import pathlib
import sys

import plots

LINES = ("(no balancer)", "descent", "weighted-move")


def grid(count):
    columns = min(4, count)
    rows = -(-count // columns)
    figure, axes = plots.plt.subplots(rows, columns, figsize=(4.4 * columns, 4.2 * rows), squeeze=False)
    for unused in list(axes.flat)[count:]:
        unused.set_visible(False)
    return figure, axes.flat


def plot_p95(folder, suffix):
    traces = plots.by(plots.read(folder, f"results{suffix}"), "trace")
    figure, axes = grid(len(traces))
    for axis, (trace, rows) in zip(axes, traces.items()):
        rows = sorted(rows, key=lambda row: -float(row["p95"]))
        labels = [row["variant"] or row["algorithm"] for row in rows]
        axis.barh(labels, [float(row["p95"]) for row in rows], color=["tab:orange" if label == "descent" else "tab:blue" for label in labels])
        axis.axvline(1.15, color="black", linewidth=0.8)
        axis.tick_params(axis="y", labelsize=7)
        axis.set_xlim(left=1)
        plots.finish(axis, "95th percentile of max/mean; line: 1.15", "", trace, legend=False)
    plots.save(figure, f"{folder}/p95{suffix}.png")


def plot_rounds(folder, suffix):
    traces = plots.by(plots.read(folder, f"rounds{suffix}"), "trace")
    figure, axes = grid(len(traces))
    for axis, (trace, rows) in zip(axes, traces.items()):
        for name, line in plots.by(rows, "algorithm", "variant").items():
            if line[0]["variant"] or line[0]["algorithm"] in LINES:
                axis.plot([int(row["round"]) for row in line], [float(row["imbalance"]) for row in line],
                          linewidth=0.9, label=line[0]["variant"] or name)
        axis.set_ylim(bottom=1)
        plots.finish(axis, "round", "max/mean", trace)
    plots.save(figure, f"{folder}/rounds{suffix}.png")


def main():
    folder = sys.argv[1]
    for suffix in ("", "-large", "-designs"):
        if pathlib.Path(folder, f"results{suffix}.csv").exists():
            plot_p95(folder, suffix)
            plot_rounds(folder, suffix)


if __name__ == "__main__":
    main()
