"""Searches on real processes: the page docs/operating/search.md works as written; complete answers are right while a storage node is
killed and restarted; partial ones say so; stock Thrift clients search, too."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import harness
import thrift_client
from fjord_api.ttypes import Parameter, Search
from schemas import ADS

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "operating" / "search.md"
GROUPS = 60
ADVERTISERS = 10


def bid_of(group):
    return 100_000 + 7_919 * group % 50_000


def expected(places):
    """All quality is equal here: the best bid of each advertiser counts, and a place costs the next one's bid."""
    best = {}
    for group in range(GROUPS):
        best[group % ADVERTISERS] = max(best.get(group % ADVERTISERS, 0), bid_of(group))
    order = sorted(((bid, advertiser) for advertiser, bid in best.items()), reverse=True)
    return [(advertiser, bid, order[i + 1][0] if i + 1 < len(order) else 10_000)
            for i, (bid, advertiser) in enumerate(order)][:places]


def places_of(result):
    return [(place["advertiser"], place["bid_micros"], place["price_micros"]) for place in result["places"]]


class PageTest(unittest.TestCase):
    def test_the_commands_of_the_page(self):
        script = "\n".join(re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.M | re.S))
        environment = {**os.environ, "PATH": f"{harness.BIN}{os.pathsep}{os.environ['PATH']}"}
        environment.pop("FJORD_CLUSTER", None)
        with tempfile.TemporaryDirectory() as folder:
            finished = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, text=True,
                                      capture_output=True, timeout=120)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        self.assertIn("id:ads:ad:n=1:1", finished.stdout)
        self.assertIn("id:ads:ad:n=2:1", finished.stdout)


class SearchTest(unittest.TestCase):
    def setUp(self):
        self.cluster = harness.Cluster(storage=3, redundancy=2)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.cluster.deploy(ADS)
        lines = []
        for group in range(GROUPS):
            lines.append({"put": f"id:ads:ad_group:n={group}:1", "fields": {"name": "g", "advertiser": group % ADVERTISERS}})
            lines.append({"put": f"id:ads:ad:n={group}:1", "fields": {"title": "Red boots"}})
            lines.append({"put": f"id:ads:keyword:n={group}:1",
                          "fields": {"text": "red boots", "match": "phrase", "bid_micros": bid_of(group)}})
        path = self.cluster.file("ads.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.cluster.must("feed", path)

    def search(self, *arguments, query="new red boots"):
        """The limit of 500 ms is too short for a machine that does other work."""
        within = () if "--within" in arguments else ("--within", "20000")
        return self.cluster.fjord("search", query, "-o", "json", *within, *arguments)

    def find(self, query, *arguments):
        found = self.search(*arguments, query=query)
        self.assertEqual(found.code, 0, str(found))
        return found.json()

    def test_answers_while_a_node_is_killed(self):
        wanted = expected(4)
        self.assertEqual(places_of(self.search("--session").json()), wanted)
        complete = 0
        self.cluster.kill("storage.1")
        for _ in range(40):
            finished = self.search()
            self.assertIn(finished.code, (0, 5), str(finished))
            result = json.loads(finished.out)
            self.assertEqual(finished.code, 0 if result["complete"] else 5)
            if result["complete"]:
                complete += 1
                self.assertEqual(places_of(result), wanted)
            else:
                self.assertIn("slices were not searched", result["missing"])
        self.assertGreater(complete, 0)
        self.cluster.restart("storage.1")
        self.cluster.wait_healthy()

        def searches_again():
            result = json.loads(self.search("--explain").out)
            if result["complete"]:
                self.assertEqual(places_of(result), wanted)
            return "storage.1" in {node["node"] for node in result["nodes"] if node["slices_searched"]}
        harness.wait_until(searches_again, "the node that came back searches again")

    def test_without_replicas_the_answer_says_what_is_missing(self):
        self.cluster.kill("storage.1")
        self.cluster.kill("storage.2")
        finished = self.search("--within", "300")
        self.assertEqual(finished.code, 5, str(finished))
        result = json.loads(finished.out)
        self.assertLess(result["slices_searched"], result["slices"])
        self.assertIn("slices were not searched", result["missing"])

    def test_what_is_refused(self):
        for arguments in (["--context", "hour=24"], ["--context", "colour=red"], ["--limit", "101"]):
            finished = self.search(*arguments)
            self.assertEqual(finished.code, 2, str(finished))
        self.assertEqual(self.cluster.fjord("search", "...").code, 2)

    def test_a_thrift_client_searches(self):
        with thrift_client.Connection(self.cluster.address) as calls:
            found = thrift_client.must(calls.search(Search(query="new red boots", limit=3, session=True, timeout_ms=20_000,
                                                           context=[Parameter("device", "phone")])))
            self.assertEqual(found.slices_searched, found.slices)
            self.assertEqual([(hit.advertiser, hit.bid_micros, hit.price_micros) for hit in found.hits], expected(3))
            refused = calls.search(Search(query="boots", context=[Parameter("hour", "x")]))
            self.assertEqual(thrift_client.name_of(refused.status), "INVALID_ARGUMENT")

    def test_new_keywords_are_found_and_removed_ones_are_not(self):
        self.cluster.must("put", "id:ads:keyword:n=3:2", '{"text": "blue boots", "match": "exact", "bid_micros": 50000}')
        found = self.find("blue boots", "--session")
        self.assertEqual(places_of(found), [(3, 50_000, 10_000)])
        self.cluster.must("remove", "id:ads:keyword:n=3:2")
        found = self.find("blue boots", "--session")
        self.assertEqual(found["places"], [])

    def test_synonyms_from_a_file_to_rollback(self):
        found = self.find("crimson boots", "--session")
        self.assertEqual(found["places"], [])
        names = self.cluster.file("synonyms.txt", "red, crimson\n")
        dry = self.cluster.must("search", "synonyms", "deploy", names, "-o", "json").json()
        self.assertEqual((dry["done"], dry["list"], dry["terms"]), (False, 1, 2))
        self.cluster.must("search", "synonyms", "deploy", names, "--yes")

        def is_found():
            found = self.search("--session", "--explain", query="crimson boots")
            return found.code == 0 and found.json()["variants"] == ["crimson boots", "red boots"] and places_of(found.json()) == expected(4)
        harness.wait_until(is_found, "a synonym finds keywords")
        self.assertEqual(self.cluster.must("search", "synonyms", "show").out, "red, crimson\n")
        self.assertEqual(self.cluster.fjord("search", "synonyms", "deploy", names, "--number", 1, "--yes").code, 8)
        broken = self.cluster.fjord("search", "synonyms", "deploy", self.cluster.file("broken.txt", "red, crimson\nalone\n"), "--yes")
        self.assertEqual(broken.code, 2, str(broken))
        self.assertIn("line 2", broken.err)

        self.cluster.must("config", "set", "search.synonyms=9")

        def is_refused():
            finished = self.search(query="crimson boots")
            return finished.code == harness.NOT_FOUND and "there is no list 9 of synonyms" in finished.err
        harness.wait_until(is_refused, "a search says that the list is unknown")
        self.cluster.must("config", "set", "search.synonyms=0")
        harness.wait_until(lambda: self.find("crimson boots")["places"] == [], "synonyms are off")
        self.assertEqual(self.cluster.fjord("search", "synonyms", "show", 5).code, harness.NOT_FOUND)

    def test_a_table_is_trained_from_recorded_queries(self):
        train = ("search", "affinity", "train", "--recorded", "--replicas", 2, "-o", "json")
        none = self.cluster.fjord(*train)
        self.assertEqual(none.code, harness.NOT_FOUND, str(none))
        self.assertIn("search.log_part", none.err)
        self.cluster.must("config", "set", "search.log_part=1")

        def are_recorded():
            for word in ("red", "blue", "green", "black"):
                self.find(f"{word} BOOTS")
            trained = self.cluster.fjord(*train)
            return trained.code == 0 and trained.json()["queries"] >= 8 and trained.json()["words"] == 5
        harness.wait_until(are_recorded, "queries are recorded", pause=1)
        seen = self.cluster.must("visit", "--type", "fjord_queries").out
        self.assertIn("green boots", seen)
        self.assertNotIn("fjord_queries", self.cluster.must("visit").out)
        self.assertEqual(self.cluster.fjord("search", "affinity", "train", "--replicas", 2).code, harness.USAGE)
        self.assertEqual(self.cluster.must("remove", "--selection", "fjord_queries", "--type", "fjord_queries", "--yes").code, 0)


if __name__ == "__main__":
    harness.main()
