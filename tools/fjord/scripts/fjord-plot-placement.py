"""Draws what `fjord placement compare --plot FILE` has measured.

    fjord-plot-placement JSON     {"title": ..., "file": FILE, "rows": [{"algorithm": ..., "max_over_mean": ..., ...}]}
"""

import json
import sys

try:
    import matplotlib
except ImportError:
    sys.exit("plotting needs python3-matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402, as the backend has to be chosen before

PANELS = [("max_over_mean", "fullest node, times the mean", "linear"),
          ("moved_over_least", "moved replicas, times the least possible", "symlog"),
          ("map_ns", "nanoseconds a mapping", "log")]


def plot(title, file, rows):
    names = [row["algorithm"] for row in rows]
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.5))
    for axis, (key, label, scale) in zip(axes, PANELS):
        axis.bar(names, [row[key] for row in rows], color="tab:blue")
        axis.set(ylabel=label, yscale=scale)
        axis.tick_params(axis="x", labelrotation=60)
    low = min(row["max_over_mean"] for row in rows)
    axes[0].set_ylim(max(0, 2 * low - max(row["max_over_mean"] for row in rows)), None)
    axes[1].axhline(1, color="black", linewidth=0.8)
    figure.suptitle(title)
    figure.tight_layout()
    try:
        figure.savefig(file, dpi=110, format="png")
    except OSError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    plot(**json.loads(sys.argv[1]))
