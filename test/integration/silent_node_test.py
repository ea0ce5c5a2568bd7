"""SIGSTOP of one of four storage nodes: operations are in doubt only where a member of their own bucket is silent.

The same documents are written before, so all buckets exist, and the documents that the node holds then are those of
its buckets.
"""

import json
import os
import re
import signal
import unittest

import harness

DOCUMENTS = 400
SILENT = "storage.1"
SCHEMA = """document item {
  field number type int { header }
}
"""


def id_of(number):
    return f"id:silent:item::{number}"


class SilentNodeTest(unittest.TestCase):
    def feed(self, cluster, name, number, *options):
        lines = [json.dumps({"put": id_of(i), "fields": {"number": number}}) for i in range(DOCUMENTS)]
        return cluster.fjord("feed", cluster.file(name, "\n".join(lines) + "\n"), "--errors-shown", 1000, *options)

    def held_by(self, cluster, node):
        """Returns the ids of the documents that have a replica on `node`."""
        ids = [id_of(i) for i in range(DOCUMENTS)]
        got = cluster.fjord("get", *ids, "--node", node)
        return {json.loads(line)["put"] for line in got.out.splitlines()}

    def test_doubt_stays_with_the_silent_node(self):
        with harness.Cluster(storage=4, redundancy=2) as cluster:
            cluster.wait_healthy()
            cluster.deploy(SCHEMA)
            self.assertEqual(self.feed(cluster, "first.jsonl", 1).code, harness.OK)
            held = self.held_by(cluster, SILENT)
            pid = int((cluster.directory / "run" / f"{SILENT}.pid").read_text().split()[0])
            os.kill(pid, signal.SIGSTOP)
            try:
                fed = self.feed(cluster, "second.jsonl", 2, "--timeout", 1)
            finally:
                os.kill(pid, signal.SIGCONT)
            bad = [line for line in fed.err.splitlines() if "second.jsonl:" in line]
            print(f"{len(bad)} of {DOCUMENTS} puts were not applied or in doubt: {bad[:3]}", flush=True)
            self.assertGreater(len(bad), 0, "the node was not silent")
            self.assertTrue(0 < len(held) < DOCUMENTS, held)
            lines = [int(re.search(r"second\.jsonl:(\d+):", line).group(1)) for line in bad]
            self.assertLessEqual({id_of(line - 1) for line in lines}, held)
            cluster.wait_healthy()
            stored = cluster.documents()
            new = sum(1 for fields in stored.values() if fields["number"] == 2)
            self.assertGreaterEqual(new, DOCUMENTS - len(bad))


if __name__ == "__main__":
    harness.main()
