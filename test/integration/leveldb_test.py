"""Storage nodes on LevelDB: feed, read, visit, kill -9, and a folder of one engine under the other."""

import json
import shutil
import unittest

import harness

SCHEMA = """document item {
  field number type int { header }
  field text type string { body }
}
"""
DOCUMENTS = 500


def fields_of(number, round_):
    return {"number": number, "text": f"{round_} " * (1 + number % 300)}


class LeveldbTest(unittest.TestCase):
    def feed(self, cluster, round_):
        lines = [json.dumps({"put": f"id:level:item::{i}", "fields": fields_of(i, round_)}) for i in range(DOCUMENTS)]
        cluster.must("feed", cluster.file("feed.jsonl", "\n".join(lines) + "\n"))

    def test_a_cluster_on_leveldb(self):
        with harness.Cluster(storage=2, redundancy=2, settings="storage_options:\n  engine: leveldb\n") as cluster:
            self.assertTrue((cluster.directory / "storage.0/buckets/leveldb-0/CURRENT").exists())
            cluster.wait_healthy()
            cluster.deploy(SCHEMA)
            self.feed(cluster, 1)
            cluster.must("remove", "id:level:item::7")
            expected = {f"id:level:item::{i}": fields_of(i, 1) for i in range(DOCUMENTS) if i != 7}
            self.assertEqual(cluster.documents(), expected)

            cluster.kill("storage.0")
            cluster.restart("storage.0")
            cluster.wait_healthy()
            self.assertEqual(cluster.documents(), expected)

            # One node takes writes alone; the other one gets them from it.
            cluster.kill("storage.1")
            self.feed(cluster, 2)
            cluster.restart("storage.1")
            cluster.wait_healthy()
            expected = {f"id:level:item::{i}": fields_of(i, 2) for i in range(DOCUMENTS)}
            self.assertEqual(cluster.documents(), expected)
            cluster.kill("storage.0")
            cluster.restart("storage.0")
            cluster.wait_healthy()
            self.assertEqual(cluster.documents(), expected)

    def test_nodes_of_one_cluster_may_have_different_engines(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            self.feed(cluster, 1)
            cluster.wait_healthy()
            # The other engine recreates the folder of one node, and the other replicas fill it.
            cluster.kill("storage.1")
            shutil.rmtree(cluster.directory / "storage.1" / "buckets")
            path = cluster.directory / "cluster.yaml"
            path.write_text(path.read_text().replace("    directory: storage.1\n", "    directory: storage.1\n    engine: leveldb\n"))
            cluster.restart("storage.1")
            cluster.wait_healthy()
            self.assertTrue((cluster.directory / "storage.1/buckets/leveldb-0/CURRENT").exists())
            self.assertFalse((cluster.directory / "storage.0/buckets/leveldb-0").exists())
            # Writes that only the slotfile nodes took while it was down reach it, and the other way round.
            for round_, away in ((2, "storage.1"), (3, "storage.0")):
                cluster.kill(away)
                self.feed(cluster, round_)
                cluster.restart(away)
                cluster.wait_healthy()
            expected = {f"id:level:item::{i}": fields_of(i, 3) for i in range(DOCUMENTS)}
            self.assertEqual(cluster.documents(), expected)
            cluster.kill("storage.0")
            harness.wait_until(lambda: cluster.fjord("visit", "--count").out.strip() == str(DOCUMENTS), "the others serve alone")
            self.assertEqual(cluster.documents(), expected)
            cluster.restart("storage.0")
            cluster.wait_healthy()

    def test_a_folder_of_the_other_engine_is_refused(self):
        with harness.Cluster(storage=1, redundancy=1, settings="storage_options:\n  engine: leveldb\n") as cluster:
            cluster.local("stop")
            path = cluster.directory / "cluster.yaml"
            path.write_text(path.read_text().replace("engine: leveldb", "engine: slotfile"))
            started = harness.run_program("fjord", "local", "start", "--dir", cluster.directory, "--timeout", 5)
            self.assertNotEqual(started.code, harness.OK)
            self.assertRegex(cluster.logs(), "was made by the engine leveldb, and storage_options.engine is slotfile")


if __name__ == "__main__":
    harness.main()
