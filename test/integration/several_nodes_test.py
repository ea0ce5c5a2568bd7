#!/usr/bin/env python3
"""Several nodes in one process: `fjordd --node distributor.0 --node distributor.1 ...`."""

import subprocess
import unittest

import harness

SCHEMA = "document note { field n type int { header } }\n"
DISTRIBUTORS = [f"distributor.{number}" for number in range(4)]


class SeveralNodesTest(unittest.TestCase):
    def setUp(self):
        self.cluster = harness.Cluster(storage=2, distributors=len(DISTRIBUTORS), redundancy=1)
        self.addCleanup(self.cluster.close)
        self.cluster.start()
        self.cluster.deploy(SCHEMA)
        for node in DISTRIBUTORS:
            self.cluster.kill(node)
        self.process = None
        self.addCleanup(self.end)

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)

    def command(self, *nodes):
        return [str(harness.BIN / "fjordd"), "--config", str(self.cluster.directory / "cluster.yaml"),
                *(argument for node in nodes for argument in ("--node", node))]

    def begin(self):
        with open(self.cluster.folder / "together.log", "a") as log:
            self.process = subprocess.Popen(self.command(*DISTRIBUTORS), stdout=log, stderr=log)
        self.cluster.wait_healthy()

    def put(self, numbers):
        lines = "".join(f'{{"put": "id:a:note::{n}", "fields": {{"n": {n}}}}}\n' for n in numbers)
        self.cluster.must("import", self.cluster.file("notes.jsonl", lines))

    def test_distributors_share_a_process(self):
        self.begin()
        self.put(range(200))
        self.assertEqual(len(self.cluster.documents()), 200)

        def all_own_buckets():
            owners = [node for node in self.cluster.status()["nodes"] if node["node"] in DISTRIBUTORS]
            return [node["state"] for node in owners] == ["up"] * len(DISTRIBUTORS) and all(node["buckets"] > 0 for node in owners)
        harness.wait_until(all_own_buckets, "each distributor owns buckets", 30)
        self.process.kill()
        self.process.wait(30)
        self.begin()
        self.put(range(200, 300))
        self.assertEqual(len(self.cluster.documents()), 300)

    def test_wrong_names_are_refused(self):
        for nodes, message in ((("distributor.0", "distributor.9"), "the configuration has no node distributor.9"),
                               (("distributor.0", "distributor.0"), "distributor.0"), (("distributor.0", "broker.1"), "--node")):
            refused = subprocess.run(self.command(*nodes), capture_output=True, text=True, timeout=60)
            self.assertNotEqual(refused.returncode, 0, nodes)
            self.assertIn(message, refused.stderr, nodes)


if __name__ == "__main__":
    harness.main()
