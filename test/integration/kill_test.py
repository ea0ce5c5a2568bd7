"""kill -9 of processes at random moments under load: what was acknowledged is there afterwards.

The record of what was acknowledged is kept outside of the cluster. FJORD_KILL_SEED repeats the random choices of a
run, FJORD_KILL_ROUNDS says how many rounds; `--kills N` how many processes of any role are killed under fjord-torture.
"""

import json
import os
import random
import re
import subprocess
import sys
import time
import unittest

import faults
import harness

SCHEMA = """document item {
  field round type int { header }
  field text type string { body }
}
"""
DOCUMENTS = 4000
ROUNDS = int(os.environ.get("FJORD_KILL_ROUNDS", "5"))
KILLS = 25
SEED = int(os.environ.get("FJORD_KILL_SEED", str(time.time_ns() % 1000000)))


def text_of(number, round_):
    return f"{number}/{round_} " * (1 + number % 60)


class KillTest(unittest.TestCase):
    def setUp(self):
        print(f"FJORD_KILL_SEED={SEED}", flush=True)
        self.random = random.Random(SEED)

    def begin_feed(self, cluster, round_):
        """Starts to feed a version of every document and to remove some. Returns the process and the operations by
        line."""
        operations = []
        for number in self.random.sample(range(DOCUMENTS), DOCUMENTS):
            id_ = f"id:kill:item::{number}"
            if self.random.random() < 0.1:
                operations.append({"remove": id_})
            else:
                operations.append({"put": id_, "fields": {"round": round_, "text": text_of(number, round_)}})
        path = cluster.file("feed.jsonl", "".join(json.dumps(operation) + "\n" for operation in operations))
        feed = cluster.begin("feed", path, "--timeout", 60, "--in-flight", 64, "--errors-shown", 1000000,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return feed, operations

    def end_feed(self, feed, operations, expected):
        """Waits for the feed and adds its acknowledged operations to `expected`: id -> possible values, None for
        removed."""
        out, err = feed.communicate(timeout=180)
        summary = json.loads(out)
        bad = {int(line): text for line, text in re.findall(r"feed\.jsonl:(\d+): (.*)", err)}
        self.assertEqual(summary["ok"] + len(bad), len(operations), err[-2000:])
        for line, operation in enumerate(operations, 1):
            id_ = operation.get("put") or operation["remove"]
            value = operation.get("fields")
            if line not in bad:
                expected[id_] = [value]
            elif "in doubt" in bad[line]:
                expected[id_] = expected.get(id_, [None]) + [value]
            # Otherwise the operation was certainly not applied.
        return summary

    def check(self, cluster, expected):
        found = cluster.documents("--type", "item")
        for id_, values in expected.items():
            self.assertIn(found.get(id_), values, id_)
        self.assertLessEqual(set(found), set(expected))
        sample = self.random.sample(sorted(expected), 20)
        by_get = {document["put"]: document["fields"] for document in cluster.fjord("get", *sample).json_lines()}
        for id_ in sample:
            self.assertEqual(by_get.get(id_), found.get(id_), id_)

    def run_rounds(self, cluster, storage, rounds):
        expected = {}
        cluster.deploy(SCHEMA)
        acknowledged = 0
        for round_ in range(rounds):
            victim = f"storage.{self.random.randrange(storage)}"
            feed, operations = self.begin_feed(cluster, round_)
            time.sleep(self.random.uniform(0, 0.4))  # The moment has to be random.
            cluster.kill(victim)
            if storage > 1:
                time.sleep(self.random.uniform(0, 3))
            cluster.restart(victim)
            acknowledged += self.end_feed(feed, operations, expected)["ok"]
            cluster.wait_healthy()
            self.check(cluster, expected)
        self.assertGreater(acknowledged, DOCUMENTS * rounds / 2, "hardly anything was acknowledged")

    def test_with_copies(self):
        with harness.Cluster(storage=3, distributors=2, redundancy=2) as cluster:
            self.run_rounds(cluster, 3, ROUNDS)

    def test_the_only_copy_comes_back(self):
        with harness.Cluster(storage=1, distributors=1, redundancy=1) as cluster:
            self.run_rounds(cluster, 1, max(2, ROUNDS // 2))

    def test_each_process_may_be_killed_and_all_of_them(self):
        with harness.Cluster(storage=2, distributors=2, redundancy=2) as cluster:
            expected = {}
            cluster.deploy(SCHEMA)
            feed, operations = self.begin_feed(cluster, 0)
            self.assertEqual(self.end_feed(feed, operations, expected)["ok"], DOCUMENTS)
            for node in ("fleetcontroller.0", "distributor.1", "distributor.0"):
                cluster.kill(node)
                cluster.restart(node)
                cluster.wait_healthy()
                self.check(cluster, expected)
            for node in ("storage.0", "storage.1", "distributor.0", "distributor.1", "fleetcontroller.0"):
                cluster.kill(node)
            self.assertEqual(harness.run_program("fjord", "local", "status", "--dir", cluster.directory).code, harness.FAILED)
            cluster.start()
            cluster.wait_healthy()
            self.check(cluster, expected)
            self.assertIn("type", cluster.must("schema", "list", "-o", "json").json_lines()[-1])


class AnyProcessTest(unittest.TestCase):
    """Kills processes of every role while others may be down; they restart at once or after a while."""

    def test_any_process_at_any_moment(self):
        seed = faults.seed_of_run()
        random_ = faults.chooser(seed)
        with faults.Processes(storage=3, distributors=2, redundancy=2) as cluster, faults.Torture(cluster, seed) as torture:
            running = faults.Faults(random_, cluster)
            killed = {}
            begin = time.monotonic()
            torture.start()
            enough = {"put_applied": 10 * KILLS, "remove_applied": 2 * KILLS, "raise_applied": 2 * KILLS}
            while sum(killed.values()) < KILLS or not torture.has(**enough):
                self.assertLess(time.monotonic() - begin, KILLS + faults.ENOUGH_S, f"hardly anything was done: {torture.status()}")
                running.wait(random_.expovariate(2))
                cluster.check_running()
                victim = random_.choice(sorted(cluster.running) or ["nobody"])
                if victim == "nobody":
                    continue
                cluster.kill(victim)
                killed[victim.split(".")[0]] = killed.get(victim.split(".")[0], 0) + 1
                if random_.random() < 0.5:
                    cluster.start(victim)
                else:
                    running.after(random_.uniform(0.05, 4), lambda victim=victim: cluster.start(victim))
            running.end_all()
            cluster.wait_healthy()
            counts = torture.stop_and_check()
            cluster.check_running()
            print(f"{sum(killed.values())} kills {killed} in {time.monotonic() - begin:.0f} s: {counts}", flush=True)


if __name__ == "__main__":
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        KILLS = int(sys.argv[at + 1])
        # Only the test that the number is for.
        sys.argv[at:at + 2] = ["AnyProcessTest"]
    harness.main()
