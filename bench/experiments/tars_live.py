#!/usr/bin/env python3
"""Replicas chosen by affinity on real processes [CALB 2019, 7]: five storage nodes with all data, caches of a tenth of misses,
and the same queries by fingerprint, shares by load, voting tables and shadow caches."""

import json
import os
import pathlib
import sys

import experiment
from experiment import harness

NODES = 5
PAGE = 4096
READ_RATE = 2000  # Pages a second that each node's disk may read, for the capacity.
SETTINGS = "storage_options:\n  stripes: 1\n"
CLUSTER = "  distribution_bits: 4\n"


def bench(*arguments, timeout=3000):
    finished = harness.run_program("fjord-bench-search", *arguments, timeout=timeout)
    assert finished.code == 0, str(finished)
    return finished.json()


def cpu_seconds(cluster):
    """Processor time of each storage node so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    seconds = {}
    for node in json.loads(harness.run_program("fjord", "local", "status", "--dir", cluster.directory, "-o", "json").out):
        if node["node"].startswith("storage."):
            fields = pathlib.Path(f"/proc/{node['pid']}/stat").read_text().rsplit(")", 1)[1].split()
            seconds[node["node"]] = (int(fields[11]) + int(fields[12])) / ticks
    return seconds


def make_data(cluster, options):
    source = [] if options.quick else ["--source", str(harness.SHARED / "data" / "web-queries.tsv")]
    queries = 3000 if options.quick else 40000
    made = bench("make-log", "--output", cluster.folder, "--queries", queries, "--scale", 0.05 if options.quick else 0.1, *source)
    experiment.say(f"{made['words']} words with lists of {made['pages']} pages, {queries} queries in each log")
    cluster.deploy((pathlib.Path(experiment.ROOT) / "bench" / "experiments" / "tars_live.sd").read_text())
    cluster.must("feed", cluster.folder / "feed.jsonl", timeout=3000)

    last = [None]

    def settled():
        now = {path: path.stat().st_size for path in cluster.directory.glob("storage.*/search/*/*.segment")}
        same, last[0] = now == last[0] and now, now
        return same
    harness.wait_until(settled, "the segments are merged", 600, pause=3)
    return made


def affinity(cluster, *arguments):
    return cluster.must("search", "affinity", *arguments, "-o", "json", timeout=3000).json()


def percent(ways, name):
    return next(way["miss_percent"] for way in ways if way["way"] == name)


class Live:
    def __init__(self, cluster):
        self.cluster = cluster
        self.test = cluster.folder / "test.txt"
        self.answers = None

    def set(self, **values):
        changes = [f"search.{name}={value}" for name, value in values.items()]
        if self.cluster.must("config", "set", *changes, "-o", "json").json()["changes"]:
            wanted = {f"search.{name}": str(value) for name, value in values.items()}

            def in_force():
                settings = self.cluster.must("config", "list", "-o", "json").json()["settings"]
                return all(not one["elsewhere"] for one in settings if one["name"] in wanted)
            harness.wait_until(in_force, "all nodes have the settings")

    def run(self, way, simulated):
        """The log once to warm the caches up, and once to count."""
        bench("replay", "--cluster", self.cluster.address, "--queries", self.test)
        before = cpu_seconds(self.cluster)
        result = bench("replay", "--cluster", self.cluster.address, "--queries", self.test)
        cpu = {node: seconds - before[node] for node, seconds in cpu_seconds(self.cluster).items()}
        assert result["failed"] == result["partial"] == 0, result
        if self.answers is None:
            self.answers = result["answers"]
        assert result["answers"] == self.answers, f"{way} changed an answer"
        nodes = result["nodes"].values()
        pages, read = sum(node["pages"] for node in nodes), sum(node["pages_read"] for node in nodes)
        busiest = max(node["pages_read"] for node in nodes)
        row = {"way": way, "miss_percent": 100 * read / pages, "simulated_percent": simulated, "pages_per_query": pages / result["searches"],
               "read_per_query": read / result["searches"], "queries_per_s": result["searches"] / result["seconds"],
               "capacity": READ_RATE * result["searches"] / max(1, busiest), "cpu_max_mean": max(cpu.values()) * NODES / sum(cpu.values()),
               "pages_max_mean": max(node["pages"] for node in nodes) * NODES / pages, "p50_ms": result["p50_ms"], "p99_ms": result["p99_ms"]}
        experiment.say(f"{way}: {row['miss_percent']:.2f} % of pages missed, simulated {simulated:.2f} %, busiest {row['cpu_max_mean']:.2f} "
                       f"of the mean, {row['queries_per_s']:.0f} queries a second")
        return row


def measure(options):
    with harness.Cluster(storage=NODES, redundancy=NODES, settings=SETTINGS, cluster_settings=CLUSTER) as cluster:
        make_data(cluster, options)
        live = Live(cluster)
        common = [cluster.folder / "train.txt", "--replicas", NODES, "--from-index", "--eviction", "lfu"]
        bp, refined = cluster.folder / "bp.ftbl", cluster.folder / "refined.ftbl"
        trained = affinity(cluster, "train", *common, "--rounds", 0, "--table", bp)
        cache = trained["cache_pages"]
        affinity(cluster, "train", *common, "--cache-pages", cache, "--table", refined)
        simulated = {name: affinity(cluster, "simulate", live.test, *common[1:], "--cache-pages", cache, "--table", table)["ways"]
                     for name, table in (("bp", bp), ("refined", refined))}
        numbers = {name: affinity(cluster, "deploy", table, "--yes")["table"] for name, table in (("bp", bp), ("refined", refined))}
        live.set(cache_bytes=f"{cache * PAGE}B", cache_eviction="lfu", affinity_table=0, affinity_multipliers="false")
        yield live.run("fingerprint", percent(simulated["bp"], "fingerprint"))
        live.set(affinity_multipliers="true")
        yield live.run("fingerprint, shares", percent(simulated["bp"], "fingerprint"))
        live.set(affinity_multipliers="false", affinity_table=numbers["bp"])
        yield live.run("BP", percent(simulated["bp"], "table"))
        live.set(affinity_table=numbers["refined"])
        yield live.run("BP+IR", percent(simulated["refined"], "table"))
        live.set(affinity_multipliers="true")
        yield live.run("BP+IR, shares", percent(simulated["refined"], "table, shares by load"))
        live.set(affinity_shadow="true")
        yield live.run("shadow, shares", percent(simulated["refined"], "shadow caches, shares by load"))


def show(rows, output):
    first = rows[0]
    experiment.table(["replica chosen by", "misses %", "simulated %", "pages read a query", "of fingerprint's", "capacity at the read rate, queries/s",
                      "of fingerprint's", "CPU max/mean", "pages max/mean", "queries/s", "p50 ms", "p99 ms"],
                     [(row["way"], row["miss_percent"], row["simulated_percent"], row["read_per_query"],
                       row["read_per_query"] / first["read_per_query"], row["capacity"], row["capacity"] / first["capacity"],
                       row["cpu_max_mean"], row["pages_max_mean"], row["queries_per_s"], row["p50_ms"], row["p99_ms"]) for row in rows])


if __name__ == "__main__":
    sys.exit(experiment.run(__doc__, "tars-live", measure, show))
