"""Hot documents on one node: the balancer moves their buckets away under writes, a node is killed meanwhile, and nothing
is lost. Then the commands for an operator."""

import json
import random
import threading
import unittest

import harness

SCHEMA = "document item { field number type int { header } }"
DOCUMENTS = 400
HOT = 16
SETTINGS = ("balancer.mode=on", "balancer.load=operations", "balancer.round=2s", "balancer.bytes_part=0.1",
            "balancer.operations_min=100")


def identity(i):
    return f"id:bal:item::{i}"


class Writer(threading.Thread):
    """Puts the hot documents often and all others seldom, and remembers what was acknowledged."""

    def __init__(self, cluster, hot):
        super().__init__()
        self.cluster = cluster
        self.hot = hot
        self.stopped = threading.Event()
        self.number = 0
        self.failed = []

    def run(self):
        while not self.stopped.is_set():
            self.number += 1
            chosen = self.hot * 40 + list(range(DOCUMENTS))
            random.shuffle(chosen)
            lines = "".join(json.dumps({"put": identity(i), "fields": {"number": self.number}}) + "\n" for i in chosen)
            fed = self.cluster.fjord("feed", "-", "--timeout", 60, stdin=lines)
            if fed.code != 0:
                self.failed.append(str(fed))
                return

    def stop(self):
        self.stopped.set()
        self.join()


class BalanceTest(unittest.TestCase):
    def status(self, cluster):
        return cluster.must("balance", "status", "-o", "json").json()

    def hot_documents(self, cluster):
        """Returns documents in different buckets, each with a replica on storage.0."""
        found, buckets = [], set()
        for i in range(DOCUMENTS):
            shown = cluster.must("bucket", "show", identity(i), "-o", "json").json()
            nodes = shown["replica_set"]
            if "storage.0" in nodes and shown["bucket"] not in buckets:
                buckets.add(shown["bucket"])
                found.append(i)
            if len(found) == HOT:
                return found
        self.fail("too few buckets on storage.0")

    def test_hot_documents_are_spread_while_they_are_written_and_a_node_is_killed(self):
        with harness.Cluster(storage=5, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            writer = Writer(cluster, [])
            lines = "".join(json.dumps({"put": identity(i), "fields": {"number": 0}}) + "\n" for i in range(DOCUMENTS))
            cluster.must("feed", "-", stdin=lines)
            cluster.wait_healthy()
            writer.hot = self.hot_documents(cluster)
            cluster.must("config", "set", "balancer.mode=advise", *SETTINGS[1:])
            writer.start()
            try:
                # The advice: storage.0 is the hottest, and a plan would relieve it.
                harness.wait_until(lambda: self.status(cluster)["imbalance"] > 1.2, "the hot spot is seen")
                harness.wait_until(lambda: cluster.fjord("balance", "plan", "-o", "json").code == 0, "there is a plan")
                plan = cluster.must("balance", "apply", "-o", "json").json()
                self.assertFalse(plan["done"])
                hottest = max(self.status(cluster)["nodes"], key=lambda node: node["over_mean"])
                self.assertEqual(hottest["node"], "storage.0")
                self.assertEqual(cluster.must("balance", "history", "-o", "json").json(), [])

                cluster.must("config", "set", *SETTINGS)
                harness.wait_until(lambda: cluster.must("balance", "history", "-o", "json").json(), "a step is made")
                cluster.kill("storage.1")
                harness.wait_until(lambda: any("storage.1" in why for why in self.status(cluster)["waits_for"]),
                                   "the balancer waits for the node")
                steps = len(cluster.must("balance", "history", "-o", "json").json())
                self.assertGreater(steps, 0)
                cluster.restart("storage.1")
                harness.wait_until(lambda: not self.status(cluster)["waits_for"], "the balancer goes on", seconds=120)
                levelled = []

                def is_level():
                    seen = self.status(cluster)
                    levelled.append(seen["imbalance"])
                    return 0 < seen["imbalance"] < 1.15 and not seen["waits_for"]
                harness.wait_until(is_level, "the load is level", seconds=180, pause=1)
            finally:
                writer.stop()
            self.assertEqual(writer.failed, [])
            cluster.must("config", "set", "balancer.mode=off")
            cluster.wait_healthy()
            stored = {name: fields["number"] for name, fields in cluster.documents().items()}
            self.assertEqual(stored, {identity(i): writer.number for i in range(DOCUMENTS)})

            # Everything back: the first step and all later ones.
            history = cluster.must("balance", "history", "-o", "json").json()
            self.assertTrue(all(step["kind"] == "load" and step["bytes"] > 0 for step in history), history)
            shown = cluster.must("balance", "revert", history[0]["step"], "-o", "json").json()
            self.assertFalse(shown["done"])
            self.assertGreater(len(shown["moves"]), 0)
            cluster.must("balance", "revert", history[0]["step"], "--yes", "--reason", "test")
            harness.wait_until(lambda: "except:" not in cluster.must("state", "show", "-o", "json").out, "no override is left")
            cluster.wait_healthy()
            self.assertEqual(len(cluster.documents()), DOCUMENTS)
            self.assertIn("takes back step", cluster.must("state", "log", "-n", 0).out)

    def test_a_sample_says_where_buckets_go_before_documents_are_put(self):
        groups = {group: 2 + (group * 37) % 90 for group in range(60)}
        lines = [json.dumps({"put": f"id:bal:item:n={group}:{i}", "fields": {"number": i}}) for group, count in groups.items()
                 for i in range(count)]
        with harness.Cluster(storage=3, redundancy=1, cluster_settings="  distribution_bits: 6\n") as cluster:
            cluster.deploy(SCHEMA)
            cluster.must("config", "set", "balancer.mode=advise", "balancer.round=200ms")
            sample = cluster.directory / "sample.jsonl"
            sample.write_text("not JSON\n")
            wrong = cluster.fjord("balance", "plan", "--initial", sample)
            self.assertNotEqual(wrong.code, 0, wrong)
            self.assertIn("sample.jsonl: feed, line 1", wrong.err)
            sample.write_text("\n".join(lines[::2]) + "\n")
            harness.wait_until(lambda: cluster.fjord("balance", "plan", "--initial", sample).code == 0,
                               lambda: f"the nodes are known: {cluster.fjord('balance', 'plan', '--initial', sample)}")
            plan = cluster.must("balance", "apply", "--initial", sample, "--yes", "-o", "json").json()
            self.assertGreater(len(plan["moves"]), 0)
            self.assertEqual(plan["bytes"], 0)
            self.assertLess(plan["imbalance_after"], 1.06)
            self.assertGreater(plan["imbalance_before"], plan["imbalance_after"] + 0.05)
            cluster.wait_healthy()
            cluster.must("feed", "-", stdin="\n".join(lines) + "\n")

            def documents():
                return [node["documents"] for node in cluster.status()["nodes"] if node["node"].startswith("storage.")]
            harness.wait_until(lambda: sum(documents()) == len(lines), "the nodes have reported all documents")
            self.assertLess(max(documents()) * 3 / len(lines), 1.08, documents())
            history = cluster.must("balance", "history", "-o", "json").json()
            self.assertEqual([step["kind"] for step in history], ["initial"])

    def test_simulation_and_comparison_need_no_cluster(self):
        rows = harness.run_program("fjord", "balance", "simulate", "--trace", "zipf", "--nodes", 8, "--buckets", 1024,
                                   "--rounds", 60, "-o", "json")
        self.assertEqual(rows.code, 0, rows)
        none, descent = rows.json()
        self.assertEqual((none["algorithm"], descent["algorithm"]), ("none", "descent"))
        self.assertLess(descent["mean"], none["mean"])
        wrong = harness.run_program("fjord", "balance", "simulate", "--algorithm", "best")
        self.assertEqual(wrong.code, harness.USAGE, wrong)


if __name__ == "__main__":
    harness.main()
