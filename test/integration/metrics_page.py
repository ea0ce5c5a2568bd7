"""docs/reference/metrics.md, made from the calls in the sources that declare metrics.

    python3 -B test/integration/metrics_page.py > docs/reference/metrics.md
    python3 -B test/integration/metrics_page.py --check

--check compares the page with the sources, and ends with 1 if they differ, if a metric has no meaning, or if it is declared
in more than one place. One call declares a metric for all values of its labels.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "metrics.md"
# All code that is part of a node; storage nodes contain a client for the output of tasks.
FOLDERS = ("client", "common", "distributor", "fleetcontroller", "gateway", "mapreduce", "monitoring", "plugins", "rpc", "scripting", "search", "storage",
           "tools/node", "visitors")
COMPONENTS = {
    "process": "Every process: itself",
    "machine": "Every process: its machine",
    "rpc": "Every process: messages",
    "fleetcontroller": "Fleet controllers",
    "distributor": "Distributors",
    "gateway": "Distributors: calls of Thrift clients",
    "http": "Gateways: HTTP clients",
    "search": "Searches: on distributors, and their parts on storage nodes",
    "job": "Jobs: on distributors, and their tasks on storage nodes",
    "setting": "Every process: settings",
    "storage": "Storage nodes",
    "slotfile": "Storage nodes: the slotfile engine",
    "visitor": "Storage nodes: visits",
    "client": "Processes with a client: gateways, and storage nodes for what tasks put",
    "plugin": "Processes that plugins run in",
    "script": "Processes that scripts run in",
}
HEAD = """# Metrics

Every process shows its metrics at `http://HOST:PORT/metrics` in the text format of Prometheus, and whether it serves at `/health`. The
address is the line `http` of the process in the configuration file, and of a gateway its `address`; `fjord local status` prints it.
[Monitoring](../operating/monitoring.md) has boards and alerts.

A counter only rises and begins with 0 when the process starts. A gauge is a value of now. A histogram has the series
`NAME_bucket` with the label `le`, `NAME_sum` and `NAME_count`; its bounds double from 16 microseconds to 33 seconds. The name
says the unit; without one it is a number. A metric with labels is shown once for each of their values that has occurred.

Made from the sources by `test/integration/metrics_page.py`; tests compare, also with what a running cluster shows.
"""
# Labels of metrics that are registered in a loop.
LABELS = {"fjord_slotfile_sampled_": ["entries_below"], "fjord_slotfile_": ["stripe"]}
# Units by what a name contains before `_total`.
UNITS = (("_bytes_per_second", "bytes/s"), ("_bytes", "bytes"), ("_seconds", "s"), ("_us", "µs"), ("_percent", "%"))
# Metrics that several calls declare: how many, and why. Other metrics are declared once.
DECLARED_OFTEN = {
    "fjord_distributor_foreground_seconds": (2, "jobs read what operations count"),
    "fjord_job_finished_total": (3, "job_service_impl.h is being split"),
    "fjord_visitor_buckets_total": (2, "server_visitor.cpp is being split"),
    "fjord_visitor_wait_seconds": (2, "visitor_service.cpp is being split"),
}
STRING = r'"(?:[^"\\]|\\.)*"'
CALL = re.compile(rf'(?<![\w"])(counter|gauge|histogram)\(\s*({STRING})\s*,')


class Metric:
    def __init__(self, kind, name, meaning, labels, place):
        self.kind, self.name, self.meaning, self.labels, self.place = kind, name, meaning, labels, place


def end_of_call(text, begin):
    """Returns the position behind the parenthesis that closes the one before `begin`."""
    depth, at = 1, begin
    while depth > 0:
        string = re.match(STRING, text[at:])
        at += string.end() if string else 1
        if not string:
            depth += {"(": 1, ")": -1}.get(text[at - 1], 0)
    return at


def literal(text):
    """Returns the value of adjacent string literals at the beginning of `text`; empty if there is none."""
    parts = re.match(rf"\s*((?:{STRING}\s*)*)", text).group(1)
    return "".join(part[1:-1] for part in re.findall(STRING, parts)).replace('\\"', '"')


def registered():
    """Returns all registrations as (metric) objects; a name may occur several times."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h"):
                continue
            text = path.read_text()
            for call in CALL.finditer(text):
                name = call.group(2)[1:-1]
                if not name.startswith("fjord_"):
                    continue
                arguments = text[call.end():end_of_call(text, call.end(1) + 1)]
                labels = next((names for prefix, names in LABELS.items() if name.startswith(prefix)),
                              re.findall(r'\{\s*"(\w+)"\s*,', arguments))
                found.append(Metric(call.group(1), name, literal(arguments), labels, f"{path.relative_to(ROOT)}"))
    return found


def metrics():
    """Returns the metrics by name. Registrations of one metric have to agree."""
    by_name = {}
    for one in registered():
        known = by_name.setdefault(one.name, one)
        if not one.meaning:
            raise SystemExit(f"{one.place}: the metric {one.name} needs its meaning as a text in the call that registers it")
        if (known.kind, known.meaning, known.labels) != (one.kind, one.meaning, one.labels):
            raise SystemExit(f"{one.place} and {known.place} disagree about the metric {one.name}")
    return by_name


def declared_twice():
    """Returns the violations of the rule that one call declares a metric."""
    places = {}
    for one in registered():
        places.setdefault(one.name, []).append(one.place)
    return [f"{found[-1]}: the metric {name} is declared {len(found)} times" for name, found in sorted(places.items())
            if len(found) > DECLARED_OFTEN.get(name, (1, ""))[0]]


def unit_of(name):
    stem = name.removesuffix("_total")
    return next((unit for part, unit in UNITS if stem.endswith(part) or f"{part}_" in stem), "")


def component_of(name):
    return name.split("_")[1]


def page():
    by_name = metrics()
    lines = [HEAD]
    unknown = {component_of(name) for name in by_name} - set(COMPONENTS)
    if unknown:
        raise SystemExit(f"metrics_page.py: say in COMPONENTS what these are: {', '.join(sorted(unknown))}")
    for component, title in COMPONENTS.items():
        names = sorted(name for name in by_name if component_of(name) == component)
        if not names:
            continue
        lines += [f"## {title}", "", "| metric | kind | unit | labels | meaning |", "|---|---|---|---|---|"]
        for name in names:
            one = by_name[name]
            labels = ", ".join(f"`{label}`" for label in one.labels)
            meaning = one.meaning.rstrip(".").replace("|", "\\|")
            lines.append(f"| `{name}` | {one.kind} | {unit_of(name)} | {labels} | {meaning}. |")
        lines.append("")
    return "\n".join(lines)


def check():
    faults = declared_twice()
    if PAGE.read_text(encoding="utf-8") != page():
        faults.append(f"{PAGE.relative_to(ROOT)}:1: not what the sources say; {__doc__.splitlines()[2].strip()}")
    for fault in faults:
        print(fault)
    print(f"{len(metrics())} metrics, {len(faults)} violations")
    return 1 if faults else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    print(page(), end="")
