"""What a query of Prometheus names: metrics and labels, compared with those that the sources declare."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "integration"))

import metrics_page  # noqa: E402

# Labels that Prometheus adds to what it scrapes; `process` and `role` come from monitoring/targets.py.
TARGET_LABELS = {"process", "role", "instance", "job"}
# Metrics that Prometheus makes itself.
OWN = {"up"}
STRING = r'"(?:[^"\\]|\\.)*"' + "|" + r"'(?:[^'\\]|\\.)*'"
METRIC = re.compile(r"(?<![\w:])(fjord_\w+|up)(?![\w(:])\s*(\{[^}]*\})?")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")


def series():
    """Returns the labels of each series that a process may show, by its name, and the metric that it belongs to."""
    known = {}
    for name, metric in metrics_page.metrics().items():
        parts = [("_bucket", {"le"}), ("_sum", set()), ("_count", set())] if metric.kind == "histogram" else [("", set())]
        for suffix, more in parts:
            known[name + suffix] = (name, set(metric.labels) | more)
    return known


def selectors(query):
    """Yields (series, labels in its braces) of a query."""
    # Grouping labels are no metrics, and neither is anything in quotation marks.
    bare = re.sub(STRING, '""', query)
    for found in METRIC.finditer(GROUPING.sub("", bare)):
        yield found.group(1), set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", found.group(2) or ""))


def metrics_of(query, known):
    """Returns the declared metrics that a query reads."""
    return {known[name][0] for name, _ in selectors(query) if name in known}


def faults(place, query, known, more=()):
    """Yields what is wrong with the names in a query. `more` are labels that it is shown by, for example in a legend."""
    available = set(TARGET_LABELS)
    for name, labels in selectors(query):
        if name not in known and name not in OWN:
            yield f"{place}: there is no metric {name}"
            continue
        own = known[name][1] if name in known else set()
        available |= own
        for label in sorted(labels - own - TARGET_LABELS):
            yield f"{place}: {name} has no label {label}"
    grouped = {label.strip() for group in GROUPING.findall(query) for label in group.split(",") if label.strip()}
    for label in sorted((grouped | set(more)) - available):
        yield f"{place}: no metric of the query has the label {label}"
