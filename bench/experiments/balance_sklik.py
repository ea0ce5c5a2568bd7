#!/usr/bin/env python3
"""[KBD 2020, chapter 8] on real processes: keyword searches on three storage nodes, from a random and from a skewed placement, with
bin-packing (the paper's Original), weighted-move and descent, for 100 queries in a fixed order and for one query again and again."""

import csv
import os
import statistics
import subprocess
import sys
import time

import experiment
from experiment import harness

BITS = 8
RATE = 10  # Queries a second.
COUNT = 400
ROUND = "5s"
BYTES_PART = 0.09  # What weighted-move may move in a round [KBD 2020, 4.5.1].
# At the paper's size a search has 40,000 matches. One that meets keywords for the first time reads them from the disk, for
# longer than the limit that users have.
TIMEOUT = 60  # Seconds.
CACHE = "2GiB"
QUERIES = harness.SHARED / "data" / "web-queries.tsv"
RUNS = [("skewed", "weighted-move", "log"), ("skewed", "descent", "log"), ("random", "none", "log"), ("random", "bin-packing", "log"),
        ("random", "descent", "log"), ("skewed", "descent", "single"), ("skewed", "weighted-move", "single"),
        ("random", "weighted-move", "log"), ("random", "none", "single"), ("random", "descent", "single")]
TURNS = int(os.environ.get("FJORD_EXPERIMENT_RUNS", "1"))


def chosen_runs(options):
    """FJORD_EXPERIMENT_ROWS="skewed descent log, random none log" takes these rows alone."""
    wanted = [tuple(row.split()) for row in os.environ.get("FJORD_EXPERIMENT_ROWS", "").split(",") if row.strip()]
    assert all(row in RUNS for row in wanted), f"rows are: {RUNS}"
    return wanted or (RUNS[:5] if options.quick else RUNS)


class Placement:
    """Puts the buckets where a run begins."""

    def __init__(self, cluster, load):
        self.cluster, self.load = cluster, load

    def settle(self):
        self.cluster.wait_healthy(120)
        harness.wait_until(lambda: self.cluster.status()["buckets"]["out_of_sync"] == 0, "all buckets are where they belong", 120)

    def begin(self, start, algorithm):
        must = self.cluster.must
        must("config", "set", f"search.cache_bytes={CACHE}", "balancer.mode=advise", "balancer.round=1s", "balancer.bytes_part=1", "balancer.operations_min=1")
        must("node", "balance", "--to", "off")
        self.settle()
        if start == "skewed":
            self.retry([*self.load, "skew"])
            self.settle()
        if algorithm == "bin-packing":
            self.retry([str(harness.BIN / "fjord"), "balance", "apply", "--algorithm", algorithm, "--yes"])
            self.settle()
        # The balancer watches the step that made the placement uneven, and would take it back. Switched off, it forgets that.
        must("config", "set", "balancer.mode=off")
        harness.wait_until(lambda: must("balance", "status", "-o", "json").json()["round"] == 0, "the balancer is off", 30)
        done = subprocess.run([*self.load, "warm", "--queries", str(QUERIES), "--timeout", str(TIMEOUT)], check=True, capture_output=True, text=True)
        experiment.say(f"all queries once: {done.stdout.strip()}")
        must("config", "set", f"balancer.round={ROUND}", f"balancer.bytes_part={BYTES_PART}", "balancer.operations_min=100",
             f"balancer.mode={'on' if algorithm in ('weighted-move', 'descent') else 'off'}",
             f"balancer.algorithm={algorithm if algorithm in ('weighted-move', 'descent') else 'descent'}")

    def retry(self, command):
        """The loads under a new cluster state are known after two rounds, of which each needs a search."""
        environment = {**os.environ, "FJORD_CLUSTER": self.cluster.address}

        def done():
            self.cluster.fjord("search", "university", "--limit", "1")
            return subprocess.run(command, env=environment, capture_output=True).returncode == 0
        harness.wait_until(done, " ".join(command[-4:]), 60, pause=0.5)


def imbalance(rows, key, first, last):
    """Returns max/mean over the nodes of the sum of `key` over the queries from `first` to before `last`."""
    sums = {}
    for row in rows:
        if first <= int(row["number"]) < last:
            sums[row["node"]] = sums.get(row["node"], 0) + float(row[key])
    return max(sums.values()) / statistics.mean(sums.values()) if sums and sum(sums.values()) else float("nan")


def levelled_after(rows, key, limit=1.05):
    """Returns the number of queries after which the next 100, and all windows of 100 from then on, are level; -1: never."""
    starts = list(range(0, COUNT - 99, 50))
    level = [imbalance(rows, key, start, start + 100) <= limit for start in starts]
    for i, start in enumerate(starts):
        if all(level[i:]):
            return start
    return -1


def steps_of(cluster):
    """Returns the steps that the balancer made by itself."""
    return [step for step in cluster.must("balance", "history", "-o", "json").json() if "the hottest node has" in step["why"]]


def measure(options):
    groups = int(os.environ.get("FJORD_EXPERIMENT_GROUPS", "25000" if options.quick else "250000"))
    # A cluster for each run: a bucket that was moved must not go back at once, so no placement can be restored.
    for turn, (start, algorithm, workload) in ((turn, run) for turn in range(TURNS) for run in chosen_runs(options)):
        with harness.Cluster(storage=3, distributors=1, redundancy=1, cluster_settings=f"  distribution_bits: {BITS}\n") as cluster:
            load = [str(harness.BIN / "fjord-experiment-balance-load"), "--cluster", cluster.address]
            subprocess.run([*load, "feed", "--groups", str(groups), "--keywords", "34", "--queries", str(QUERIES)], check=True,
                           stdout=sys.stderr)
            Placement(cluster, load).begin(start, algorithm)
            path = options.output / f"{start}-{algorithm}-{workload}.csv"
            command = [*load, "queries", "--queries", str(QUERIES), "--rate", str(RATE), "--count", str(COUNT), "--timeout", str(TIMEOUT),
                       "--output", str(path)]
            done = subprocess.run(command + (["--single"] if workload == "single" else []), capture_output=True, text=True)
            said = done.stdout.split()
            with open(path, newline="") as file:
                rows = list(csv.DictReader(file))
            steps = steps_of(cluster)
        yield {"turn": turn, "groups": groups, "start": start, "algorithm": algorithm, "workload": workload, "failed": int(said[3]), "wrong": int(said[5]),
               "work_first": imbalance(rows, "search_us", 0, 100), "work_last": imbalance(rows, "search_us", COUNT - 100, COUNT),
               "matches_first": imbalance(rows, "matched", 0, 100), "matches_last": imbalance(rows, "matched", COUNT - 100, COUNT),
               "latency_last": imbalance(rows, "took_us", COUNT - 100, COUNT), "work_level": levelled_after(rows, "search_us"),
               "matches_level": levelled_after(rows, "matched"),
               "matches_a_query": sum(int(row["matched"]) for row in rows) / max(1, len({row["number"] for row in rows})),
               "p50_ms": statistics.median(float(row["latency_us"]) for row in rows) / 1e3, "steps": len(steps),
               "moves": sum(len(step["moves"]) for step in steps), "mib": sum(step["bytes"] for step in steps) / 2 ** 20}
        windows = ", ".join(f"{imbalance(rows, 'matched', at, at + 50):.3f}" for at in range(0, COUNT, 50))
        made = [(step["moves"] and len(step["moves"]), round(step["imbalance_before"], 3), round(step["imbalance_after"], 3)) for step in steps]
        experiment.say(f"{start}, {algorithm}, {workload}: D of matches by 50 queries {windows}; steps (moves, before, after) {made} {done.stderr[-200:]}")


def show(rows, output):
    print("D is max/mean over the three nodes: of the time of searching and of matches in 100 queries. `level after`: queries until D <= 1.05 "
          f"from then on (-1: never). {rows[0]['groups']} groups. {statistics.mean(row['matches_a_query'] for row in rows):.0f} matches a query.\n")
    table = []
    for row in rows:
        table.append([row["start"], row["algorithm"], row["workload"], row["failed"] + row["wrong"], float(row["matches_first"]),
                      float(row["matches_last"]), row["matches_level"], float(row["work_first"]), float(row["work_last"]), row["work_level"],
                      float(row["latency_last"]), float(row["p50_ms"]), row["steps"], row["moves"], float(row["mib"])])
    experiment.table(["start", "algorithm", "queries", "failed or wrong", "D of matches, first 100", "last 100", "level after",
                      "D of time, first 100", "last 100", "level after", "D of latency, last 100", "p50 ms", "steps", "moves", "MiB"], table)
    points = {f"{row['start']}, {row['algorithm']}": [] for row in rows if row["workload"] == "log"}
    for row in rows:
        if row["workload"] != "log":
            continue
        with open(output / f"{row['start']}-{row['algorithm']}-log.csv", newline="") as file:
            queries = list(csv.DictReader(file))
        points[f"{row['start']}, {row['algorithm']}"] = [(start, imbalance(queries, "matched", start, start + 100)) for start in range(0, COUNT - 99, 20)]
    experiment.plot_lines(output / "levelling.png", points, "queries before a window of 100", "D of matches", "", log_x=False)
    if any(row["failed"] + row["wrong"] for row in rows):
        sys.exit("balance-sklik: a search failed, was partial or had another answer than before")


if __name__ == "__main__":
    if not QUERIES.is_file():
        print(f"SKIPPED: {QUERIES} is missing; FJORD_SHARED_DIR has to name the folder of the data sets", file=sys.stderr)
        sys.exit(harness.SKIPPED)
    experiment.run(__doc__, "balance-sklik", measure, show)
