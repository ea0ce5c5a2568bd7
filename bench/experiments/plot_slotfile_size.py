#!/usr/bin/env python3
"""Plots and tables of `./run experiment slotfile-size`: reads summary.csv and samples.csv of a folder, writes PNG files
beside them and the tables in Markdown to standard output."""

import csv
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# [VDS 2007, table 5.1]: estimate (doubled) and largest number measured, by document size and slotfile size.
SEED = {
    (155000, 4 << 20): (256, 256), (155000, 8 << 20): (128, 128), (155000, 16 << 20): (64, 32),
    (155000, 64 << 20): (16, 8), (155000, 128 << 20): (8, 4), (155000, 256 << 20): (4, 2),
    (215000, 4 << 20): (256, 512), (215000, 8 << 20): (128, 128), (215000, 16 << 20): (64, 64),
    (215000, 64 << 20): (16, 16), (215000, 128 << 20): (8, 8), (215000, 256 << 20): (4, 4),
    (800, 128 << 10): (512, 1024), (800, 512 << 10): (128, 256), (800, 1 << 20): (64, 64), (800, 2 << 20): (32, 32),
    (1200, 128 << 10): (1024, 2048), (1200, 512 << 10): (256, 256), (1200, 1 << 20): (128, 128),
    (1200, 2 << 20): (64, 64),
}


def read(path):
    with open(path, newline="") as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


def size_text(number):
    number = int(number)
    return f"{number >> 20} MiB" if number >= 1 << 20 else f"{number >> 10} KiB"


def document_text(number):
    return f"{number / 1000:g} kB"


def by_document(rows):
    groups = defaultdict(list)
    for row in rows:
        groups[row["document_bytes"]].append(row)
    return groups


def plot_summary(rows, folder):
    for document, group in by_document(rows).items():
        labels = [size_text(row["file_bytes"]) for row in group]
        figure, (times, counts) = plt.subplots(1, 2, figsize=(10, 4))
        times.plot(labels, [row["put_s"] for row in group], marker="o", label="put")
        times.plot(labels, [row["visit_s"] for row in group], marker="s", label="visit")
        times.set(ylabel="seconds", xlabel="maximum slotfile size", ylim=(0, None))
        times.legend()
        counts.plot(labels, [row["slotfiles_estimate"] for row in group], marker="x", label="estimate, doubled")
        counts.plot(labels, [row["slotfiles_max"] for row in group], marker="o", label="measured")
        seed = [SEED.get((int(document), int(row["file_bytes"])), (None, None))[1] for row in group]
        counts.plot(labels, seed, marker="^", linestyle=":", label="measured in the seed")
        counts.set(ylabel="slotfiles of a bucket", xlabel="maximum slotfile size", yscale="log")
        counts.legend()
        figure.suptitle(f"{int(group[0]['documents'])} documents of {document_text(document)}")
        figure.tight_layout()
        figure.savefig(f"{folder}/slotfile-size-{int(document)}.png", dpi=110)
        plt.close(figure)


def plot_samples(rows, folder):
    for document, group in by_document(rows).items():
        figure, axes = plt.subplots(1, 3, figsize=(14, 4))
        curves = defaultdict(list)
        for row in group:
            curves[row["file_bytes"]].append(row)
        for file_bytes, points in curves.items():
            seconds = [point["second"] for point in points]
            label = size_text(file_bytes)
            axes[0].plot(seconds, [point["put"] for point in points], label=label)
            memory = [(point["index_bytes"] + point["held_bytes"]) / (1 << 20) for point in points]
            axes[1].plot(seconds, memory, label=label)
            disk = [(point["slotfile_bytes"] + point["journal_bytes"]) / (1 << 20) for point in points]
            axes[2].plot(seconds, disk, label=label)
        for axis, text in zip(axes, ("documents put", "MiB of indexes and held writes", "MiB of slotfiles and journal")):
            axis.set(xlabel="seconds", ylabel=text)
        axes[0].legend(title="slotfile size")
        figure.suptitle(f"documents of {document_text(document)}")
        figure.tight_layout()
        figure.savefig(f"{folder}/over-time-{int(document)}.png", dpi=110)
        plt.close(figure)


def print_tables(rows):
    for document, group in by_document(rows).items():
        print(f"\n{int(group[0]['documents']):,} documents of {document_text(document)}, 10 buckets:\n")
        print("| slotfile size | put s | visit s | slowest batch ms | estimate | slotfiles | paper: estimate | "
              "paper: slotfiles | rewritten MiB | index MiB | disk, times the documents |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for row in group:
            seed = SEED.get((int(document), int(row["file_bytes"])), ("", ""))
            print(f"| {size_text(row['file_bytes'])} | {row['put_s']:.2f} | {row['visit_s']:.2f} | "
                  f"{row['slowest_batch_ms']:.1f} | {int(row['slotfiles_estimate'])} | {int(row['slotfiles_max'])} | "
                  f"{seed[0]} | {seed[1]} | {row['rewritten_bytes'] / (1 << 20):,.0f} | "
                  f"{row['index_bytes'] / (1 << 20):.1f} | "
                  f"{row['disk_bytes'] / (row['documents'] * row['document_bytes']):.2f} |")


def main():
    folder = sys.argv[1]
    summary = read(f"{folder}/summary.csv")
    plot_summary(summary, folder)
    plot_samples(read(f"{folder}/samples.csv"), folder)
    print_tables(summary)


if __name__ == "__main__":
    main()
