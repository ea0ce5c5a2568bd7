#!/usr/bin/env python3
"""Plots of `./run experiment keyword-search`: reads keyword-search.csv of a folder and writes a PNG file for each number of keywords."""

import statistics
import sys

import plots


def median(rows):
    return statistics.median(float(row["p50_us"]) for row in rows)


def plot(folder, keywords, rows):
    figure, (lines, bars) = plots.plt.subplots(1, 2, figsize=(13, 5.5))
    at_random = {}
    for store, of_store in plots.by(rows, "store").items():
        queries = plots.by(of_store, "queries")
        points = sorted((int(name.split()[0]), median(turns)) for name, turns in queries.items() if name.endswith(" matches"))
        lines.plot(*zip(*points), marker="." if store.startswith("one") else "x", linestyle="-" if store.startswith("one") else "--", label=store)
        at_random[store] = median(queries["1,600 random"])
    lines.set_xscale("log")
    lines.set_yscale("log")
    lines.axhline(200, color="black", linewidth=0.8)
    plots.finish(lines, "keywords that match", "us of processor time, p50; line: 200", f"{int(keywords):,} keywords")
    bars.barh(list(at_random), list(at_random.values()))
    plots.finish(bars, "us of processor time, p50", "", "1,600 random queries", legend=False)
    plots.save(figure, f"{folder}/keyword-search-{keywords}.png")


def main():
    folder = sys.argv[1]
    for keywords, rows in plots.by(plots.read(folder, "keyword-search"), "keywords").items():
        plot(folder, keywords, rows)


if __name__ == "__main__":
    main()
