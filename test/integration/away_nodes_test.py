"""As many storage nodes are away as a document has replicas, and everything is read: visits, exports, aggregations and
jobs need each bucket to be served, and no more. Too few replicas are told by every command and page alike."""

import json
import unittest

import harness

SCHEMA = "document item { field number type int { header } }"
DOCUMENTS = 300


def feed(cluster, first=0):
    lines = "".join(
        json.dumps({"put": f"id:away:item::{i}", "fields": {"number": i}}) + "\n" for i in range(first, first + DOCUMENTS))
    cluster.must("feed", "-", stdin=lines)


class AwayNodesTest(unittest.TestCase):
    def check_whole(self, cluster, documents):
        self.assertEqual(cluster.must("visit", "--count").out.strip(), str(documents))
        exported = cluster.folder / f"away{documents}.jsonl"
        cluster.must("export", exported, "--type", "item")
        self.assertEqual(len(exported.read_text().splitlines()), documents)
        for shuffle in ("direct", "store"):
            rows = cluster.must("aggregate", "--type", "item", "count()", "--shuffle", shuffle, "-o", "json").json_lines()
            self.assertEqual(rows, [{"count": documents}])
        cluster.must("job", "run", "citycount", "--type", "item", "--param", "field=number", "--wait")

    def too_few(self, cluster):
        """Returns the number of buckets with too few replicas, after a check that all who tell it agree."""
        status = cluster.status()
        count = status["buckets"]["under_replicated"]
        listed = [one for one in cluster.must("bucket", "list", "-n", 1000, "-o", "json").json_lines()
                  if one["what"] == "too few replicas"]
        self.assertEqual(len(listed), count)
        self.assertEqual(any("have too few replicas" in reason for reason in status["reasons"]), count > 0)
        self.assertEqual(status["health"] == "healthy", count == 0)
        self.assertLessEqual(status["buckets"]["in_sync"] + count, status["buckets"]["total"])
        self.assertIn(f"{count} with too few replicas", cluster.fjord("status").out)
        return count

    def test_one_rack_of_two_in_maintenance(self):
        groups = "  groups: (root (a 0 1) (b 2 3))\n"
        with harness.Cluster(storage=4, redundancy=2, cluster_settings=groups, gateways=1) as cluster:
            cluster.deploy(SCHEMA)
            feed(cluster)
            cluster.wait_healthy()
            self.assertEqual(self.too_few(cluster), 0)
            cluster.must("node", "stop-check", "storage.2", "storage.3")
            cluster.must("node", "maintenance", "storage.2", "storage.3", "--wait", 60)
            cluster.kill("storage.2")
            cluster.kill("storage.3")
            feed(cluster, DOCUMENTS)
            self.check_whole(cluster, 2 * DOCUMENTS)
            harness.wait_until(lambda: self.too_few(cluster) == cluster.status()["buckets"]["total"],
                               "all buckets have too few replicas")

    def test_one_ends_and_another_one_after_the_repair(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            feed(cluster)
            cluster.wait_healthy()
            cluster.kill("storage.1")

            def is_repaired():
                buckets = cluster.status()["buckets"]
                return buckets["total"] > 0 and buckets["in_sync"] == buckets["total"]
            harness.wait_until(lambda: "storage.1 is down" in cluster.fjord("status").out, "storage.1 is down")
            harness.wait_until(is_repaired, "all replicas are made again")
            cluster.kill("storage.2")
            harness.wait_until(lambda: "storage.2 is down" in cluster.fjord("status").out, "storage.2 is down")
            harness.wait_until(lambda: cluster.status()["buckets"]["unavailable"] == 0, "all buckets are served")
            feed(cluster, DOCUMENTS)
            self.check_whole(cluster, 2 * DOCUMENTS)


if __name__ == "__main__":
    harness.main()
