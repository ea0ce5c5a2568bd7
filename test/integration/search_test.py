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

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "operating" / "search.md"
GROUPS = 60
ADVERTISERS = 10
SCHEMA = """schema search {
  document ad_group {
    field name type string { header index: group }
    field advertiser type int { header }
  }
  document keyword {
    field text type string { header index: keyword }
    field match type string { header }
    field bid_micros type long { header }
  }
  document ad { field title type string { header index: ad } }
}"""


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
        self.cluster.deploy(SCHEMA)
        lines = []
        for group in range(GROUPS):
            lines.append({"put": f"id:ads:ad_group:n={group}:1", "fields": {"name": "g", "advertiser": group % ADVERTISERS}})
            lines.append({"put": f"id:ads:ad:n={group}:1", "fields": {"title": "Red boots"}})
            lines.append({"put": f"id:ads:keyword:n={group}:1",
                          "fields": {"text": "red boots", "match": "phrase", "bid_micros": bid_of(group)}})
        path = self.cluster.file("ads.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.cluster.must("feed", path)

    def search(self, *arguments):
        return self.cluster.fjord("search", "new red boots", "-o", "json", *arguments)

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
            found = thrift_client.must(calls.search(Search(query="new red boots", limit=3, session=True,
                                                           context=[Parameter("device", "phone")])))
            self.assertEqual(found.slices_searched, found.slices)
            self.assertEqual([(hit.advertiser, hit.bid_micros, hit.price_micros) for hit in found.hits], expected(3))
            refused = calls.search(Search(query="boots", context=[Parameter("hour", "x")]))
            self.assertEqual(thrift_client.name_of(refused.status), "INVALID_ARGUMENT")

    def test_new_keywords_are_found_and_removed_ones_are_not(self):
        self.cluster.must("put", "id:ads:keyword:n=3:2", '{"text": "blue boots", "match": "exact", "bid_micros": 50000}')
        found = self.cluster.must("search", "blue boots", "--session", "-o", "json").json()
        self.assertEqual(places_of(found), [(3, 50_000, 10_000)])
        self.cluster.must("remove", "id:ads:keyword:n=3:2")
        found = self.cluster.must("search", "blue boots", "--session", "-o", "json").json()
        self.assertEqual(found["places"], [])


if __name__ == "__main__":
    harness.main()
