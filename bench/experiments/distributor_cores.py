#!/usr/bin/env python3
"""Can a process with several distributors use several cores? Puts and gets through 1, 2, 4 and 8 distributors in one process:
what an operation costs that process, how much of the work its busiest thread does, and how often threads wait."""

import os
import pathlib
import statistics
import subprocess

import experiment
from experiment import harness

TICKS = os.sysconf("SC_CLK_TCK")
TURNS = int(os.environ.get("FJORD_EXPERIMENT_RUNS", "3"))


class Threads:
    """Processor time and waits of the threads of a process since the last look."""

    def __init__(self, pid):
        self.folder = pathlib.Path("/proc") / str(pid) / "task"
        self.before = self.read()

    def read(self):
        found = {}
        for task in self.folder.iterdir():
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            waits = [int(line.split()[1]) for line in (task / "status").read_text().splitlines() if line.startswith("voluntary")]
            found[task.name] = ((int(fields[11]) + int(fields[12])) / TICKS, waits[0])
        return found

    def since(self):
        """Returns the seconds of each thread, and all waits."""
        now = self.read()
        used, waits = [], 0
        for task, (seconds, count) in now.items():
            old, old_count = self.before.get(task, (0, 0))
            used.append(seconds - old)
            waits += count - old_count
        self.before = now
        return used, waits


def figures_of(output):
    return {" ".join(words[:2]): float(words[2].replace(",", "")) for words in map(str.split, output.splitlines()) if len(words) >= 3}


def bench(cluster, documents, *arguments):
    done = subprocess.run([str(harness.BIN / "fjord-bench"), arguments[0], "--cluster", cluster.address, "--documents", str(documents),
                           *arguments[1:]], check=True, capture_output=True, text=True)
    return figures_of(done.stdout)


def row_of(kind, distributors, operations, per_s, threads):
    used, waits = threads.since()
    return {"kind": kind, "distributors": distributors, "per_s": per_s, "cpu_us": 1e6 * sum(used) / operations,
            "waits": waits / operations, "busiest": 100 * max(used) / sum(used)}


def measure(options):
    documents, seconds, turns = (20_000, 1, 1) if options.quick else (300_000, 5, TURNS)
    for turn in range(turns):
        for distributors in (1, 2, 4, 8):
            with harness.Cluster(storage=3, distributors=distributors, redundancy=1) as cluster:
                nodes = [f"distributor.{number}" for number in range(distributors)]
                for node in nodes:
                    cluster.kill(node)
                with open(cluster.folder / "together.log", "w") as log:
                    process = subprocess.Popen(
                        [str(harness.BIN / "fjordd"), "--config", str(cluster.directory / "cluster.yaml"),
                         *(argument for node in nodes for argument in ("--node", node))], stdout=log, stderr=log)
                try:
                    cluster.wait_healthy()
                    cluster.must("schema", "deploy", str(experiment.ROOT / "bench" / "listing.sd"))
                    threads = Threads(process.pid)
                    fed = bench(cluster, documents, "feed")
                    rows = [row_of("put", distributors, documents, fed["feed docs_per_s"], threads)]
                    got = bench(cluster, documents, "get", "--seconds", str(seconds))
                    reads = sum(got[f"get inflight{count}_per_s"] for count in (1, 16, 64)) * seconds
                    rows.append(row_of("get", distributors, reads, got["get inflight64_per_s"], threads))
                finally:
                    process.terminate()
                    process.wait(60)
            for row in rows:
                experiment.say(str(row))
                yield {"turn": turn, **row}


def show(rows, output):
    for kind, what in (("put", "puts"), ("get", "gets, 1, 16 and 64 in flight")):
        print(f"### {what}\n")
        table = []
        for distributors in sorted({int(row["distributors"]) for row in rows}):
            of = [row for row in rows if row["kind"] == kind and int(row["distributors"]) == distributors]
            table.append([distributors, *(statistics.median(float(row[key]) for row in of)
                                          for key in ("per_s", "cpu_us", "waits", "busiest"))])
        experiment.table(["distributors in the process", "a second (gets: 64 in flight)", "its processor time an operation, us",
                          "waits an operation", "part of its busiest thread, %"], table)


if __name__ == "__main__":
    experiment.run(__doc__, "distributor-cores", measure, show)
