"""What the plots of the experiments in C++ have in common: they read CSV files of a folder and write PNG files beside them."""

import csv
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


def read(folder, name):
    with open(f"{folder}/{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def by(rows, *names):
    """Returns the rows by the values of these columns, with a space between two values."""
    groups = defaultdict(list)
    for row in rows:
        groups[" ".join(row[name] for name in names)].append(row)
    return groups


def finish(axes, x, y, title, legend=True):
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    if legend:
        axes.legend(fontsize=8)


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
