"""The records of the fleet controller are lost while nodes run, and are recovered from the nodes."""

import json
import shutil
import unittest
import urllib.error
import urllib.request

import harness

SCHEMA = "document item { field number type int { header } }"
DOCUMENTS = 200


class LostRecordsTest(unittest.TestCase):
    def health(self, cluster, node):
        processes = cluster.fjord("local", "status", "--dir", cluster.directory, "-o", "json").json()
        http = {process["node"]: process["http"] for process in processes}[node]
        try:
            with urllib.request.urlopen(f"http://{http}/health", timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def test_records_come_back_from_the_nodes(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            cluster.must("feed", "-", stdin="".join(
                json.dumps({"put": f"id:lost:item::{i}", "fields": {"number": i}}) + "\n" for i in range(DOCUMENTS)))
            cluster.must("config", "set", "storage.entries_max=5000")
            cluster.wait_healthy()
            before = cluster.must("state", "show", "-o", "json").json()
            self.assertEqual(self.health(cluster, "fleetcontroller.0")[1]["status"], "up")

            cluster.kill("fleetcontroller.0")
            shutil.rmtree(cluster.directory / "fleetcontroller.0")
            # It never reaches the state that a start waits for.
            cluster.fjord("local", "restart", "fleetcontroller.0", "--dir", cluster.directory, "--timeout", 5)
            harness.wait_until(lambda: self.health(cluster, "fleetcontroller.0")[1]["status"] == "no_records", "it says so")
            code, page = self.health(cluster, "fleetcontroller.0")
            self.assertEqual(code, 503)
            self.assertIn("fjord state recover --from-nodes", page["reasons"][0])
            status = cluster.fjord("status")
            self.assertEqual(status.code, harness.FAILED, status)
            self.assertNotIn("answered in time", status.err)  # The answer comes at once.
            self.assertIn("fjord state recover --from-nodes", status.out + status.err)
            self.assertEqual(len(cluster.documents()), DOCUMENTS)  # The nodes go on unchanged.

            shown = cluster.must("state", "recover", "--from-nodes", "--dry-run").out
            self.assertIn("storage.2", shown)
            self.assertEqual(self.health(cluster, "fleetcontroller.0")[1]["status"], "no_records")
            cluster.must("state", "recover", "--from-nodes")
            cluster.wait_healthy()
            after = cluster.must("state", "show", "-o", "json").json()
            self.assertGreater(after["term"], before["term"])
            self.assertEqual(after["distribution"], before["distribution"])
            self.assertIn("5000", cluster.must("config", "get", "storage.entries_max").out)
            self.assertEqual(len(cluster.documents()), DOCUMENTS)
            cluster.must("put", "id:lost:item::0", "-", stdin='{"number": 7}')
            self.assertEqual(self.health(cluster, "fleetcontroller.0")[1]["status"], "up")


if __name__ == "__main__":
    harness.main()
