#!/usr/bin/env python3
"""What a job does to users' operations: latencies of gets and puts at fixed rates without a job, beside one at its defaults, beside one
that keeps no processor free (storage.foreground_cpu_percent=0), and beside one that yields to a target besides
(mapreduce.foreground_p99_target_ms). The job, heavycity, computes all the time and reads little."""

import csv
import pathlib
import subprocess
import sys
import time

import experiment
from experiment import harness

DOCUMENTS = 100_000
GETS, PUTS = 600, 300
ITERATIONS = 400_000  # Makes the job take longer than a phase.
KEPT_FREE = "storage.foreground_cpu_percent"
TARGET = "mapreduce.foreground_p99_target_ms"
AUTOGROUP = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled")


def processor_times():
    """Returns busy and total time of all processors since the start."""
    times = list(map(int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    return sum(times) - times[3] - times[4], sum(times)


class Phases:
    def __init__(self, cluster, seconds):
        self.cluster = cluster
        self.seconds = seconds
        self.ended = []  # Name, from, to (microseconds of CLOCK_MONOTONIC), busy share, documents read by the job.

    def run(self, name, with_job):
        job = None
        if with_job:
            job = self.cluster.must("job", "run", "heavycity", "--type", "listing", "--param", "field=city", "--param",
                                    f"iterations={ITERATIONS}").out.split()[-1]
            time.sleep(2)  # The job has begun, and the settings are in force.
        start, busy_before = time.monotonic(), processor_times()
        time.sleep(self.seconds)
        end, busy = time.monotonic(), processor_times()
        read = 0
        if job:
            read = self.cluster.must("job", "show", job, "-o", "json").json()["documents_read"]
            self.cluster.must("job", "cancel", job)
            self.cluster.wait_for_job(job, ["cancelled"], 60)
        share = (busy[0] - busy_before[0]) / max(1, busy[1] - busy_before[1])
        self.ended.append((name, start * 1e6, end * 1e6, share, read))


def measure(options):
    with harness.Cluster(storage=3, distributors=1, redundancy=2) as cluster:
        cluster.must("schema", "deploy", experiment.ROOT / "bench" / "listing.sd")
        bench = str(harness.BIN / "fjord-bench")
        common = ["--cluster", cluster.address, "--documents", str(DOCUMENTS)]
        subprocess.run([bench, "feed", *common], check=True, stdout=sys.stderr)
        cluster.wait_healthy()
        operations = options.output / "operations.csv"
        load = subprocess.Popen([bench, "load", *common, "--gets", str(GETS), "--puts", str(PUTS), "--output", str(operations)],
                                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        phases = Phases(cluster, 3 if options.quick else 10)
        try:
            time.sleep(3)  # Connections and caches warm up.
            for run in range(1 if options.quick else 3):
                phases.run("no job", False)
                phases.run("a job at its defaults", True)
                cluster.must("config", "set", f"{KEPT_FREE}=0")
                phases.run("a job on all processors", True)
                cluster.must("config", "set", f"{TARGET}=5")
                phases.run("the same, target 5 ms", True)
                cluster.must("config", "unset", TARGET, KEPT_FREE)
                experiment.say(f"run {run + 1}")
        finally:
            load.stdin.close()
            failed = load.wait()
    if failed:
        sys.exit(f"job-foreground: operations failed; {operations} says which")
    with open(operations, newline="") as file:
        done = [(float(row["due_us"]), row["kind"], float(row["latency_us"])) for row in csv.DictReader(file)]
    for name, start, end, share, read in phases.ended:
        for kind in ("get", "put"):
            took = sorted(latency for due, of, latency in done if of == kind and start <= due < end)
            yield {"phase": name, "kind": kind, "operations": len(took), "p50_ms": took[len(took) // 2] / 1e3,
                   "p99_ms": took[int(len(took) * 0.99)] / 1e3, "longest_ms": took[-1] / 1e3, "busy": share,
                   "documents_read": read}


def show(rows, output):
    grouped = AUTOGROUP.read_text().strip() if AUTOGROUP.exists() else "not there"
    print(f"{DOCUMENTS} documents of 800 bytes, redundancy 2, three storage nodes; {GETS} gets and {PUTS} puts a second; medians of the runs.")
    print(f"kernel.sched_autogroup_enabled: {grouped}\n")
    names = list(dict.fromkeys(row["phase"] for row in rows))
    of = {key: experiment.medians(rows, ["phase", "kind"], key) for key in ("p50_ms", "p99_ms", "longest_ms", "busy", "documents_read")}
    table = []
    for name in names:
        line = [name]
        for kind in ("get", "put"):
            line += [float(of["p50_ms"][name, kind]), float(of["p99_ms"][name, kind]),
                     float(of["p99_ms"][name, kind] / of["p99_ms"][names[0], kind])]
        worst = max(row["p99_ms"] for row in rows if row["phase"] == name)
        table.append(line + [float(worst), f"{100 * of['busy'][name, 'get']:.0f} %", int(of["documents_read"][name, "get"])])
    experiment.table(["", "gets: p50 ms", "p99 ms", "of no job", "puts: p50 ms", "p99 ms", "of no job", "worst p99 of a run, ms",
                      "processors busy", "documents the job read"], table)


if __name__ == "__main__":
    experiment.run(__doc__, "job-foreground", measure, show)
