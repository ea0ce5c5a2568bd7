"""Folders of storage nodes that are removed, emptied or mixed up, and a cluster that is made anew under a running gateway."""

import contextlib
import json
import shutil
import unittest
import urllib.error
import urllib.request

import harness
from http_documents import Http

SCHEMA = "document item { field number type int { header } }"
OTHER_SCHEMA = "document item { field text type string { body } field number type string { header } }"
DOCUMENTS = 300


def lines(numbers=range(DOCUMENTS)):
    return "".join(json.dumps({"put": f"id:f:item::{i}", "fields": {"number": i}}) + "\n" for i in numbers)


@contextlib.contextmanager
def fed(storage=2, **others):
    """A healthy cluster that has all documents."""
    with harness.Cluster(storage=storage, redundancy=2, **others) as cluster:
        cluster.deploy(SCHEMA)
        cluster.must("feed", "-", stdin=lines())
        cluster.wait_healthy()
        yield cluster


class LostFolderTest(unittest.TestCase):
    def http_of(self, cluster, node):
        # Exits with 1 while a process does not run.
        status = harness.run_program("fjord", "local", "status", "--dir", cluster.directory, "-o", "json").json()
        return {process["node"]: process["http"] for process in status}[node]

    def health(self, cluster, node):
        try:
            with urllib.request.urlopen(f"http://{self.http_of(cluster, node)}/health", timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def reasons(self, cluster):
        return "\n".join(cluster.status()["reasons"])

    def log(self, cluster, node):
        return (cluster.directory / "logs" / f"{node}.log").read_text()

    def get_codes(self, cluster):
        """Returns the number of documents that are read, and the codes of the others."""
        got = cluster.fjord("get", "--timeout", "3", *[f"id:f:item::{i}" for i in range(DOCUMENTS)])
        return len(got.out.splitlines()), {code for code in ("NOT_FOUND", "UNAVAILABLE", "CORRUPTION") if code in got.err}

    def start_without_data(self, cluster):
        # It does not become healthy.
        harness.run_program("fjord", "local", "start", "--dir", cluster.directory, "--timeout", 10)
        harness.wait_until(lambda: self.reasons(cluster).count("came back without its data") == 2, lambda: self.reasons(cluster))

    def test_files_that_are_removed_while_the_node_runs(self):
        with fed(storage=3) as cluster:
            shutil.rmtree(cluster.directory / "storage.1" / "buckets")
            harness.wait_until(lambda: "storage.1" in self.reasons(cluster), "status names the node", 10)
            harness.wait_until(lambda: "is gone" in self.reasons(cluster), lambda: self.reasons(cluster), 10)
            self.assertEqual(cluster.fjord("status").code, harness.PARTIAL)
            health = self.health(cluster, "storage.1")
            self.assertEqual((health["healthy"], health["status"]), (False, "failed"), health)

            # The others take what comes, and nothing is repeated in the log for ever.
            cluster.must("feed", "-", stdin=lines())
            before = len(self.log(cluster, "storage.1").splitlines())
            harness.wait_until(lambda: cluster.status()["buckets"]["out_of_sync"] == 0, "the others are in sync")
            self.assertLess(len(self.log(cluster, "storage.1").splitlines()) - before, 10)

            cluster.restart("storage.1")
            cluster.wait_healthy()
            self.assertEqual(len(cluster.documents()), DOCUMENTS)

    def test_all_folders_away_at_the_start(self):
        with fed() as cluster:
            cluster.local("stop")
            for node in ("storage.0", "storage.1"):
                (cluster.directory / node).rename(cluster.directory / f"{node}.away")
            self.start_without_data(cluster)
            self.assertEqual(cluster.fjord("status").code, harness.FAILED)
            there, codes = self.get_codes(cluster)
            self.assertEqual((there, codes), (0, {"UNAVAILABLE"}))
            self.assertNotEqual(cluster.fjord("put", "id:f:item::1", '{"number": 1}', "--timeout", "3").code, 0)

            # With the former folders nothing was lost.
            cluster.local("stop")
            for node in ("storage.0", "storage.1"):
                shutil.rmtree(cluster.directory / node)
                (cluster.directory / f"{node}.away").rename(cluster.directory / node)
            cluster.start()
            cluster.wait_healthy()
            self.assertEqual(len(cluster.documents()), DOCUMENTS)

            # And once more without them, for good.
            cluster.local("stop")
            for node in ("storage.0", "storage.1"):
                shutil.rmtree(cluster.directory / node)
            self.start_without_data(cluster)
            cluster.must("node", "accept-loss", "storage.0", "storage.1")
            cluster.wait_healthy()
            self.assertEqual(self.get_codes(cluster), (0, {"NOT_FOUND"}))
            cluster.must("feed", "-", stdin=lines())
            self.assertEqual(len(cluster.documents()), DOCUMENTS)

    def test_one_empty_folder_is_filled(self):
        with fed() as cluster:
            cluster.local("stop")
            shutil.rmtree(cluster.directory / "storage.0")
            cluster.start()
            cluster.wait_healthy()
            self.assertEqual(len(cluster.documents()), DOCUMENTS)
            cluster.kill("storage.1")
            self.assertEqual(self.get_codes(cluster), (DOCUMENTS, set()))

    def test_the_folder_of_another_node(self):
        with fed() as cluster:
            cluster.local("stop")
            first, second = cluster.directory / "storage.0", cluster.directory / "storage.1"
            aside = cluster.directory / "aside"
            first.rename(aside)
            second.rename(first)
            aside.rename(second)
            refused = harness.run_program("fjord", "local", "start", "--dir", cluster.directory, "--timeout", 10)
            self.assertNotEqual(refused.code, 0)
            self.assertRegex(self.log(cluster, "storage.0"), "is folder [0-9a-f]{16} of storage.1, cluster [0-9a-f]{16}, and this "
                             "process is storage.0")
            harness.run_program("fjord", "local", "stop", "--dir", cluster.directory)
            first.rename(aside)
            second.rename(first)
            aside.rename(second)
            cluster.start()
            cluster.wait_healthy()
            self.assertEqual(len(cluster.documents()), DOCUMENTS)

    def test_a_gateway_that_outlives_its_cluster(self):
        with fed(gateways=1) as cluster:
            path = "/document/v1/f/item/docid/1"
            port = int(self.http_of(cluster, "gateway.0").rsplit(":", 1)[1])

            def get():
                gateway = Http(port)
                try:
                    return gateway.send("GET", path)
                finally:
                    gateway.connection.close()

            self.assertEqual(get()[0], 200)
            nodes = ["storage.0", "storage.1", "distributor.0", "fleetcontroller.0"]
            for node in nodes:
                cluster.kill(node)
            for node in nodes:
                shutil.rmtree(cluster.directory / node, ignore_errors=True)
            cluster.start()
            cluster.deploy(OTHER_SCHEMA)
            cluster.must("put", "id:f:item::1", '{"number": "one", "text": "another cluster"}')
            answer = get()
            self.assertEqual(answer[0], 200, answer)
            self.assertIn("another cluster", str(answer))


if __name__ == "__main__":
    harness.main()
