"""Conditional writes by version, reads of one replica and the state of a bucket, from the command line."""

import json
import subprocess
import threading
import unittest

import harness

SCHEMA = "document tally { field count type int { header } field text type string { } }"
ID = "id:v:tally::one"


class VersionsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(storage=3, redundancy=2)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.deploy(SCHEMA)
        cls.cluster.wait_healthy()

    def setUp(self):
        self.cluster.must("remove", ID)

    def put(self, count, version):
        return self.cluster.fjord("put", ID, "-", "--if-version", version, "-o", "json", stdin=json.dumps({"count": count}))

    def read(self, *options):
        return self.cluster.must("get", ID, "--versions", *options).json()

    def test_a_write_needs_the_version_that_it_was_made_from(self):
        first = self.put(1, 0)
        self.assertEqual(first.code, harness.OK, first)
        version = first.json()["version"]
        self.assertEqual(self.read()["version"], version)
        for wrong in (0, version - 1, version + 1):
            refused = self.put(2, wrong)
            self.assertEqual(refused.code, harness.CONDITION_FALSE, refused)
            self.assertEqual((refused.json()["reason"], refused.json()["version"]), ("TEST_AND_SET_FAILED", version))
            self.assertIn(str(version), refused.err)
        second = self.put(2, version).json()["version"]
        self.assertGreater(second, version)
        change = '{"count": {"increment": 1}}'
        stale = self.cluster.fjord("update", ID, "-", "--if-version", version, stdin=change)
        self.assertEqual(stale.code, harness.CONDITION_FALSE, stale)
        self.cluster.must("update", ID, "-", "--if-version", second, stdin=change)
        third = self.read()
        self.assertEqual(third["fields"], {"count": 3})
        self.assertEqual(self.cluster.fjord("remove", ID, "--if-version", second).code, harness.CONDITION_FALSE)
        self.cluster.must("remove", ID, "--if-version", third["version"])
        gone = self.put(4, third["version"])
        self.assertEqual((gone.code, gone.json()["version"]), (harness.CONDITION_FALSE, 0))
        self.assertEqual(self.cluster.fjord("remove", ID, "id:v:tally::two", "--if-version", 1).code, harness.USAGE)
        self.assertEqual(self.cluster.fjord("put", ID, "-", "--if-version", "x", stdin="{}").code, harness.USAGE)

    def test_the_optimistic_loop_of_several_clients_loses_nothing(self):
        self.assertEqual(self.put(0, 0).code, harness.OK)
        failures = []

        def count_up():
            for _ in range(10):
                while True:
                    seen = self.read()
                    done = self.put(seen["fields"]["count"] + 1, seen["version"])
                    if done.code == harness.OK:
                        break
                    if done.code != harness.CONDITION_FALSE:
                        failures.append(str(done))
                        return

        threads = [threading.Thread(target=count_up) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.read()["fields"], {"count": 30})

    def test_replicas_are_read_one_by_one_and_shown(self):
        version = self.put(5, 0).json()["version"]
        shown = self.cluster.must("bucket", "show", ID, "-o", "json").json()
        self.assertEqual((shown["id"], shown["state"], len(shown["replica_set"])), (ID, "in sync", 2))
        self.assertEqual([replica["node"] for replica in shown["replicas"]], shown["replica_set"])
        self.assertEqual([replica["state"] for replica in shown["replicas"]], ["primary", "member"])
        for replica in shown["replicas"]:
            self.assertEqual(replica["document"]["version"], version)
            self.assertEqual(replica["document"]["checksum"], shown["replicas"][0]["document"]["checksum"])
            self.assertEqual(replica["checksum"], shown["replicas"][0]["checksum"])
            self.assertEqual(self.read("--node", replica["node"]), {"put": ID, "fields": {"count": 5}, "version": version})
        other = next(f"storage.{i}" for i in range(3) if f"storage.{i}" not in shown["replica_set"])
        refused = self.cluster.fjord("get", ID, "--node", other)
        self.assertEqual(refused.code, harness.USAGE, refused)
        self.assertIn(other, refused.err)
        self.assertEqual(self.cluster.fjord("get", ID, "--node", "storage.9").code, harness.NOT_FOUND)
        self.assertEqual(self.cluster.fjord("get", ID, "--node", "disk").code, harness.USAGE)

        by_bucket = self.cluster.must("bucket", "show", shown["bucket"])
        self.assertIn(shown["bucket"], by_bucket.out)
        self.assertIn(f"distributor.0", by_bucket.out)
        text = self.cluster.must("bucket", "show", ID).out
        self.assertEqual(text.count(str(version)), 2)
        self.cluster.must("remove", ID)
        removed = self.cluster.must("bucket", "show", ID, "-o", "json").json()
        for replica in removed["replicas"]:
            self.assertEqual(replica["document"]["status"], "NOT_FOUND")
            self.assertGreater(replica["document"]["removed_at"], version)
        gone = self.cluster.fjord("get", ID, "--node", shown["replica_set"][0])
        self.assertEqual(gone.code, harness.NOT_FOUND, gone)
        self.assertIn("removed", gone.err)
        self.assertEqual(self.cluster.fjord("bucket", "show", "nonsense").code, harness.USAGE)

    def test_a_replica_on_a_node_that_is_down_is_shown_as_such(self):
        self.put(5, 0)
        members = self.cluster.must("bucket", "show", ID, "-o", "json").json()["replica_set"]
        self.cluster.kill(members[1])
        try:
            def noticed():
                shown = self.cluster.fjord("bucket", "show", ID, "-o", "json")
                if shown.code != harness.OK:
                    return None
                states = {replica["node"]: replica["status"] for replica in shown.json()["replicas"]}
                return states.get(members[0]) == "OK" and states.get(members[1]) != "OK" and states
            harness.wait_until(noticed, "the silent replica is shown")
        finally:
            self.cluster.restart(members[1])
            self.cluster.wait_healthy()


if __name__ == "__main__":
    harness.main()
