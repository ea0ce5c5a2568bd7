"""An operator changes a running cluster: one more node, a node in maintenance for a while, settings, and the history of
these changes."""

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

    def held(self, cluster, documents):
        """Returns buckets by storage node, once the nodes have reported two replicas of each of these documents and of
        each bucket."""
        found = {}

        def is_reported():
            found.clear()
            stored, total = 0, 0
            for node in cluster.must("node", "list", "-o", "json").json():
                if node["node"].startswith("storage."):
                    found[node["node"]] = node["buckets"]
                    stored += node["documents"]
                elif node["node"].startswith("distributor."):
                    total += node["buckets"]
            return stored == 2 * documents and sum(found.values()) == 2 * total

        harness.wait_until(is_reported, "the nodes have reported their documents")
        return found

    def test_ordinary_restarts_are_no_crashes(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.must("config", "set", "controller.crashes_max=1")
            for node in ("storage.1", "distributor.0"):
                for _ in range(4):
                    cluster.restart(node)
                log = (cluster.directory / "logs" / f"{node}.log").read_text()
                self.assertNotIn("ends before the fleet controller has taken it out", log)
            cluster.wait_healthy()
            lines = cluster.must("state", "log", "-n", 0, "--about", "storage.1", "-o", "json").json_lines()
            self.assertEqual(sum("storage.1: is being stopped" in line["why"] for line in lines), 4)
            self.assertTrue(all("storage.1" in line["what"] + line["why"] for line in lines))
            rest = cluster.must("state", "log", "-n", 0, "--except", "storage.1", "-o", "json").json_lines()
            self.assertEqual(len(lines) + len(rest), len(cluster.must("state", "log", "-n", 0, "-o", "json").json_lines()))

            for _ in range(2):
                cluster.kill("storage.2")
                harness.wait_until(lambda: any(why in cluster.fjord("status").out for why in ("its process has ended", "crashed 2 times")),
                                   "storage.2 is down")
                cluster.fjord("local", "start", "--dir", cluster.directory, "--timeout", 3)
            self.assertIn("crashed 2 times", cluster.fjord("node", "list").out)

    def test_cluster_that_is_down_says_why_and_goes_on_marking_nodes(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            self.feed(cluster, 0)
            cluster.wait_healthy()
            cluster.must("config", "set", "controller.storage_up_ratio_min=0.9")
            refused = cluster.fjord("node", "stop-check", "storage.1")
            self.assertEqual(refused.code, REFUSED, refused)
            self.assertIn("the cluster would be down: 2 of 3 storage nodes would be up", refused.out)
            for node, up in (("storage.1", 2), ("storage.2", 1)):
                cluster.kill(node)
                reason = f"{up} of 3 are up"
                harness.wait_until(lambda: reason in cluster.fjord("status").out, reason)
            lines = "".join(json.dumps({"put": f"id:op:item::{i}", "fields": {"number": i}}) + "\n" for i in range(100))
            fed = cluster.fjord("feed", "-", "--timeout", 2, stdin=lines)
            self.assertNotEqual(fed.code, 0, fed)
            self.assertNotIn("in doubt", fed.out + fed.err)
            self.assertIn("controller.storage_up_ratio_min", fed.out + fed.err)
            for node in ("storage.1", "storage.2"):
                cluster.restart(node)
            cluster.wait_healthy()
            self.feed(cluster, 0)

    def test_nodes_settings_and_history(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            self.feed(cluster, 0)
            cluster.wait_healthy()

            # A dry run says what would move, but moves nothing.
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

            # The nodes keep running when the terminal that started them closes.
            pids = [int(file.read_text().split()[0]) for file in (cluster.directory / "run").glob("*.pid")]
            self.assertEqual(len(pids), 6)
            for pid in pids:
                os.kill(pid, signal.SIGHUP)
            self.assertEqual(len(cluster.documents()), 2 * DOCUMENTS)
            for pid in pids:
                os.kill(pid, 0)  # Raises an error if there is no such process.

            # In maintenance for a while, and only one node at a time.
            cluster.must("node", "stop-check", "storage.2")
            cluster.wait_healthy()
            held = self.held(cluster, 2 * DOCUMENTS)
            cluster.must("node", "maintenance", "storage.2", "--reason", "a new disk", "--wait", 60)
            self.feed(cluster, 0)  # Goes on with the other replicas.
            self.assertEqual(self.held(cluster, 2 * DOCUMENTS), held)  # No replica is made elsewhere.
            status = json.loads(cluster.fjord("status", "-o", "json").out)
            self.assertEqual(status["buckets"]["under_replicated"], held["storage.2"], status)
            self.assertEqual(status["buckets"]["out_of_sync"], 0, status)
            self.assertTrue(any("storage.2 is maintenance for" in reason for reason in status["reasons"]), status)
            refused = cluster.fjord("node", "maintenance", "storage.1")
            self.assertEqual(refused.code, REFUSED, refused)
            self.assertIn("storage.2", refused.out)
            cluster.must("node", "up", "storage.2", "--wait", 60)
            cluster.wait_healthy()
            self.assertEqual(self.held(cluster, 2 * DOCUMENTS), held)
            self.assertEqual(cluster.fjord("node", "remove", "storage.2").code, REFUSED)
            self.assertEqual(cluster.fjord("node", "up", "storage.9").code, harness.NOT_FOUND)

            # Settings reach every node or are refused with a reason.
            cluster.must("config", "set", "storage.file_bytes_max=8MiB")
            bad = cluster.fjord("config", "set", "storage.file_bytes_max=8")
            self.assertEqual(bad.code, harness.USAGE, bad)
            self.assertIn("storage.file_bytes_max", bad.err)
            harness.wait_until(lambda: not cluster.must("config", "list", "-o", "json").json()["waiting"], "all have it")
            self.assertEqual(cluster.must("config", "get", "storage.file_bytes_max").out.strip(),
                             "8MiB  (live configuration)")
            self.assertEqual(cluster.must("config", "list", "-o", "json").json()["errors"], [])
            cluster.must("pause")
            cluster.must("resume")
            cluster.must("config", "revert", 1)
            self.assertEqual(len(cluster.must("config", "history").out.splitlines()), 3)

            # Moves single buckets, so that the fullest node has less.
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

            # The changes survive the controller; its state file is the list of nodes from now on.
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
