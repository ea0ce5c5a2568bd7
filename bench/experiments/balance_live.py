#!/usr/bin/env python3
"""A moving hot spot on six real storage nodes under equal CPU quotas: without a hot spot, with it and the balancer off, with it on, and
on while a node is killed. Quotas are cgroups (version 1, controller cpu); without permission for them the nodes have none."""

import csv
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import experiment
from experiment import harness

NODES = 6
BITS = 8
PERIOD_US = 20_000
QUOTA = 0.10  # Of a processor, for each storage node.
GETS, PUTS, SEARCHES = 3000, 750, 30  # Operations a second, times LOAD.
LOAD = float(os.environ.get("FJORD_EXPERIMENT_LOAD", "1.4"))
HOT_PART = 0.5  # Of gets and puts.
PHASES = ("no hot spot", "off", "on", "on, a node killed")
RUNS = int(os.environ.get("FJORD_EXPERIMENT_RUNS", "5"))
CGROUPS = pathlib.Path("/sys/fs/cgroup/cpu")


class Quotas:
    """Gives each storage node a cgroup of its own, and takes the groups away at the end."""

    def __init__(self, cluster):
        self.groups = []
        self.cluster = cluster

    def set(self):
        for i in range(NODES):
            group = CGROUPS / f"fjord-balance-live-{os.getpid()}-{i}"
            try:
                group.mkdir()
                self.groups.append(group)
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(int(PERIOD_US * QUOTA)))
                (group / "cgroup.procs").write_text(str(pid_of(self.cluster, i)))
            except OSError as error:
                experiment.say(f"no CPU quotas: {error}")
                return False
        return True

    def remove(self):
        for group in self.groups:
            harness.wait_until(lambda: not (group / "cgroup.procs").read_text(), "the nodes of a quota have ended")
            group.rmdir()


def pid_of(cluster, index):
    return int((cluster.directory / "run" / f"storage.{index}.pid").read_text().split()[0])


def cpu_seconds(pid):
    """Returns the time that all threads of a process have run; None if it has ended."""
    total = 0
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    except OSError:
        return None
    return total / 1e9


class Phase:
    """One run of the load on a cluster of its own."""

    def __init__(self, options, name, run):
        self.options, self.name, self.run = options, name, run
        self.quick = options.quick
        factor = 1 if self.quick else LOAD
        self.rates = ["--gets", str(GETS * factor), "--puts", str(PUTS * factor), "--searches", str(SEARCHES * factor)]
        self.seconds = 20 if self.quick else 60
        self.groups = 1024 if self.quick else 6144

    def measure(self):
        settings = f"  distribution_bits: {BITS}\n"
        with harness.Cluster(storage=NODES, distributors=2, redundancy=2, cluster_settings=settings) as cluster:
            load = [str(harness.BIN / "fjord-experiment-balance-load"), "--cluster", cluster.address]
            subprocess.run([*load, "feed", "--groups", str(self.groups)], check=True, stdout=sys.stderr)
            cluster.wait_healthy()
            time.sleep(1 if self.quick else 5)  # Documents that were fed are merged into files meanwhile.
            mode = "on" if self.name.startswith("on") else "off"
            cluster.must("config", "set", "balancer.round=1s", "balancer.operations_min=50", f"balancer.mode={mode}")
            quotas = Quotas(cluster)
            try:
                limited = quotas.set()
                yield from self.load(cluster, load, limited)
            finally:
                cluster.local("stop")
                quotas.remove()

    def load(self, cluster, load, limited):
        path = self.options.output / f"operations-{self.name.replace(' ', '-').replace(',', '')}.csv"
        command = [*load, "hot", "--groups", str(self.groups), "--bits", str(BITS), "--seconds", str(self.seconds), *self.rates,
                   "--output", str(path)]
        if self.name == "no hot spot":
            command += ["--uniform"]
        command += ["--hot-part", "0" if self.name == "no hot spot" else str(HOT_PART)]
        began = time.monotonic()
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        pids = [pid_of(cluster, i) for i in range(NODES)]
        killed = None
        imbalances = []
        shares = []
        before = [cpu_seconds(pid) for pid in pids]
        while running.poll() is None:
            time.sleep(2)  # A round of measurement is two of the balancer.
            now = [cpu_seconds(pid) for pid in pids]
            used = [b - a for a, b in zip(before, now) if a is not None and b is not None]
            before = now
            if time.monotonic() - began > self.seconds * 0.2 and running.poll() is None:
                imbalances.append(max(used) / statistics.mean(used))
                shares.append(statistics.mean(used) / 2 / QUOTA)
            if self.name == "on, a node killed" and killed is None and time.monotonic() - began > self.seconds * 0.4:
                os.kill(pids[3], signal.SIGKILL)
                killed = time.monotonic()
        said = running.stdout.read().split()
        steps = cluster.fjord("balance", "history", "-o", "json")
        with open(path, newline="") as file:
            rows = [row for row in csv.DictReader(file)]
        first = min(float(row["due_us"]) for row in rows)
        kinds = {kind: sorted(float(row["latency_us"]) / 1e3 for row in rows
                              if row["kind"] == kind and float(row["due_us"]) - first > self.seconds * 0.2e6)
                 for kind in ("get", "put", "search")}
        low = sum(1 for value in imbalances if value <= 1.15)
        result = {"phase": self.name, "run": self.run, "operations": int(said[1]), "operations_a_second": int(said[1]) / self.seconds,
                  "failed": int(said[3]), "wrong": int(said[5]), "quotas": int(limited),
                  "quota_used": statistics.median(shares), "imbalance_p50": statistics.median(imbalances),
                  "imbalance_p95": sorted(imbalances)[int(len(imbalances) * 0.95)], "rounds_below": low / len(imbalances),
                  "steps": steps.out.count('"step"') if steps.code == 0 else 0, "moves": steps.out.count('"from"')}
        for kind, took in kinds.items():
            result[f"{kind}_p50"] = took[len(took) // 2]
            result[f"{kind}_p99"] = took[int(len(took) * 0.99)]
        yield result


def measure(options):
    runs = 1 if options.quick else RUNS
    for run in range(runs):
        for name in PHASES:
            for row in Phase(options, name, run).measure():
                experiment.say(f"run {run + 1}, {name}: {row}")
                yield row


def show(rows, output):
    names = list(dict.fromkeys(row["phase"] for row in rows))
    runs = len({row["run"] for row in rows})
    print(f"{NODES} storage nodes, redundancy 2, {2 ** BITS} buckets; {QUOTA:.0%} of a processor for each node by cgroups: "
          f"{'yes' if all(row['quotas'] for row in rows) else 'no'}; {float(rows[0]['operations_a_second']):.0f} operations a second, of which "
          f"{GETS / (GETS + PUTS + SEARCHES):.0%} gets and {PUTS / (GETS + PUTS + SEARCHES):.0%} puts; medians of {runs} runs.\n")
    keys = ("quota_used", "imbalance_p50", "imbalance_p95", "rounds_below", "get_p50", "get_p99", "put_p99", "search_p99", "steps", "moves")
    of = {key: experiment.medians(rows, ["phase"], key) for key in keys}
    table = []
    for name in names:
        failed = sum(row["failed"] + row["wrong"] for row in rows if row["phase"] == name)
        table.append([name, failed, *(float(of[key][(name,)]) for key in keys)])
    experiment.table(["", "failed or wrong", "quota used", "CPU max/mean p50", "p95", "rounds <= 1.15", "gets p50 ms", "gets p99 ms", "puts p99 ms",
                      "searches p99 ms", "steps", "moves"], table)
    figure, axes = experiment.pyplot().subplots(figsize=(7, 4))
    axes.bar([f"{row['phase']}\nrun {row['run'] + 1}" for row in rows], [row["imbalance_p95"] for row in rows])
    axes.set_ylabel("CPU max/mean, 95th percentile of rounds")
    axes.tick_params(axis="x", labelsize=6)
    figure.tight_layout()
    figure.savefig(output / "imbalance.png", dpi=120)
    print("| goal | | |\n|---|---|---|")
    on, off, none = (of["get_p99"][(name,)] for name in ("on", "off", "no hot spot"))
    failed = sum(row["failed"] + row["wrong"] for row in rows)
    few = "not judged: fewer than five runs" if runs < 5 else ""
    for text, holds, detail in (("0 failed or wrong", failed == 0, failed),
                                ("CPU max/mean <= 1.15 in 95 % of rounds", of["rounds_below"][("on",)] >= 0.95, f"{of['rounds_below'][('on',)]:.0%}"),
                                ("p99 of gets <= 0.7 of off", on <= 0.7 * off, f"{on / off:.2f}"),
                                ("p99 of gets <= 1.2 of no hot spot", on <= 1.2 * none, f"{on / none:.2f}")):
        verdict = few if few and text.startswith("p99") else "holds" if holds else "**does not hold**"
        print(f"| {text} | {detail} | {verdict} |")
    print()
    if failed:
        sys.exit("balance-live: operations failed or were wrong")


if __name__ == "__main__":
    experiment.run(__doc__, "balance-live", measure, show)
