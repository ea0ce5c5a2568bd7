"""Voting tables on real processes: `fjord search affinity` from a log of queries to a table in force and back. Answers stay
equal, fewer pages are read, and what cannot be used is refused."""

import json
import random
import unittest

import harness
from schemas import ADS

WORDS = 300
LONG = 12  # Long keywords of a word: about a page.
TOPIC = 12  # Words that are searched together.
PADDING = "padding" * 50
REFUSED = 8


def word(number):
    return f"w{number:03}"


def feed_lines():
    for number in range(WORDS):
        at = f"n={number}"
        yield {"put": f"id:ads:ad_group:{at}:1", "fields": {"name": "g", "advertiser": number % 7}}
        yield {"put": f"id:ads:ad:{at}:1", "fields": {"title": word(number)}}
        # Few words match: documents of ads take place in the caches, too.
        yield {"put": f"id:ads:keyword:{at}:1", "fields": {"text": word(number) + " unasked" * (number % 50 != 0), "match": "broad",
                                                           "bid_micros": 100_000 + 997 * number}}
        for i in range(LONG):
            yield {"put": f"id:ads:keyword:{at}:{i + 2}", "fields": {"text": f"{word(number)} {PADDING}{i}", "match": "exact", "bid_micros": 50_000}}


def draw_queries(count, seed):
    chooser = random.Random(seed)
    for _ in range(count):
        topic = min(int(chooser.expovariate(1 / 8)), WORDS // TOPIC - 1)
        yield " ".join(word(topic * TOPIC + i) for i in chooser.sample(range(TOPIC), 3))


class AffinityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(storage=3, redundancy=3, settings="storage_options:\n  stripes: 1\n",
                                      cluster_settings="  distribution_bits: 4\n")
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.deploy(ADS)
        cls.cluster.must("feed", cls.cluster.file("ads.jsonl", "".join(json.dumps(line) + "\n" for line in feed_lines())))
        cls.queries = cls.cluster.file("queries.tsv", "".join(f"{i}\t{query}\n" for i, query in enumerate(draw_queries(3000, 1))))
        cls.table = cls.cluster.folder / "t.ftbl"
        # A table knows the words whose lists are in files by then.
        sizes = []

        def at_rest():
            sizes.append({str(path): path.stat().st_size for path in cls.cluster.directory.glob("storage.*/search/*/*.segment")})
            return len(sizes) > 1 and sizes[-1] and sizes[-1] == sizes[-2]
        harness.wait_until(at_rest, "the lists of keywords are in files", pause=2)
        harness.wait_until(lambda: cls.cluster.fjord("search", "w001").code == 0, "all is indexed")

    @classmethod
    def search(cls, query, *arguments):
        return cls.cluster.must("search", query, "-o", "json", *arguments).json()

    def affinity(self, command, *arguments):
        return self.cluster.fjord("search", "affinity", command, *arguments)

    def train(self, *arguments):
        trained = self.affinity("train", self.queries, "--replicas", 3, "--from-index", "--miss-percent", 30, "-o", "json", *arguments)
        self.assertEqual(trained.code, 0, str(trained))
        return trained.json()["cache_pages"], {way["way"]: way["miss_percent"] for way in trained.json()["ways"]}

    def deploy(self, *arguments):
        return self.affinity("deploy", self.table, "-o", "json", *arguments)

    def in_force(self):
        return self.cluster.must("config", "get", "search.affinity_table", "-o", "json").json()["value"] or "0"

    def wait_for_choice(self, text):
        harness.wait_until(lambda: text in self.search("w001", "--explain")["choice"], f"replicas are chosen by {text}")

    def replay(self, queries):
        """Returns the answers, and pages of lists used and read."""
        answers, pages, read = [], 0, 0
        for query in queries:
            found = self.search(query, "--explain", "--limit", 3)
            self.assertTrue(found["complete"])
            answers.append(found["places"])
            pages += sum(node["pages"] for node in found["nodes"])
            read += sum(node["pages_read"] for node in found["nodes"])
        return answers, pages, read

    def test_a_table_from_training_to_rollback(self):
        cache, ways = self.train("--table", self.table)
        self.assertLess(ways["table"], 0.7 * ways["fingerprint"])
        # A list takes its bytes in the cache, and whole pages in files: here about twice as much.
        self.cluster.must("config", "set", f"search.cache_bytes={cache * 2048}B")
        queries = list(draw_queries(600, 2))
        before, _, _ = self.replay(queries)
        before, pages, read = self.replay(queries)

        dry = self.deploy()
        self.assertEqual((dry.code, dry.json()["done"]), (0, False), str(dry))
        self.assertEqual(self.in_force(), "0")
        done = self.deploy("--yes")
        self.assertEqual((done.code, done.json()["done"]), (0, True), str(done))
        number = done.json()["table"]
        self.wait_for_choice(f"voting table {number} (BP+IR")
        self.assertEqual(self.replay(queries)[0], before)
        after, pages_after, read_after = self.replay(queries)
        self.assertEqual(after, before)
        self.assertLess(read_after / pages_after, 0.8 * read / pages)

        shown = self.affinity("show", "-o", "json").json()
        self.assertEqual([(table["table"], table["in_force"], table["foreign"]) for table in shown], [(str(number), True, False)])
        self.assertEqual(shown[0]["corpus"], "ad.title, ad_group.name, keyword.text")
        self.assertIn("WORD", self.affinity("show", number).out)
        self.assertEqual(self.affinity("show", number + 1).code, harness.NOT_FOUND)

        self.cluster.must("config", "set", "search.affinity_shadow=true")
        self.wait_for_choice("shadow caches")
        self.assertEqual(self.replay(queries)[0], before)
        self.cluster.must("config", "revert")
        self.cluster.must("config", "set", "search.affinity_table=0")
        self.wait_for_choice("by fingerprint")
        self.assertEqual(self.in_force(), "0")

    def test_what_cannot_be_used(self):
        self.train("--table", self.table, "--corpus", "song.title")
        refused = self.deploy("--yes")
        self.assertEqual(refused.code, REFUSED, str(refused))
        self.assertIn("trained on song.title", refused.err)
        marked = self.deploy("--foreign", "--yes", "--number", 77)
        self.assertEqual(marked.code, 0, str(marked))
        self.wait_for_choice("trained on another corpus: song.title")
        taken = self.deploy("--foreign", "--yes", "--number", 77)
        self.assertEqual(taken.code, REFUSED, str(taken))
        self.assertIn("there is a voting table 77 already", taken.err)

        self.cluster.must("config", "set", "search.affinity_table=99")

        def is_refused():
            finished = self.cluster.fjord("search", "w001")
            return finished.code == harness.NOT_FOUND and "there is no voting table 99" in finished.err
        harness.wait_until(is_refused, "a search says that the table is unknown")
        self.cluster.must("config", "set", "search.affinity_table=0")
        self.wait_for_choice("by fingerprint")
        for arguments in (["train", "no.tsv", "--replicas", 3], ["train", self.queries], ["show", "no.ftbl"], ["simulate", self.queries, "--replicas", 1]):
            self.assertIn(self.affinity(*arguments).code, (harness.USAGE, harness.NOT_FOUND), arguments)

    def test_a_simulation_needs_no_cluster(self):
        finished = harness.run_program("fjord", "search", "affinity", "simulate", self.queries, "--replicas", 3, "-o", "json")
        self.assertEqual(finished.code, 0, str(finished))
        ways = {way["way"]: way["miss_percent"] for way in finished.json()["ways"]}
        self.assertLess(ways["table"], ways["fingerprint"])
        self.assertLessEqual(ways["one cache of the size of all"], ways["table"])


if __name__ == "__main__":
    harness.main()
