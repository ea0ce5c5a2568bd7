"""Bytes change on the only disk with some documents: the loss is reported, and an operator can accept it."""

import json
import os
import pathlib
import random
import signal
import unittest
import urllib.request

import harness

SCHEMA = "document item { field number type int { header } field body type string { body } }"
DOCUMENTS = 20_000
BODY_BYTES = 600
PAGE = 4096
LOST = "lost"


def lines_of(numbers):
    text = random.Random(7)
    bodies = [text.randbytes(BODY_BYTES // 2).hex() for _ in range(DOCUMENTS)]
    return "".join(json.dumps({"put": f"id:d:item::{i}", "fields": {"number": i, "body": bodies[i]}}) + "\n" for i in numbers)


def sum_of(lines, name):
    """Returns the sum of a metric over all its labels."""
    return sum(float(line.split()[-1]) for line in lines if line.startswith((name + "{", name + " ")))


class DamageTest(unittest.TestCase):
    def flip_bytes(self, cluster):
        """Changes bytes in the middle of two files of the storage node. Returns their number."""
        files = sorted((cluster.directory / "storage.0" / "buckets").glob("*.slot"), key=lambda path: path.stat().st_size)
        for path in files[-2:]:
            content = bytearray(path.read_bytes())
            for at in range(len(content) // 2, len(content) * 3 // 4, 997):
                content[at] ^= 0xFF
            path.write_bytes(content)
        return len(files[-2:])

    def is_in_place(self, cluster, node="storage.0"):
        """True if all fed documents are in slotfiles of the node, and its journal could restore next to nothing."""
        fed = DOCUMENTS * BODY_BYTES
        written = sum(path.stat().st_size for path in (cluster.directory / node / "buckets").glob("*.slot"))
        # The gauges are updated at intervals. Those of one update that count all documents are younger than the feed.
        lines = self.metrics(cluster, node)
        known, left = (sum_of(lines, f"fjord_slotfile_{name}_bytes") for name in ("live", "journal"))
        return written > fed * 0.9 and known > fed * 0.99 and left < fed * 0.1

    def in_place(self, cluster, node):
        return self.metric(cluster, node, "fjord_slotfile_live_bytes")

    def metric(self, cluster, node, name):
        return sum_of(self.metrics(cluster, node), name)

    def metrics(self, cluster, node):
        http = next(one for one in cluster.local("status", "-o", "json").json() if one["node"] == node)["http"]
        with urllib.request.urlopen(f"http://{http}/metrics", timeout=10) as answer:
            return answer.read().decode().splitlines()

    def unhealthy(self, cluster):
        return cluster.must("bucket", "list", "-o", "json").json_lines()

    def get_all(self, cluster):
        """Returns the numbers of the existing documents, and the status codes of the others."""
        got = cluster.fjord("get", *[f"id:d:item::{i}" for i in range(DOCUMENTS)])
        there = {json.loads(line)["fields"]["number"] for line in got.out.splitlines()}
        codes = {code for code in ("CORRUPTION", "NOT_FOUND") if code in got.err}
        return there, codes

    def test_loss(self):
        with harness.Cluster(storage=1, redundancy=1) as cluster:
            cluster.deploy(SCHEMA)
            cluster.must("feed", "-", stdin=lines_of(range(DOCUMENTS)))
            # The journal would restore its entries.
            harness.wait_until(lambda: self.is_in_place(cluster), "documents are in slotfiles only")
            self.assertEqual(self.unhealthy(cluster), [])
            cluster.local("stop")
            damaged = self.flip_bytes(cluster)
            cluster.start()

            # A lost document is never reported as one that never existed.
            there, codes = self.get_all(cluster)
            self.assertLess(len(there), DOCUMENTS)
            self.assertEqual(codes, {"CORRUPTION"})
            harness.wait_until(lambda: len(self.unhealthy(cluster)) == damaged, "the damage is known")
            for bucket in self.unhealthy(cluster):
                self.assertEqual((bucket["what"], bucket["members"], bucket["damaged"]), (LOST, ["storage.0"], ["storage.0"]))
            # The last report of the nodes to the controller.
            harness.wait_until(lambda: cluster.fjord("status").code == harness.PARTIAL, "the status says so, too")

            # The loss is named and listed, and accepted only on request.
            one = self.unhealthy(cluster)[0]["bucket"]
            self.assertEqual(cluster.fjord("bucket", "accept-loss", "0x8000000000000001", "--yes").code, harness.NOT_FOUND)
            self.assertEqual(cluster.fjord("bucket", "accept-loss", "here").code, harness.USAGE)
            self.assertEqual(cluster.fjord("bucket", "accept-loss").code, harness.USAGE)
            self.assertIn(one, cluster.must("bucket", "accept-loss", "--all").out)
            self.assertEqual(len(self.unhealthy(cluster)), damaged)
            cluster.must("bucket", "accept-loss", one, "--yes")
            self.assertEqual(len(self.unhealthy(cluster)), damaged - 1)
            cluster.must("bucket", "accept-loss", "--all", "--yes")
            self.assertEqual(self.unhealthy(cluster), [])
            cluster.wait_healthy()

            left, codes = self.get_all(cluster)
            self.assertEqual(left, there)
            self.assertEqual(codes, {"NOT_FOUND"})
            cluster.must("feed", "-", stdin=lines_of(sorted(set(range(DOCUMENTS)) - left)))
            self.assertEqual(len(cluster.documents()), DOCUMENTS)

    def test_files_that_are_cut_off_while_they_are_read(self):
        """A node whose slotfiles become shorter under its hands goes on, and has everything back from the others."""
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            cluster.must("feed", "-", stdin=lines_of(range(DOCUMENTS)))
            harness.wait_until(lambda: self.in_place(cluster, "storage.0") > DOCUMENTS * BODY_BYTES * 0.5, "documents are in slotfiles")
            self.assertEqual(len(cluster.documents()), DOCUMENTS)  # Files are open and mapped.
            process = (cluster.directory / "run" / "storage.0.pid").read_text()
            files = sorted((cluster.directory / "storage.0" / "buckets").glob("*.slot"))
            for number, path in enumerate(files):
                with open(path, "r+b") as file:
                    file.truncate(0 if number % 2 else path.stat().st_size // 2)

            self.assertEqual(len(cluster.documents()), DOCUMENTS)
            # Gets go to random replicas, so some reach each file of the node.
            for _ in range(3):
                self.assertEqual(len(self.get_all(cluster)[0]), DOCUMENTS)
            self.assertGreater(self.metric(cluster, "storage.0", "fjord_storage_damaged_total"), 0)

            def is_whole():
                return self.metric(cluster, "storage.0", "fjord_storage_damaged_buckets") == 0 and not self.unhealthy(cluster)
            harness.wait_until(is_whole, "everything is repaired", 120)
            cluster.wait_healthy()
            self.assertEqual((cluster.directory / "run" / "storage.0.pid").read_text(), process)
            self.assertTrue(pathlib.Path(f"/proc/{process.split()[0]}").exists())
            self.assertIn("was cut off", (cluster.directory / "logs" / "storage.0.log").read_text())

            # The node has all documents again, so the other nodes can be stopped.
            cluster.kill("storage.1")
            harness.wait_until(lambda: len(self.get_all(cluster)[0]) == DOCUMENTS, "what storage.1 had is read elsewhere")

    def zero_and_invert(self, folder):
        """Zeroes 4 KiB in the middle of most slotfiles of the folder, and inverts the first 64 bytes of the others."""
        files = sorted(path for path in folder.glob("*.slot") if path.stat().st_size > 4 * PAGE)
        for number, path in enumerate(files):
            content = bytearray(path.read_bytes())
            if number % 4 == 3:
                content[:64] = bytes(byte ^ 0xFF for byte in content[:64])
            else:
                content[2 * PAGE:3 * PAGE] = bytes(PAGE)
            path.write_bytes(content)
        return len(files)

    def problems(self, folder):
        """Returns what the tool for the files of an engine finds, which shares no state with the node."""
        verified = harness.run_program("fjord-inspect", "verify", folder)
        return verified.out.splitlines() if verified.out or verified.code == harness.OK else [verified.err]

    def test_a_repair_is_on_disk(self):
        """A replica that was repaired serves everything alone, after restarts, too."""
        with harness.Cluster(storage=2, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            cluster.must("feed", "-", stdin=lines_of(range(DOCUMENTS)))
            harness.wait_until(lambda: self.is_in_place(cluster, "storage.1"), "documents are in slotfiles only")
            cluster.local("stop")
            folder = cluster.directory / "storage.1" / "buckets"
            self.assertGreater(self.zero_and_invert(folder), 4)
            self.assertGreater(len(self.problems(folder)), 4)
            cluster.start()
            self.assertEqual(len(cluster.documents()), DOCUMENTS)

            # The scrub reads everything at its rate: 12 MB in some seconds, not in minutes.
            def is_repaired():
                healthy = not self.unhealthy(cluster) and self.metric(cluster, "storage.1", "fjord_storage_damaged_buckets") == 0
                return healthy and self.metric(cluster, "storage.1", "fjord_slotfile_scrub_passes") > 0 and not self.problems(folder)
            harness.wait_until(is_repaired, lambda: f"everything is repaired: {self.problems(folder)[:3]}", 60, 0.5)
            self.assertGreater(self.metric(cluster, "storage.1", "fjord_storage_repaired_total"), 0)

            for _ in range(2):
                cluster.kill("storage.1")
                cluster.restart("storage.1")
                cluster.wait_healthy()
                self.assertEqual(len(cluster.documents()), DOCUMENTS)
                self.assertEqual(self.metric(cluster, "storage.1", "fjord_storage_damaged_total"), 0)
            cluster.kill("storage.0")
            harness.wait_until(lambda: cluster.fjord("visit", "--count").code == harness.OK, "storage.1 serves alone")
            self.assertEqual(len(cluster.documents()), DOCUMENTS)
            self.assertEqual(len(self.get_all(cluster)[0]), DOCUMENTS)
            cluster.local("stop")
            self.assertEqual(self.problems(folder), [])

    def test_a_process_that_dies_says_why(self):
        with harness.Cluster(storage=1, redundancy=1) as cluster:
            for node in ("storage.0", "distributor.0", "fleetcontroller.0"):
                log = cluster.directory / "logs" / f"{node}.log"
                os.kill(int((cluster.directory / "run" / f"{node}.pid").read_text().split()[0]), signal.SIGSEGV)
                # A child process resolves names of functions, with a short delay.
                harness.wait_until(lambda: "main at " in log.read_text(), f"{node} has said where it was")
                said = log.read_text()
                self.assertRegex(said, rf"error fatal: {node} \(process \d+, thread \w+\) ends on signal 11 \(SIGSEGV: .*\), "
                                       rf"sent by process {os.getpid()}; stack:\n")
                self.assertRegex(said, r"fjordd\(\+?\w*\+?0x[0-9a-f]+\)\[0x")
                cluster.restart(node)
            cluster.wait_healthy()


if __name__ == "__main__":
    harness.main()
