"""SIGSTOP of one of four storage nodes: operations are in doubt only where a member of their own bucket is silent.

The same documents are written before, so all buckets exist; `fjord bucket` is not asked for placement, because the two
of four replicas of each bucket are where documents are found afterwards.
"""

import json
import os
import signal
import unittest

import harness

DOCUMENTS = 400
SILENT = "storage.1"
SCHEMA = """document item {
  field number type int { header }
}
"""


class SilentNodeTest(unittest.TestCase):
    def feed(self, cluster, name, number, *options):
        lines = [json.dumps({"put": f"id:silent:item::{i}", "fields": {"number": number}}) for i in range(DOCUMENTS)]
        return cluster.fjord("feed", cluster.file(name, "\n".join(lines) + "\n"), "--errors-shown", 1000, *options)

    def test_doubt_stays_with_the_silent_node(self):
        with harness.Cluster(storage=4, redundancy=2) as cluster:
            cluster.wait_healthy()
            cluster.deploy(SCHEMA)
            self.assertEqual(self.feed(cluster, "first.jsonl", 1).code, harness.OK)
            pid = int((cluster.directory / "run" / f"{SILENT}.pid").read_text().split()[0])
            os.kill(pid, signal.SIGSTOP)
            try:
                fed = self.feed(cluster, "second.jsonl", 2, "--timeout", 1)
            finally:
                os.kill(pid, signal.SIGCONT)
            bad = [line for line in fed.err.splitlines() if "second.jsonl:" in line]
            print(f"{len(bad)} of {DOCUMENTS} puts were not applied or in doubt: {bad[:3]}", flush=True)
            # Half of the buckets have a member on the silent node; operations on the other buckets must never be in
            # doubt.
            self.assertLess(len(bad), DOCUMENTS * 0.75, fed)
            self.assertGreater(len(bad), 0, "the node was not silent")
            cluster.wait_healthy()
            stored = cluster.documents()
            new = sum(1 for fields in stored.values() if fields["number"] == 2)
            self.assertGreaterEqual(new, DOCUMENTS - len(bad))


if __name__ == "__main__":
    harness.main()
