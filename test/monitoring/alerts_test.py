"""Each alert of monitoring/prometheus/alerts.yml fires on the series of its case in alert_cases.yml and no other one does; none
fires on those of a healthy cluster. promtool of Debian's package prometheus computes it; without it the test is skipped."""

import pathlib
import subprocess
import sys
import tempfile

import yaml

import alerts_check

sys.path.insert(0, str(alerts_check.ROOT / "test" / "integration"))

import prometheus_tools  # noqa: E402

FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'
HEALTHY_MINUTES = (30, 120, 540, 1700)
DEFAULT_MINUTE = 120


def selector(series):
    """Turns METRIC PROCESS LABEL=VALUE... into a series of Prometheus."""
    metric, process, *labels = series.split()
    all_labels = [("process", process), ("role", process.split(".")[0]), *(label.split("=", 1) for label in labels)]
    return metric + "{" + ",".join(f'{name}="{value}"' for name, value in all_labels) + "}"


def until(minute, values):
    """Leaves out the samples after a minute of values such as `0+0x60 4+1x1700`, which are one more than their number says."""
    kept, minutes = [], 0
    for part in values.split():
        step, count = part.rsplit("x", 1)
        if minutes <= minute:
            kept.append(f"{step}x{min(int(count), minute - minutes)}")
        minutes += int(count) + 1
    return " ".join(kept)


def group(series, minutes, firing):
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in firing]
    return {"interval": "1m", "input_series": [{"series": selector(name), "values": until(max(minutes), values)} for name, values in series.items()],
            "promql_expr_test": [{"expr": FIRING, "eval_time": f"{minute}m", "exp_samples": samples} for minute in minutes]}


def main():
    promtool = prometheus_tools.find("promtool")
    if promtool is None:
        print(f"SKIPPED: {prometheus_tools.MISSING}", file=sys.stderr)
        return prometheus_tools.SKIPPED
    cases = yaml.safe_load((alerts_check.FOLDER / "alert_cases.yml").read_text())
    healthy = cases["healthy"]
    rules = alerts_check.FOLDER / "alerts.yml"
    failed = subprocess.run([promtool, "check", "rules", str(rules)], check=False).returncode != 0
    with tempfile.TemporaryDirectory(prefix="fjord-alerts-") as folder:
        tests = {"healthy": group(healthy, HEALTHY_MINUTES, [])}
        for name, case in cases["cases"].items():
            tests[name] = group({**healthy, **case["series"]}, [case.get("at", DEFAULT_MINUTE)], [name, *case.get("also", [])])
        for name, test in tests.items():
            (pathlib.Path(folder) / f"{name}.yml").write_text(
                yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "5m", "tests": [test]}))
        done = subprocess.run([promtool, "test", "rules", *(f"{name}.yml" for name in tests)], cwd=folder, check=False)
        failed = failed or done.returncode != 0
    print(f"{len(tests) - 1} alerts and a healthy cluster")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
