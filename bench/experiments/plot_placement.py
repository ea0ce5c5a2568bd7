#!/usr/bin/env python3
"""Plots and tables of `./run experiment placement`: reads the CSV files of a folder, writes PNG files beside them and the
tables in Markdown to standard output."""

import csv
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# [VDS 2007, table 2.2]: speed, additions, removals.
SEED = {
    "uniform": ("O(1)", "poor", "poor"), "list": ("O(n)", "optimal", "poor"), "tree": ("O(log n)", "good", "good"),
    "straw2": ("O(n)", "optimal", "optimal"),
}


def read(folder, name):
    with open(f"{folder}/{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def unevenness(counts):
    mean = sum(counts) / len(counts)
    return max(counts) / mean, min(counts) / mean


def plot_keys(folder, rows):
    figures = defaultdict(lambda: defaultdict(list))
    for row in rows:
        figures[int(row["tokens"])][row["scheme"]].append(int(row["keys"]))
    numbers = {1: "figure 7", 50: "figure 8"}
    print("\nKeys on ten nodes [Tell 2016, figures 7 and 8], fullest and emptiest node over the mean:\n")
    print("| tokens a node | scheme | max/mean | min/mean |\n|---|---|---|---|")
    for tokens, schemes in figures.items():
        figure, axes = plt.subplots(1, len(schemes), figsize=(4 * len(schemes), 3.6), sharey=False)
        for axis, (scheme, counts) in zip(axes, schemes.items()):
            axis.bar(range(len(counts)), [count / 1000 for count in counts])
            axis.axhline(sum(counts) / len(counts) / 1000, color="black", linewidth=0.8)
            axis.set(title=scheme, xlabel="node", ylabel="thousand keys")
            most, least = unevenness(counts)
            print(f"| {tokens} | {scheme} | {most:.3f} | {least:.3f} |")
        figure.suptitle(f"{tokens} tokens a node" + (f" [Tell 2016, {numbers[tokens]}]" if tokens in numbers else ""))
        figure.tight_layout()
        figure.savefig(f"{folder}/keys-{tokens}-tokens.png", dpi=110)
        plt.close(figure)


def by_algorithm(rows, change):
    table = defaultdict(dict)
    for row in rows:
        if row["change"] == change:
            table[row["algorithm"]][int(row["nodes"])] = {key: float(row[key]) for key in row
                                                          if key not in ("algorithm", "change")}
    return table


def plot_algorithms(folder, rows):
    figure, axes = plt.subplots(1, 4, figsize=(19, 4.5))
    for axis, change in zip(axes, ("add", "remove", "reweight")):
        for algorithm, values in by_algorithm(rows, change).items():
            points = [values[nodes]["moved_over_least"] for nodes in sorted(values)]
            axis.plot(sorted(values), points, marker="o", label=algorithm)
        axis.set(title=change, xlabel="nodes", xscale="log", yscale="symlog", ylabel="moved, times the least")
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_ylim(0, None)
    for algorithm, values in by_algorithm(rows, "add").items():
        axes[3].plot(sorted(values), [values[nodes]["map_ns"] for nodes in sorted(values)], marker="o", label=algorithm)
    axes[3].set(title="time", xlabel="nodes", xscale="log", yscale="log", ylabel="ns a mapping, three replicas")
    axes[3].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(f"{folder}/algorithms.png", dpi=110)
    plt.close(figure)


def print_table_22(rows):
    add, remove, reweight = (by_algorithm(rows, change) for change in ("add", "remove", "reweight"))
    print("\nSeed 002, table 2.2, flat, three replicas: nanoseconds a mapping with 10, 100 and 1,000 nodes; moved replicas as "
          "a multiple of the least possible with 10 and 100 nodes:\n")
    print("| algorithm | paper: speed | ns 10 | ns 100 | ns 1,000 | paper: additions | add 10 | add 100 | paper: removals | "
          "remove 10 | remove 100 | reweight 10 | reweight 100 |")
    print("|" + "---|" * 13)
    for algorithm, values in add.items():
        speed, additions, removals = SEED.get(algorithm, ("", "", ""))
        times = " | ".join(f"{values[nodes]['map_ns']:,.0f}" for nodes in (10, 100, 1000))
        added, removed, weighted = (" | ".join(f"{table[algorithm][nodes]['moved_over_least']:.2f}" for nodes in (10, 100))
                                    for table in (add, remove, reweight))
        print(f"| {algorithm} | {speed} | {times} | {additions} | {added} | {removals} | {removed} | {weighted} |")
    print("\nBalance of three replicas, fullest node over the mean: equal nodes, and after the middle one got twice the "
          "capacity:\n")
    print("| algorithm | 10 nodes | 100 nodes | 1,000 nodes | 10, one of capacity 2 | 100, one of capacity 2 |")
    print("|---|---|---|---|---|---|")
    for algorithm, values in reweight.items():
        even = " | ".join(f"{values[nodes]['max_over_mean']:.3f}" for nodes in (10, 100, 1000))
        heavy = " | ".join(f"{values[nodes]['max_over_mean_after']:.3f}" for nodes in (10, 100))
        print(f"| {algorithm} | {even} | {heavy} |")


def print_rows(title, rows, names):
    print(f"\n{title}:\n")
    print("| " + " | ".join(names.values()) + " |\n|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(row[name] for name in names) + " |")


def print_times(rows):
    table = defaultdict(dict)
    for row in rows:
        table[row["algorithm"]][row["what"]] = f"{row['value']} {row['unit']}"
    whats = list(dict.fromkeys(row["what"] for row in rows))
    print("\n100 nodes in three levels, three replicas:\n")
    print("| algorithm | " + " | ".join(whats) + " |\n|" + "---|" * (len(whats) + 1))
    for algorithm, values in table.items():
        print(f"| {algorithm} | " + " | ".join(values.get(what, "") for what in whats) + " |")


def main():
    folder = sys.argv[1]
    plot_keys(folder, read(folder, "keys"))
    rows = read(folder, "algorithms")
    plot_algorithms(folder, rows)
    print_table_22(rows)
    print_rows("Consistent hashing, one replica on ten nodes", read(folder, "tokens"),
               {"tokens": "tokens", "max_over_mean": "max/mean", "stddev": "stddev", "map_ns": "ns a mapping",
                "prepare_us": "us to make the ring"})
    print_times(read(folder, "times"))
    print_rows("1,000 nodes in ten racks of ten hosts lose a rack", read(folder, "settle"),
               {"algorithm": "algorithm", "buckets": "buckets", "placed_s": "all placed anew, s", "moved": "moved",
                "least": "lost with the rack", "short": "buckets without three nodes",
                "max_over_mean": "max/mean after"})
    print_rows("Exceptions: buckets of 1 to 5 MB, redundancy 3; then node 3 fails and the plan is made again",
               read(folder, "exceptions"),
               {"algorithm": "algorithm", "nodes": "nodes", "buckets": "buckets", "without": "max/mean without",
                "after": "with", "rows": "rows", "rows_after_failure": "rows after the failure",
                "kept": "of these from before", "plan_ms": "plan, ms"})


if __name__ == "__main__":
    main()
