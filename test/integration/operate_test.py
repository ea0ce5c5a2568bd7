"""A cluster that its operator changes while it runs: a node more, one out for a while, settings, and the history of it."""

import json
import os
import signal
import unittest

import harness

SCHEMA = "document item { field number type int { header } }"
DOCUMENTS = 300
REFUSED = 8


class OperateTest(unittest.TestCase):
    def feed(self, cluster, first):
        lines = "".join(
            json.dumps({"put": f"id:op:item::{i}", "fields": {"number": i}}) + "\n" for i in range(first, first + DOCUMENTS))
        cluster.must("feed", "-", stdin=lines)

    def test_nodes_settings_and_history(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            self.feed(cluster, 0)
            cluster.wait_healthy()

            # A dry run says what would move and moves nothing.
            before = cluster.must("state", "show", "-o", "json").json()
            plan = cluster.must("node", "retire", "storage.1", "--dry-run", "-o", "json").json()
            self.assertFalse(plan["done"])
            self.assertGreater(plan["plan"]["replicas_moved"], 0)
            self.assertEqual(cluster.must("state", "show", "-o", "json").json(), before)

            added = cluster.local("add-node", "--timeout", 60)
            self.assertEqual(added.out.strip(), "storage.3")
            cluster.wait_healthy()
            nodes = {node["node"]: node for node in cluster.must("node", "list", "-o", "json").json()}
            self.assertEqual(nodes["storage.3"]["state"], "up")
            self.assertGreater(nodes["storage.3"]["buckets"], 0)
            self.feed(cluster, DOCUMENTS)
            self.assertEqual(len(cluster.documents()), 2 * DOCUMENTS)

            # The nodes stay when the terminal goes that they were started from.
            pids = [int(file.read_text().split()[0]) for file in (cluster.directory / "run").glob("*.pid")]
            self.assertEqual(len(pids), 6)
            for pid in pids:
                os.kill(pid, signal.SIGHUP)
            self.assertEqual(len(cluster.documents()), 2 * DOCUMENTS)
            for pid in pids:
                os.kill(pid, 0)  # raises an error if there is no such process

            # Out for a while, and only one at a time.
            cluster.must("node", "stop-check", "storage.2")
            cluster.must("node", "maintenance", "storage.2", "--reason", "a new disk", "--wait", 60)
            refused = cluster.fjord("node", "maintenance", "storage.1")
            self.assertEqual(refused.code, REFUSED, refused)
            self.assertIn("storage.2", refused.out)
            cluster.must("node", "up", "storage.2", "--wait", 60)
            cluster.wait_healthy()
            self.assertEqual(cluster.fjord("node", "remove", "storage.2").code, REFUSED)
            self.assertEqual(cluster.fjord("node", "up", "storage.9").code, harness.NOT_FOUND)

            # Settings reach every node or are refused with a reason.
            cluster.must("config", "set", "storage.file_bytes_max=8MiB")
            bad = cluster.fjord("config", "set", "storage.file_bytes_max=8")
            self.assertEqual(bad.code, harness.USAGE, bad)
            self.assertIn("storage.file_bytes_max", bad.err)
            self.assertEqual(cluster.must("config", "get", "storage.file_bytes_max").out.strip(), "8MiB")
            harness.wait_until(lambda: not cluster.must("config", "list", "-o", "json").json()["waiting"], "all have it")
            self.assertEqual(cluster.must("config", "list", "-o", "json").json()["errors"], [])
            cluster.must("pause")
            cluster.must("resume")
            cluster.must("config", "revert", 1)
            self.assertEqual(len(cluster.must("config", "history").out.splitlines()), 3)

            # Single buckets elsewhere, so that the fullest node has less.
            fullest = cluster.must("node", "balance", "--dry-run").out
            self.assertIn("max/mean of bytes", fullest)
            balanced = cluster.must("node", "balance", "--to", "1.05", "--wait", 60, "-o", "json").json()
            self.assertTrue(balanced["done"])
            cluster.wait_healthy()
            sizes = [node["bytes"] for node in cluster.must("node", "list", "-o", "json").json()
                     if node["node"].startswith("storage.")]
            self.assertLess(max(sizes) * len(sizes) / sum(sizes), 1.1)
            cluster.must("node", "balance", "--to", "off", "--wait", 60)
            cluster.wait_healthy()

            # What was done survives the controller, whose state file is the list of nodes now.
            cluster.restart("fleetcontroller.0")
            cluster.wait_healthy()
            shown = cluster.must("state", "show", "-o", "json").json()
            self.assertIn("0 1 2 3", shown["distribution"])
            self.assertGreater(shown["term"], before["term"])
            log = cluster.must("state", "log", "-n", 0).out
            for text in ("storage.3: added", "storage.2: maintenance -- a new disk", "configuration 1"):
                self.assertIn(text, log)
            self.assertEqual(len(cluster.documents()), 2 * DOCUMENTS)


if __name__ == "__main__":
    harness.main()
