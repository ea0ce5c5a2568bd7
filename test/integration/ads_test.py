"""The commands of examples/ads/README.md work as written, and their results equal those of a plain loop over the
generated events."""

import collections
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ads"


class AdsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-ads-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        shutil.copytree(EXAMPLE, cls.folder / "examples" / "ads")
        blocks = re.findall(r"^```sh\n(.*?)^```", (EXAMPLE / "README.md").read_text(), re.M | re.S)
        *commands, stop = blocks
        assert len(commands) >= 5 and "local stop" in stop, "the README has changed its form"
        cls.environment = {**os.environ, "PATH": f"{harness.BIN}{os.pathsep}{os.environ['PATH']}"}
        cls.environment.pop("FJORD_CLUSTER", None)
        cls.addClassCleanup(cls.bash, stop)
        script = "\n".join(commands) + "\necho address=$FJORD_CLUSTER\n"
        finished = cls.bash(script)
        assert finished.returncode == 0, f"{finished.stdout[-3000:]}\n{finished.stderr[-3000:]}"
        cls.said = finished.stdout
        cls.environment["FJORD_CLUSTER"] = finished.stdout.rsplit("address=", 1)[1].strip()
        cls.impressions = {}
        for line in (cls.folder / "ads-data" / "impressions.jsonl").read_text().splitlines():
            operation = json.loads(line)
            cls.impressions[operation["put"]] = operation["fields"]
        cls.clicks = []
        for line in (cls.folder / "ads-data" / "clicks.jsonl").read_text().splitlines():
            operation = json.loads(line)
            if "put" in operation:
                cls.clicks.append(operation["fields"])
        for click in cls.clicks:
            impression = cls.impressions[click["impression"]]
            impression["clicked"], impression["cost_micros"] = True, click["cost_micros"]

    @classmethod
    def bash(cls, script):
        return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=cls.folder, env=cls.environment, text=True,
                              capture_output=True, timeout=200)

    def fjord(self, *arguments):
        finished = subprocess.run([str(harness.BIN / "fjord"), *arguments], env=self.environment, text=True, capture_output=True,
                                  timeout=100)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        return [json.loads(line) for line in finished.stdout.splitlines()]

    def expected(self, *keys):
        groups = collections.defaultdict(list)
        for impression in self.impressions.values():
            groups[tuple(impression[key] if isinstance(key, str) else key(impression) for key in keys)].append(impression)
        stats = {}
        for group, members in groups.items():
            clicks = sum(one["clicked"] for one in members)
            stats[group] = {"impressions": len(members), "clicks": clicks, "ctr": clicks / len(members),
                            "cost_micros": sum(one["cost_micros"] for one in members),
                            "position": sum(one["position"] for one in members) / len(members)}
        return stats

    def check(self, kind, names, stats):
        """Compares all documents of that type, by the fields that name their group."""
        found = {}
        for document in self.fjord("visit", "--type", kind):
            fields = document["fields"]
            group = tuple(int(fields[name]) for name in names)
            self.assertEqual(document["put"], f"id:ads:{kind}::week/[{','.join(map(str, group))}]")
            found[group] = {name: value for name, value in fields.items() if name not in names}
        columns = {name for fields in found.values() for name in fields}
        self.assertEqual(found, {group: {name: one[name] for name in columns} for group, one in stats.items()})
        return columns

    def test_statistics_of_keywords_are_documents_and_exact(self):
        columns = self.check("keyword_stats", ["keyword"], self.expected("keyword"))
        self.assertEqual(columns, {"impressions", "clicks", "cost_micros", "ctr", "position"})

    def test_statistics_of_groups_are_documents_and_exact(self):
        columns = self.check("group_stats", ["advertiser", "ad_group"], self.expected("advertiser", "ad_group"))
        self.assertEqual(columns, {"impressions", "clicks", "cost_micros", "ctr"})

    def test_statistics_of_hours_are_documents_and_exact(self):
        stats = self.expected(lambda impression: impression["shown_at"] // 3600 % 24)
        columns = self.check("hour_stats", ["hour"], stats)
        self.assertEqual(columns, {"impressions", "clicks", "ctr"})
        self.assertEqual(len(stats), 24)

    def test_the_table_says_what_the_documents_say(self):
        with open(self.folder / "keyword_stats.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        expected = self.expected("keyword")
        self.assertEqual(len(rows), len(expected))
        for row in rows:
            one = expected[int(row["keyword"]),]
            self.assertEqual({name: float(row[name]) for name in one}, one)

    def test_a_search_gives_ads_of_different_advertisers_whose_keywords_match(self):
        result = json.loads((self.folder / "search.json").read_text())
        self.assertTrue(result["complete"])
        self.assertGreater(len(result["places"]), 1)
        advertisers = [place["advertiser"] for place in result["places"]]
        self.assertEqual(len(set(advertisers)), len(advertisers))
        for place in result["places"]:
            self.assertLessEqual(set(place["matched"].split()), {"cheap", "flight", "today"})
            self.assertLessEqual(place["price_micros"], place["bid_micros"])

    def test_how_impressions_are_spread_over_keywords(self):
        spread = collections.defaultdict(collections.Counter)
        for one in self.expected("keyword").values():
            spread[one["impressions"] // 20 * 20].update(keywords=1, impressions=one["impressions"], clicks=one["clicks"])
        with open(self.folder / "keyword_spread.csv", newline="") as file:
            rows = {int(float(row["impressions_from"])): row for row in csv.DictReader(file)}
        self.assertGreater(len(rows), 2)
        self.assertEqual({start: {name: int(row[name]) for name in ("keywords", "impressions", "clicks")}
                          for start, row in rows.items()}, {start: dict(one) for start, one in spread.items()})

    def test_a_document_is_served(self):
        document = self.fjord("get", "id:ads:keyword_stats::week/[7]")[0]
        self.assertEqual(document["fields"]["keyword"], 7)
        self.assertIn("id:ads:keyword_stats::week/[7]", self.said)

    def test_clicks_as_documents_agree_with_those_that_impressions_know_of(self):
        rows = self.fjord("aggregate", "--type", "click", "--group-by", "keyword", "count() AS clicks",
                          "sum(cost_micros) AS cost_micros", "-o", "json")
        expected = {group[0]: one for group, one in self.expected("keyword").items() if one["clicks"] > 0}
        self.assertEqual({row["keyword"]: (row["clicks"], row["cost_micros"]) for row in rows},
                         {keyword: (one["clicks"], one["cost_micros"]) for keyword, one in expected.items()})

    def test_the_events_look_like_life(self):
        rate = {group[0]: one["ctr"] for group, one in self.expected("position").items()}
        self.assertGreater(rate[1], rate[2])
        self.assertGreater(rate[2], rate[3])
        self.assertGreater(rate[3], rate[4])
        shown = sorted((one["impressions"] for one in self.expected("query").values()), reverse=True)
        self.assertGreater(sum(shown[:len(shown) // 10]), sum(shown) // 2, "a tenth of the queries makes less than half of it")
        hours = {group[0]: one["impressions"] for group, one in
                 self.expected(lambda impression: impression["shown_at"] // 3600 % 24).items()}
        self.assertGreater(hours[20], 5 * hours[3])


if __name__ == "__main__":
    harness.main()
