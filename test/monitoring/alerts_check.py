"""The alert rules and the boards of monitoring/ name metrics and labels that the sources declare; each rule has its section in
docs/operating/monitoring.md, which its `runbook_url` leads to, and a case in monitoring/prometheus/alert_cases.yml."""

import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "monitoring" / "prometheus"
PAGE = "docs/operating/monitoring.md"
PARTS = ("Meaning", "Look at", "Do")
SEVERITIES = {"info", "warning", "critical"}
sys.path.insert(0, str(ROOT / "monitoring"))

import boards  # noqa: E402
import queries  # noqa: E402


def rules():
    return [rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]]


def sections():
    """Returns the text of each section of the third level of the page, by its title."""
    parts = re.split(r"^### (.+)$", (ROOT / PAGE).read_text(encoding="utf-8"), flags=re.M)
    return {title.strip(): re.split(r"^## ", text, flags=re.M)[0] for title, text in zip(parts[1::2], parts[2::2])}


def faults_of(rule, known, runbook):
    name = rule["alert"]
    place = f"alerts.yml, {name}"
    texts = rule["annotations"]
    yield from queries.faults(place, rule["expr"], known, re.findall(r"\$labels\.(\w+)", texts["summary"]))
    if rule["labels"].get("severity") not in SEVERITIES:
        yield f"{place}: severity is one of {', '.join(sorted(SEVERITIES))}"
    if texts["runbook_url"] != f"{PAGE}#{name.lower()}":
        yield f"{place}: runbook_url should be {PAGE}#{name.lower()}"
    for part in PARTS:
        if f"**{part}**" not in runbook.get(name, ""):
            yield f"{PAGE}: the section {name} has no **{part}**"


def main():
    known, runbook, declared = queries.series(), sections(), rules()
    cases = yaml.safe_load((FOLDER / "alert_cases.yml").read_text())
    names = [rule["alert"] for rule in declared]
    faults = [*boards.faults(), *boards.stale_files()]
    for rule in declared:
        faults += faults_of(rule, known, runbook)
        # Without a series of the healthy cluster, its silence would say nothing.
        shown = {key.split()[0] for key in cases["healthy"]}
        missing = {name for name, _ in queries.selectors(rule["expr"])} - shown
        faults += [f"alert_cases.yml: the healthy cluster has no {name}, which {rule['alert']} reads" for name in sorted(missing)]
    faults += [f"alerts.yml: {name} is there twice" for name in sorted({name for name in names if names.count(name) > 1})]
    faults += [f"alert_cases.yml: no case for {name}" for name in names if name not in cases["cases"]]
    faults += [f"alert_cases.yml: there is no alert {name}" for name in cases["cases"] if name not in names]
    faults += [f"{PAGE}: there is no alert {name}" for name in runbook if name.startswith("Fjord") and name not in names]
    for series in [*cases["healthy"], *(key for case in cases["cases"].values() for key in case["series"])]:
        metric, _, *labels = series.split()
        if metric != "up":
            query = metric + "{" + ",".join(f'{label.split("=")[0]}=""' for label in labels) + "}"
            faults += queries.faults("alert_cases.yml", query, known)
    for fault in faults:
        print(fault)
    print(f"{len(names)} alerts, {len(faults)} violations")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
