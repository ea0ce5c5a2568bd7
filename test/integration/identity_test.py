"""A storage node process that runs under another index than the cluster's serves nothing and counts as down."""

import json
import os
import re
import shutil
import signal
import subprocess
import unittest
import urllib.error
import urllib.request

import harness

SCHEMA = "document item { field number type int { header } }"
DOCUMENTS = 200
REFUSED = 8


class IdentityTest(unittest.TestCase):
    def health(self, cluster, node):
        # Exits with 1, because one of the processes was not started by `fjord local`.
        status = harness.run_program("fjord", "local", "status", "--dir", cluster.directory, "-o", "json").json()
        http = {process["node"]: process["http"] for process in status}[node]
        try:
            with urllib.request.urlopen(f"http://{http}/health", timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def states(self, cluster):
        return {node["node"]: node["state"] for node in cluster.must("node", "list", "-o", "json").json()}

    def test_another_index(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            cluster.must("feed", "-", stdin="".join(
                json.dumps({"put": f"id:id:item::{i}", "fields": {"number": i}}) + "\n" for i in range(DOCUMENTS)))
            cluster.wait_healthy()

            # The address is tried first.
            nowhere = f"127.0.0.1:{harness.free_ports(1)[0]}"
            refused = cluster.fjord("node", "add", "storage", "--address", nowhere)
            self.assertEqual(refused.code, REFUSED, refused)
            self.assertIn("no answer from " + nowhere, refused.out)
            self.assertEqual(len(self.states(cluster)), 4)

            # An index is never given twice; a new node gets the next one and runs under it.
            cluster.must("node", "add", "storage", "--address", nowhere, "--force")
            cluster.must("node", "remove", "storage.3", "--force")
            self.assertEqual(cluster.local("add-node", "--timeout", 60).out.strip(), "storage.4")
            cluster.wait_healthy()
            self.assertEqual(self.states(cluster)["storage.4"], "up")
            cluster.must("node", "stop-check", "storage.0")
            self.assertEqual(self.health(cluster, "storage.4")["status"], "up")

            # The same process under another index is down, reports the reason, and counts for nothing.
            pid = int((cluster.directory / "run" / "storage.4.pid").read_text().split()[0])
            os.kill(pid, signal.SIGTERM)
            harness.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the end of storage.4")
            file = cluster.directory / "cluster.yaml"
            file.write_text(re.sub(r"index: 4\b", "index: 7", file.read_text()))
            # The folder is that of storage.4; the process refuses it, and leaves it alone.
            refused = subprocess.run([str(harness.BIN / "fjordd"), "--config", str(file), "--node", "storage.7"],
                                     stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            self.assertNotEqual(refused.returncode, 0)
            self.assertRegex(refused.stdout + refused.stderr, "is folder [0-9a-f]{16} of storage.4, cluster [0-9a-f]{16}, "
                             "and this process is storage.7")
            shutil.rmtree(cluster.directory / "storage.4" / "buckets")
            with open(cluster.directory / "logs" / "storage.7.log", "wb") as log:
                other = subprocess.Popen([str(harness.BIN / "fjordd"), "--config", str(file), "--node", "storage.7"],
                                         stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                harness.wait_until(lambda: "was started as storage.7" in cluster.must("node", "list").out,
                                   "the cluster knows who answers")
                self.assertEqual(self.states(cluster)["storage.4"], "down")
                health = self.health(cluster, "storage.7")
                self.assertEqual(health["status"], "misnamed")
                self.assertIn("started as storage.7, and the cluster calls the node at its address storage.4",
                              health["reasons"][0])
                self.assertEqual(cluster.fjord("node", "stop-check", "storage.0").code, REFUSED)
                harness.wait_until(lambda: len(cluster.documents()) == DOCUMENTS, "all documents are served")
            finally:
                other.terminate()
                other.wait(timeout=30)


if __name__ == "__main__":
    harness.main()
