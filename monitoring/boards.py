"""The Grafana boards in monitoring/grafana, made from monitoring/boards.yaml.

    python3 -B monitoring/boards.py
    python3 -B monitoring/boards.py --check

--check compares the files with the description, and the names in it with the metrics that the sources declare: each is on a
panel or in `left_out`. Ends with 1 if something is wrong.
"""

import json
import pathlib
import re
import sys

import yaml

import queries
from queries import metrics_page

FOLDER = pathlib.Path(__file__).resolve().parent
COLUMNS, STAT_WIDTH, GRAPH_WIDTH, STAT_HEIGHT, GRAPH_HEIGHT = 24, 4, 8, 4, 8
KINDS = ("rate", "value", "max", "ratio", "mean", "quantiles", "expr")
# Grafana's names of units.
UNITS = {"bytes/s": "Bps", "%": "percent", "": "none"}
MATCH = '{process=~"$process"}'
RATE = "[$__rate_interval]"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def description():
    return yaml.safe_load((FOLDER / "boards.yaml").read_text(encoding="utf-8"))


def as_list(value):
    return value if isinstance(value, list) else [value]


def short(name, others):
    """Returns the name of a metric without what all of a panel have in common."""
    parts = [one.removesuffix("_total").split("_") for one in [name, *others]]
    common = 0
    while common < min(map(len, parts)) - 1 and len({tuple(one[:common + 1]) for one in parts}) == 1:
        common += 1
    return " ".join(parts[0][common:])


def queries_of(panel):
    """Returns (query, legend) of each line of a panel."""
    kind = next(one for one in KINDS if one in panel)
    by = panel.get("by", [])
    group = f" by ({', '.join(by)})" if by else ""
    labels = " ".join(f"{{{{{label}}}}}" for label in by)
    names = as_list(panel[kind])
    if kind == "expr":
        return [(panel["expr"], panel.get("legend", "value"))]
    if kind in ("ratio", "mean"):
        above, below = (f"sum{group} (rate({name}{MATCH}{RATE}))" for name in names)
        return [(f"{above} / {below}", labels or "value")]
    lines = []
    for name in names:
        legend = " ".join(filter(None, [labels, short(name, names) if len(names) > 1 else ""])) or short(name, [])
        if kind == "quantiles":
            inner = f"sum by ({', '.join([*by, 'le'])}) (rate({name}_bucket{MATCH}{RATE}))"
            lines += [(f"histogram_quantile({q}, {inner})", " ".join(filter(None, [labels, text])))
                      for q, text in ((0.5, "median"), (0.99, "99 %"))]
        elif kind == "rate":
            lines.append((f"sum{group} (rate({name}{MATCH}{RATE}))", legend))
        else:
            lines.append((f"{'max' if kind == 'max' else 'sum'}{group} ({name}{MATCH})", legend))
    return lines


def unit_of(panel):
    if "unit" in panel or "expr" in panel:
        return panel.get("unit", "none")
    if "ratio" in panel:
        return "percentunit"
    name = as_list(next(panel[kind] for kind in KINDS if kind in panel))[0]
    unit = metrics_page.unit_of(name)
    return "Bps" if "rate" in panel and unit == "bytes" else UNITS.get(unit, unit)


def text_of(panel, known, declared):
    """Returns what the sources say about the metrics of a panel."""
    names = sorted({name for query, _ in queries_of(panel) for name in queries.metrics_of(query, known)})
    return "\n\n".join(f"`{name}`: {declared[name].meaning.rstrip('.')}." for name in names)


def panel_json(panel, number, place, known, declared):
    is_stat = panel.get("kind") == "stat"
    steps = [{"color": "green", "value": None}]
    if "bad_from" in panel:
        steps.append({"color": "red", "value": panel["bad_from"]})
    made = {"id": number, "type": "stat" if is_stat else "timeseries", "title": panel["title"],
            "description": text_of(panel, known, declared), "datasource": SOURCE, "gridPos": place,
            "fieldConfig": {"defaults": {"unit": unit_of(panel), "thresholds": {"mode": "absolute", "steps": steps}}, "overrides": []},
            "targets": [{"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query, "legendFormat": legend}
                        for at, (query, legend) in enumerate(queries_of(panel))]}
    if is_stat:
        made["options"] = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "background" if "bad_from" in panel else "value"}
    else:
        made["fieldConfig"]["defaults"]["min"] = 0
        made["options"] = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    return made


def annotation_json(mark):
    return {"name": mark["title"], "datasource": SOURCE, "enable": True, "iconColor": mark["colour"], "expr": mark["expr"],
            "step": "30s", "titleFormat": mark["title"], "textFormat": "{{process}}", "tagKeys": ""}


def board_json(board, marks, known, declared):
    """Returns the text of a board's file, with a line for each panel."""
    panels, number, top = [], 0, 0
    for row in board["rows"]:
        number += 1
        panels.append({"id": number, "type": "row", "title": row["title"], "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1}})
        left, top, height = 0, top + 1, 0
        for panel in row["panels"]:
            number += 1
            is_stat = panel.get("kind") == "stat"
            width, tall = (STAT_WIDTH, STAT_HEIGHT) if is_stat else (GRAPH_WIDTH, GRAPH_HEIGHT)
            if left + width > COLUMNS:
                left, top = 0, top + height
            height = tall
            panels.append(panel_json(panel, number, {"x": left, "y": top, "w": width, "h": tall}, known, declared))
            left += width
        top += height
    choices = [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {"name": "process", "label": "Process", "type": "query", "datasource": SOURCE, "refresh": 2, "sort": 1, "multi": True,
         "includeAll": True, "allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]},
         "definition": 'label_values(up{role!=""}, process)',
         "query": {"query": 'label_values(up{role!=""}, process)', "refId": "process"}}]
    head = {"uid": f"fjord-{board['name']}", "title": board["title"], "tags": ["fjord"], "schemaVersion": 37, "editable": True,
            "refresh": "10s", "time": {"from": "now-1h", "to": "now"}, "templating": {"list": choices},
            "annotations": {"list": [annotation_json(mark) for mark in marks]},
            "links": [{"type": "dashboards", "tags": ["fjord"], "title": "Fjord", "asDropdown": True, "keepTime": True}]}
    lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)},\n" for key, value in head.items()]
    shown = ",\n  ".join(json.dumps(panel, ensure_ascii=False) for panel in panels)
    return "{\n" + "".join(lines) + f' "panels": [\n  {shown}\n ]\n}}\n'


def panels_of(described):
    for board in described["boards"]:
        for row in board["rows"]:
            for panel in row["panels"]:
                yield f"boards.yaml, {board['name']}, {row['title']}, {panel['title']}", panel


def files():
    """Returns the text of each file of monitoring/grafana by its name."""
    known, declared = queries.series(), metrics_page.metrics()
    described = description()
    return {f"{board['name']}.json": board_json(board, described["annotations"], known, declared) for board in described["boards"]}


def faults():
    described, known, declared = description(), queries.series(), metrics_page.metrics()
    shown = set()
    for place, panel in panels_of(described):
        if sum(kind in panel for kind in KINDS) != 1:
            yield f"{place}: needs one of {', '.join(KINDS)}"
            continue
        for query, legend in queries_of(panel):
            yield from queries.faults(place, query, known, re.findall(r"\{\{(\w+)\}\}", legend))
            shown |= queries.metrics_of(query, known)
    for mark in described["annotations"]:
        yield from queries.faults(f"boards.yaml, {mark['title']}", mark["expr"], known, ["process"])
    left_out = described["left_out"]
    for name in sorted(declared):
        if name not in shown and not left_out.get(name):
            yield f"boards.yaml: no panel shows {name}, and `left_out` has no reason for that"
    for name in sorted(left_out):
        if name not in declared or name in shown:
            yield f"boards.yaml: left_out: {name} is {'on a panel' if name in shown else 'not declared'}"
    for name in sorted(described["appears_only"]):
        if name not in shown:
            yield f"boards.yaml: appears_only: no panel shows {name}"


def stale_files():
    made = files()
    folder = FOLDER / "grafana"
    for name in sorted({*made, *(path.name for path in folder.glob("*.json"))}):
        path = folder / name
        if name not in made or not path.exists() or path.read_text(encoding="utf-8") != made[name]:
            yield f"grafana/{name}: not what boards.yaml says; python3 -B monitoring/boards.py"


def main():
    found = list(faults())
    if sys.argv[1:] == ["--check"]:
        found += [] if found else stale_files()
    elif not found:
        (FOLDER / "grafana").mkdir(exist_ok=True)
        for name, text in files().items():
            (FOLDER / "grafana" / name).write_text(text, encoding="utf-8")
    for fault in found:
        print(fault)
    print(f"{len(list(panels_of(description())))} panels, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
