"""Common parts of the experiments in Python: clusters with their own settings, CSV files, plots and tables in Markdown.

`run(doc, name, measure, show)` is the main function of an experiment: `measure(options)` returns rows, which are kept
in OUTPUT/NAME.csv; `show(rows, output)` plots them into OUTPUT and prints tables. `--plot` shows the rows of an earlier
run again.
"""

import argparse
import csv
import os
import pathlib
import resource
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("FJORD_BIN", str(ROOT / "build" / "release" / "bin"))
sys.path.insert(0, str(ROOT / "test" / "integration"))
import harness  # noqa: E402


def say(text):
    print(text, file=sys.stderr, flush=True)


def timed(call):
    """Returns elapsed seconds and CPU seconds of the programs that `call` runs and waits for, and the result of `call`.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    result = call()
    seconds = time.monotonic() - start
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime, result


def table(columns, rows):
    """Prints rows, sequences of texts and numbers, as a table in Markdown; numbers to three digits."""
    def text(value):
        return f"{value:.3g}" if isinstance(value, float) and abs(value) < 100 else f"{value:.0f}" if isinstance(value, float) else str(value)
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(text(value) for value in row) + " |")
    print()


def medians(rows, keys, value):
    """Returns the median of `value` over the rows that agree in `keys`, by the values of these keys."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row[value])
    return {key: statistics.median(values) for key, values in groups.items()}


def pyplot():
    """Imports matplotlib. An experiment without a plot does not need it, and tests run such ones."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot
    return matplotlib.pyplot


def plot_lines(path, lines, x, y, title, log_x=True, log_y=False):
    """`lines`: label -> list of points."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for label, points in lines.items():
        axes.plot(*zip(*sorted(points)), marker="o", label=label)
    if log_x:
        axes.set_xscale("log", base=2)
    if log_y:
        axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)
    axes.set_ylim(bottom=None if log_y else 0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def number(text):
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def run(doc, name, measure, show):
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "experiments" / name)
    parser.add_argument("--quick", action="store_true", help="fewer settings, one run of each")
    parser.add_argument("--plot", action="store_true", help="measure nothing: tables and plots of the last run")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"{name}.csv"
    if not options.plot:
        with open(path, "w", newline="") as file:
            writer = None
            for row in measure(options):
                if writer is None:
                    writer = csv.DictWriter(file, list(row))
                    writer.writeheader()
                writer.writerow(row)
                file.flush()
    with open(path, newline="") as file:
        rows = [{key: number(value) for key, value in row.items()} for row in csv.DictReader(file)]
    show(rows, options.output)
