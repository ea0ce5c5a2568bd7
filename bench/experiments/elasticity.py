#!/usr/bin/env python3
"""Runs the cluster of `./run experiment elasticity`: three storage nodes under load, a fourth added and retired, and one killed.

Writes into the folder --output: operations.csv (a line for each get and put), visits.csv, moved.csv (entries that storage nodes
fetched and documents they hold, four times a second), phases.csv and figures.json. Times are of CLOCK_MONOTONIC.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("FJORD_BIN", str(ROOT / "build" / "release" / "bin"))
sys.path.insert(0, str(ROOT / "test" / "integration"))
import harness  # noqa: E402

REDUNDANCY = 2


def say(text):
    print(f"elasticity: {text}", file=sys.stderr, flush=True)


class Watch:
    """Samples, on its own thread, the entries that storage nodes fetched by merges and the documents that they hold."""

    def __init__(self, cluster, path):
        self.cluster = cluster
        self.file = open(path, "w", newline="")
        self.rows = csv.writer(self.file)
        self.rows.writerow(["time", "merged_entries"])
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def merged_entries(self):
        """Returns the entries fetched by merges, by storage node, for the nodes that answer."""
        config = (self.cluster.directory / "cluster.yaml").read_text().split("\nstorage:", 1)[1]
        found = {}
        for address in re.findall(r"http: *(\S+)", config):
            try:
                with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
                    text = answer.read().decode()
            except OSError:
                continue
            values = re.findall(r"^fjord_storage_merged_entries_total(?:\{[^}]*\})? (\S+)", text, re.MULTILINE)
            found[address] = sum(map(float, values))
        return found

    def merged_total(self, nodes):
        """Returns the sum over all nodes, once that many nodes have answered."""
        return sum(harness.wait_until(lambda: (lambda found: found if len(found) == nodes else None)(self.merged_entries()),
                                      "all storage nodes show their metrics").values())

    def run(self):
        while not self.ending.wait(0.25):
            self.rows.writerow([time.monotonic(), sum(self.merged_entries().values())])

    def end(self):
        self.ending.set()
        self.thread.join()
        self.file.close()


class Visits:
    """Visits all documents repeatedly; each visit has to return the fed documents, each exactly once."""

    def __init__(self, cluster, documents, pause, path):
        self.command = [str(harness.BIN / "fjord-bench"), "visit", "--repeat", "1", "--documents", str(documents),
                        "--cluster", cluster.address]
        self.pause = pause
        self.path = path
        self.failed = 0
        self.done = 0
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        with open(self.path, "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["time", "seconds", "ok"])
            while not self.ending.wait(self.pause):
                start = time.monotonic()
                visit = subprocess.run(self.command, capture_output=True, text=True)
                found = re.search(r"visit time_s (\S+)", visit.stdout)
                rows.writerow([start, found.group(1) if found else "", int(visit.returncode == 0)])
                self.done += 1
                if visit.returncode != 0:
                    self.failed += 1
                    say(f"a visit failed: {visit.stderr}")

    def end(self):
        self.ending.set()
        self.thread.join()


class Experiment:
    def __init__(self, options):
        self.options = options
        self.output = options.output
        self.phases = []
        self.figures = {"documents": options.documents, "gets": options.gets, "puts": options.puts}

    def phase(self, name, start):
        self.phases.append((name, start, time.monotonic()))
        say(f"{name}: {self.phases[-1][2] - start:.2f} s")

    def storage(self, cluster):
        """Returns the documents by storage node that is up or retired, and the number of buckets out of sync."""
        status = cluster.status()
        nodes = {node["node"]: node for node in status["nodes"] if node["node"].startswith("storage.")}
        return nodes, status["buckets"]

    def wait_moved(self, cluster, condition, what, seconds):
        """Waits until every bucket is in sync and `condition` holds for the storage nodes."""
        def reached():
            nodes, buckets = self.storage(cluster)
            return buckets["out_of_sync"] + buckets["unavailable"] == 0 and buckets["total"] > 0 and condition(nodes)
        harness.wait_until(reached, what, seconds, pause=0.25)  # Polling is work that the quiet phase does not have.

    def held(self, nodes):
        return sum(node["documents"] for node in nodes.values())

    def run_change(self, cluster, watch):
        copies = REDUNDANCY * self.options.documents
        start = time.monotonic()
        time.sleep(self.options.quiet)
        self.phase("quiet", start)

        before = watch.merged_total(3)
        start = time.monotonic()
        cluster.local("add-node", "--timeout", 60)
        self.wait_moved(cluster, lambda nodes: nodes["storage.3"]["documents"] > 0 and self.held(nodes) == copies,
                        "the fourth node has its share, and no node has more than that", 900)
        self.phase("add", start)
        time.sleep(1)  # Metrics of the last merge.
        nodes, _ = self.storage(cluster)
        self.figures["added"] = {"fetched": watch.merged_total(4) - before, "on_node": nodes["storage.3"]["documents"],
                                 "least": copies / 4}

        start = time.monotonic()
        time.sleep(self.options.rest)
        self.phase("four nodes", start)

        plan = cluster.must("node", "retire", "storage.3", "--dry-run", "-o", "json").json()["plan"]
        before = watch.merged_total(4)
        held = self.storage(cluster)[0]["storage.3"]["documents"]
        start = time.monotonic()
        cluster.must("node", "retire", "storage.3")
        self.wait_moved(cluster, lambda nodes: nodes["storage.3"]["documents"] == 0 and self.held(nodes) == copies,
                        "the retired node is empty", 900)
        self.phase("retire", start)
        time.sleep(1)
        self.figures["retired"] = {"fetched": watch.merged_total(4) - before, "least": held, "plan_bytes": plan["bytes"]}

        start = time.monotonic()
        time.sleep(self.options.rest)
        self.phase("three nodes", start)
        cluster.must("node", "remove", "storage.3")
        cluster.kill("storage.3")

    def run_dead_node(self, cluster):
        victim = "storage.2"
        pid = int((cluster.directory / "run" / f"{victim}.pid").read_text().split()[0])
        start = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        self.figures["killed_at"] = start

        def restored(nodes):
            return all(node["documents"] == self.options.documents for name, node in nodes.items() if name != victim)
        self.wait_moved(cluster, lambda nodes: restored(nodes), "all documents have two copies again", 900)
        self.figures["restored_s"] = time.monotonic() - start
        self.phase("dead node", start)
        start = time.monotonic()
        time.sleep(self.options.rest)
        self.phase("two nodes", start)

    def run(self):
        options = self.options
        with harness.Cluster(storage=3, distributors=1, redundancy=REDUNDANCY) as cluster:
            cluster.must("schema", "deploy", ROOT / "bench" / "listing.sd")
            common = ["--cluster", cluster.address, "--documents", str(options.documents)]
            bench = str(harness.BIN / "fjord-bench")
            if options.set:
                cluster.must("config", "set", *options.set)
            subprocess.run([bench, "feed", *common], check=True, stdout=sys.stderr)
            cluster.wait_healthy()
            load = subprocess.Popen([bench, "load", *common, "--gets", str(options.gets), "--puts", str(options.puts),
                                     "--output", str(self.output / "operations.csv")], stdin=subprocess.PIPE,
                                    stdout=subprocess.DEVNULL)
            watch = Watch(cluster, self.output / "moved.csv")
            visits = Visits(cluster, options.documents, options.visit_pause, self.output / "visits.csv")
            try:
                time.sleep(3)  # Connections and caches warm up.
                self.run_change(cluster, watch)
                self.run_dead_node(cluster)
            finally:
                load.stdin.close()
                load.wait()
                visits.end()
                watch.end()
            self.figures["failed_operations"] = load.returncode != 0
            self.figures["visits"] = visits.done
            self.figures["failed_visits"] = visits.failed
        with open(self.output / "phases.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["phase", "start", "end"])
            rows.writerows(self.phases)
        (self.output / "figures.json").write_text(json.dumps(self.figures))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--documents", type=int, default=100000)
    parser.add_argument("--gets", type=float, default=600, help="a second")
    parser.add_argument("--puts", type=float, default=300, help="a second")
    parser.add_argument("--quiet", type=float, default=30, help="seconds before the change")
    parser.add_argument("--rest", type=float, default=10, help="seconds after each change")
    parser.add_argument("--visit-pause", type=float, default=1, help="seconds between two visits")
    parser.add_argument("--set", nargs="*", default=[], help="live settings, e.g. distributor.merges_max=2")
    parser.add_argument("--quick", action="store_true", help="a tenth of the documents, shorter pauses")
    options = parser.parse_args()
    if options.quick:
        options.documents, options.quiet, options.rest = 10000, 6, 3
    experiment = Experiment(options)
    experiment.run()
    if experiment.figures["failed_operations"] or experiment.figures["failed_visits"]:
        sys.exit("elasticity: operations or visits failed; operations.csv and visits.csv say which")


if __name__ == "__main__":
    main()
