"""Bits change on the only disk that holds some documents: what is lost is said, and an operator can give it up."""

import json
import random
import unittest
import urllib.request

import harness

SCHEMA = "document item { field number type int { header } field body type string { body } }"
DOCUMENTS = 20_000
BODY_BYTES = 600
FAILED = 1
LOST = "lost"


def lines_of(numbers):
    text = random.Random(7)
    bodies = [text.randbytes(BODY_BYTES // 2).hex() for _ in range(DOCUMENTS)]
    return "".join(json.dumps({"put": f"id:d:item::{i}", "fields": {"number": i, "body": bodies[i]}}) + "\n" for i in numbers)


class DamageTest(unittest.TestCase):
    def flip_bytes(self, cluster):
        """In the middle of two files of the storage node; returns how many."""
        files = sorted((cluster.directory / "storage.0" / "buckets").glob("*.slot"), key=lambda path: path.stat().st_size)
        for path in files[-2:]:
            content = bytearray(path.read_bytes())
            for at in range(len(content) // 2, len(content) * 3 // 4, 997):
                content[at] ^= 0xFF
            path.write_bytes(content)
        return len(files[-2:])

    def is_in_place(self, cluster):
        """All that was fed is in slotfiles, and next to nothing would be made good from the journal."""
        node = next(one for one in cluster.local("status", "-o", "json").json() if one["node"] == "storage.0")
        with urllib.request.urlopen(f"http://{node['http']}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()

        def total(name):
            return sum(float(line.split()[-1]) for line in lines if line.startswith(f"fjord_slotfile_{name}{{"))

        return total("live_bytes") > DOCUMENTS * BODY_BYTES * 0.9 and total("journal_bytes") < DOCUMENTS * BODY_BYTES * 0.1

    def troubles(self, cluster):
        return cluster.must("bucket", "list", "-o", "json").json_lines()

    def get_all(self, cluster):
        """The numbers of those that are there, and the codes that the others are answered with."""
        got = cluster.fjord("get", *[f"id:d:item::{i}" for i in range(DOCUMENTS)])
        there = {json.loads(line)["fields"]["number"] for line in got.out.splitlines()}
        codes = {code for code in ("CORRUPTION", "NOT_FOUND") if code in got.err}
        return there, codes

    def test_loss(self):
        with harness.Cluster(storage=1, redundancy=1) as cluster:
            cluster.deploy(SCHEMA)
            cluster.must("feed", "-", stdin=lines_of(range(DOCUMENTS)))
            # What is in the journal, too, would be made good from there.
            harness.wait_until(lambda: self.is_in_place(cluster), "documents are in slotfiles only")
            self.assertEqual(self.troubles(cluster), [])
            cluster.local("stop")
            damaged = self.flip_bytes(cluster)
            cluster.start()

            # Nothing that was lost is taken for something that never was.
            there, codes = self.get_all(cluster)
            self.assertLess(len(there), DOCUMENTS)
            self.assertEqual(codes, {"CORRUPTION"})
            harness.wait_until(lambda: len(self.troubles(cluster)) == damaged, "the damage is known")
            for trouble in self.troubles(cluster):
                self.assertEqual((trouble["what"], trouble["members"], trouble["damaged"]), (LOST, ["storage.0"], ["storage.0"]))
            # What the nodes have told the controller last.
            harness.wait_until(lambda: cluster.fjord("status").code == FAILED, "the status says so, too")

            # Named, listed, and given up only if one says so.
            one = self.troubles(cluster)[0]["bucket"]
            self.assertEqual(cluster.fjord("bucket", "accept-loss", "0x8000000000000001", "--yes").code, harness.NOT_FOUND)
            self.assertEqual(cluster.fjord("bucket", "accept-loss", "here").code, harness.USAGE)
            self.assertEqual(cluster.fjord("bucket", "accept-loss").code, harness.USAGE)
            self.assertIn(one, cluster.must("bucket", "accept-loss", "--all").out)
            self.assertEqual(len(self.troubles(cluster)), damaged)
            cluster.must("bucket", "accept-loss", one, "--yes")
            self.assertEqual(len(self.troubles(cluster)), damaged - 1)
            cluster.must("bucket", "accept-loss", "--all", "--yes")
            self.assertEqual(self.troubles(cluster), [])
            cluster.wait_healthy()

            left, codes = self.get_all(cluster)
            self.assertEqual(left, there)
            self.assertEqual(codes, {"NOT_FOUND"})
            cluster.must("feed", "-", stdin=lines_of(sorted(set(range(DOCUMENTS)) - left)))
            self.assertEqual(len(cluster.documents()), DOCUMENTS)


if __name__ == "__main__":
    harness.main()
