"""One of three storage nodes has a much smaller disk: it fills up beside the others.

Puts on its buckets are refused with NO_SPACE, which names it; all else goes on: reads, visits, aggregations, jobs (their
intermediate documents and results are put on the other nodes), puts on other buckets, and the evacuation of the full node.

Needs to mount a tmpfs, so it is skipped for others than root.
"""

import json
import re
import shutil
import sys
import unittest

import harness
import space_test

SCHEMA = """document item {
  field number type int { header }
  field parity type string { header }
  field text type string { body }
}
"""
SMALL = "storage.1"
BATCH = 250


def parity_of(number):
    return "odd" if number % 2 else "even"


class UnequalDisksTest(unittest.TestCase):
    def feed(self, begin, count):
        """Returns the acknowledged texts, and the answers about all other documents."""
        texts = {number: space_test.text_of(number) for number in range(begin, begin + count)}
        lines = [json.dumps({"put": space_test.id_of(number),
                             "fields": {"number": number, "parity": parity_of(number), "text": text}})
                 for number, text in texts.items()]
        path = self.cluster.file("feed.jsonl", "\n".join(lines) + "\n")
        fed = self.cluster.fjord("feed", path, "--timeout", 20, "--errors-shown", count)
        bad = {begin + int(line) - 1: message for line, message in re.findall(r"feed\.jsonl:(\d+): (.*)", fed.err)}
        return {number: text for number, text in texts.items() if number not in bad}, bad

    def stored(self):
        return {id_: fields["text"] for id_, fields in self.cluster.documents("--type", "item").items()}

    def expected(self, acknowledged):
        return {space_test.id_of(number): text for number, text in acknowledged.items()}

    def buckets_of(self, name):
        return next(node["buckets"] for node in self.cluster.status()["nodes"] if node["node"] == name)

    def check_job(self, acknowledged):
        """Runs a job whose partial results are documents: they are put on the nodes that have space."""
        ended = self.cluster.must("job", "run", "citycount", "--type", "item", "--param", "field=parity", "--wait",
                                  "-o", "json").json()
        self.assertEqual(ended["phase"], "done")
        self.assertEqual(ended["shuffle"], "store")
        odd = sum(number % 2 for number in acknowledged)
        self.assertEqual({key: int(value) for key, value in self.cluster.results(ended["job"]).items()},
                         {"even": len(acknowledged) - odd, "odd": odd})

    def test_one_small_disk(self):
        settings = space_test.SETTINGS.format(engine="slotfile")
        self.cluster = harness.Cluster(storage=3, redundancy=2, settings=settings)
        self.addCleanup(shutil.rmtree, self.cluster.folder, ignore_errors=True)
        with space_test.SmallDisk(self.cluster.directory / SMALL) as disk, self.cluster:
            self.cluster.wait_healthy()
            self.cluster.deploy(SCHEMA)
            disk.add_ballast(150 * space_test.MIB)
            acknowledged = {}
            doubtful = {}
            refused = {}
            # Feeds on after the disk has filled up: puts on its buckets have to be refused, not in doubt.
            for begin in range(0, 40000, BATCH):
                ok, bad = self.feed(begin, BATCH)
                acknowledged.update(ok)
                doubtful.update({n: text for n, text in bad.items() if "in doubt" in text})
                refused.update({n: text for n, text in bad.items() if "in doubt" not in text})
                if len(refused) > 2 * BATCH:
                    break
            print(f"{len(acknowledged)} acknowledged, {len(refused)} refused, {len(doubtful)} in doubt; "
                  f"{sorted(set(refused.values()))[:2]}", flush=True)
            self.assertGreater(len(refused), 2 * BATCH, "the disk never filled up")
            self.assertEqual(doubtful, {})
            for message in refused.values():
                self.assertRegex(message, rf"NO_SPACE.*{SMALL}.*bytes free; storage\.space_")
            after, _ = self.feed(100000, BATCH)
            acknowledged.update(after)
            self.assertGreater(len(after), 0, "puts on buckets of the other nodes go on")

            # Everything that needs no space.
            self.assertEqual(self.stored(), self.expected(acknowledged))
            count = self.cluster.must("aggregate", "--type", "item", "count()", "-o", "json").out
            self.assertIn(str(len(acknowledged)), count)
            self.cluster.must("job", "list")
            self.check_job(acknowledged)
            gone = next(iter(acknowledged))
            self.cluster.must("remove", space_test.id_of(gone))
            del acknowledged[gone]

            # Its data moves to the others, and writes succeed again.
            self.cluster.must("node", "retire", SMALL)
            self.check_job(acknowledged)
            harness.wait_until(lambda: self.buckets_of(SMALL) == 0, "the full node is empty", 300)
            after, bad = self.feed(200000, BATCH)
            self.assertEqual(bad, {})
            acknowledged.update(after)
            self.assertEqual(self.stored(), self.expected(acknowledged))


if __name__ == "__main__":
    reason = space_test.reason_to_skip()
    if reason:
        print(f"SKIPPED: {reason}", file=sys.stderr)
        sys.exit(harness.SKIPPED)
    harness.main()
