"""`fjord aggregate` over real data agrees exactly with a separate computation, by both shuffles, also when a storage
node is killed while it works."""

import collections
import csv
import io
import json
import math
import os
import signal
import subprocess
import time
import unittest

import harness
from schemas import CAR

REPORT = """document make_report {
  field make type string { header }
  field count type long { header }
  field total type long { header }
  field mpg type double { header }
}
"""
CARS = harness.data_file("used-cars.csv")


def rows(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def nearest_rank(values, part):
    values = sorted(values)
    return values[max(1, math.ceil(part * len(values))) - 1]


class AggregateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(storage=3, distributors=2, redundancy=2)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.deploy(CAR, REPORT)
        cls.cars = rows(CARS)
        summary = cls.cluster.must("import", "--type", "car", "--id-row", CARS).json()
        assert summary["ok"] == len(cls.cars) and summary["failed"] == 0, summary

    def setUp(self):
        self.cluster.wait_healthy()

    def by(self, *fields):
        groups = collections.defaultdict(list)
        for car in self.cars:
            groups[tuple(car[field] if car[field] != "" else None for field in fields)].append(car)
        return groups

    def expected_by_make(self):
        expected = {}
        for (make,), cars in self.by("make").items():
            prices = [int(car["price"]) for car in cars]
            expected[make] = {"make": make, "count": len(cars), "total": sum(prices), "mpg": math.fsum(float(car["mpg"]) for car in cars if car["mpg"] != ""),
                              "low": min(prices), "high": max(prices), "models": len({car["model"] for car in cars})}
        return expected

    BY_MAKE = ["--type", "car", "--group-by", "make", "count()", "sum(price) AS total", "sum(mpg) AS mpg", "min(price) AS low",
               "max(price) AS high", "models=distinct(model)"]

    def aggregate(self, *arguments):
        finished = self.cluster.must("aggregate", *arguments, "-o", "json")
        return finished.json_lines(), finished.err

    def test_by_make_through_both_shuffles(self):
        for shuffle in ("auto", "direct", "store"):
            with self.subTest(shuffle=shuffle):
                lines, said = self.aggregate(*self.BY_MAKE, "--shuffle", shuffle)
                self.assertEqual({line["make"]: line for line in lines}, self.expected_by_make())
                self.assertEqual([line["make"] for line in lines], sorted(line["make"] for line in lines))
                self.assertIn(f"{len(self.cars)} documents", said)
                self.assertIn("nothing is missing", said)
                self.assertIn("shuffle " + ("store" if shuffle == "store" else "direct"), said)

    def test_several_keys_quantile_and_average(self):
        lines, _ = self.aggregate("--type", "car", "--group-by", "make, model", "--group-by", "year AS y", "avg(price)",
                                  "quantile(0.5,price) AS median", "count()")
        groups = self.by("make", "model", "year")
        self.assertEqual({(one["make"], one["model"], str(one["y"])) for one in lines}, set(groups))
        for one in lines:
            prices = [int(car["price"]) for car in groups[one["make"], one["model"], str(one["y"])]]
            self.assertEqual((one["avg_price"], one["count"]), (sum(prices) / len(prices), len(prices)))
            exact = nearest_rank(prices, 0.5)
            if isinstance(one["median"], dict):  # More different prices than the sketch keeps exactly.
                self.assertLessEqual(abs(one["median"]["estimate"] - exact), one["median"]["relative_error"] * exact)
            else:
                self.assertEqual(one["median"], exact)

    def test_having_order_limit_and_selection(self):
        lines, _ = self.aggregate("--type", "car", "--selection", "year >= 2018 and car.price > 5000", "--group-by", "model", "count()",
                                  "--having", "count > 100", "--order-by", "count desc, model", "--limit", 7)
        counts = collections.Counter(car["model"] for car in self.cars if int(car["year"]) >= 2018 and int(car["price"]) > 5000)
        expected = sorted(((n, model) for model, n in counts.items() if n > 100), key=lambda one: (-one[0], one[1]))[:7]
        self.assertEqual([(line["count"], line["model"]) for line in lines], expected)

    def test_top_and_histogram_of_everything(self):
        (line,), _ = self.aggregate("--type", "car", "top(3,transmission)", "histogram(year,10)", "distinct(price) AS prices")
        fuels = sorted(collections.Counter(car["transmission"] for car in self.cars).items(), key=lambda one: (-one[1], one[0]))
        self.assertEqual([(one["value"], one["count"]) for one in line["top_3_transmission"]], fuels[:3])
        decades = collections.Counter(int(car["year"]) // 10 * 10 for car in self.cars)
        self.assertEqual({one["from"]: one["count"] for one in line["histogram_year_10"]}, dict(decades))
        prices = len({car["price"] for car in self.cars})
        self.assertLess(abs(line["prices"]["estimate"] - prices), 4 * line["prices"]["standard_error"] * prices)

    def test_specification_in_a_file_and_csv(self):
        spec = self.cluster.file("spec.json", json.dumps({"type": "car", "group_by": ["make"], "aggregates": ["count()"], "limit": 1}))
        out = self.cluster.must("aggregate", "--spec", spec, "--limit", 1000, "-o", "csv").out
        table = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual({row["make"]: int(row["count"]) for row in table},
                         {make: len(cars) for (make,), cars in self.by("make").items()})
        text = self.cluster.must("aggregate", "--spec", spec).out.splitlines()
        self.assertEqual(text[0].split(), ["make", "count"])
        self.assertEqual(len(text), 2)

    def test_into_documents(self):
        arguments = ["aggregate", "--type", "car", "--group-by", "make", "count()", "sum(price) AS total", "--into", "make_report",
                     "--name", "report"]
        for _ in range(2):  # The second run replaces the rows of the first.
            self.cluster.must(*arguments)
        expected = {f'id:results:make_report::report/["{make}"]': {"make": make, "count": one["count"], "total": one["total"]}
                    for make, one in self.expected_by_make().items()}
        self.assertEqual(self.cluster.documents("--type", "make_report"), expected)
        one = next(iter(expected))
        self.assertEqual(self.cluster.must("get", one).json()["fields"], expected[one])
        refused = self.cluster.fjord("aggregate", "--type", "car", "--group-by", "model", "count()", "--into", "make_report")
        self.assertEqual(refused.code, harness.USAGE)
        self.assertIn('no field for the column "model"', refused.err)

    def test_rows_of_an_earlier_run_go(self):
        arguments = ["aggregate", "--type", "car", "--group-by", "make", "count()", "--into", "make_report", "--into-namespace",
                     "old", "--name", "years"]
        self.cluster.must(*arguments)
        finished = self.cluster.must(*arguments, "--selection", "year >= 2020", "--shuffle", "store")
        recent = {car["make"] for car in self.cars if int(car["year"]) >= 2020}
        gone = len(self.expected_by_make()) - len(recent)
        self.assertIn(f"{len(recent)} documents of type make_report were put", finished.err)
        if gone:
            self.assertIn(f"{gone} of an earlier run were removed", finished.err)
        found = self.cluster.documents("--type", "make_report", "--selection", 'id.namespace == "old"')
        self.assertEqual({fields["make"] for fields in found.values()}, recent)

    def test_passes(self):
        models = collections.Counter(len(cars) for cars in self.by("make", "model").values())
        spec = json.dumps({"passes": [{"type": "car", "group_by": "make,model", "aggregates": "count() AS cars"},
                                      {"group_by": "cars", "aggregates": ["count() AS models"], "order_by": "models desc"}]})
        for shuffle in ("direct", "store"):
            finished = self.cluster.must("aggregate", "--spec", "-", "--shuffle", shuffle, "-o", "json", stdin=spec)
            rows = [json.loads(line) for line in finished.out.splitlines()]
            self.assertEqual({row["cars"]: row["models"] for row in rows}, dict(models))
            self.assertIn(f"pass 1: {len(self.cars)} documents read", finished.err)
            self.assertIn(f"{sum(models.values())} documents (", finished.err)
        # The ten largest makes, kept as documents, and their total.
        makes = sorted((len(cars) for cars in self.by("make").values()), reverse=True)[:10]
        finished = self.cluster.must("aggregate", "--type", "car", "--group-by", "make", "count()", "--order-by", "count desc", "--limit", "10",
                                     "--then", '{"aggregates": ["sum(count) AS cars", "count()"]}', "-o", "json")
        self.assertEqual(finished.json(), {"cars": sum(makes), "count": len(makes)})
        refused = self.cluster.fjord("aggregate", "--type", "car", "--group-by", "make", "count()", "--then", '{"group_by": "model"}')
        self.assertEqual(refused.code, harness.USAGE)
        self.assertIn("pass 2", refused.err)

    def test_mistakes_say_where(self):
        for arguments, part in ((["--type", "car", "sum(prise)"], "'prise' is not a field"), (["--type", "cat", "count()"], "cat"),
                                (["count()"], "--type"), (["--type", "car", "count()", "--having", "n > 1"], "columns: count"),
                                (["--type", "car"], "nothing to compute")):
            with self.subTest(arguments=arguments):
                finished = self.cluster.fjord("aggregate", *arguments)
                self.assertEqual(finished.code, harness.NOT_FOUND if "cat" in arguments else harness.USAGE, finished)
                self.assertIn(part, finished.err)
                self.assertEqual(finished.out, "")

    def is_mapping(self):
        """True while an aggregation has read some but less than half of its buckets."""
        jobs = self.cluster.must("job", "list", "-o", "json").out.splitlines()
        return any(job["phase"] == "map" and 0 < job["map_tasks_done"] < job["map_tasks"] / 2 for job in map(json.loads, jobs))

    def kill_meanwhile(self, node, *options, when=None):
        """Stops the node, so that the aggregation waits for it, and then kills it; the first time when `when` holds."""
        pid = int((self.cluster.directory / "run" / f"{node}.pid").read_text().split()[0])
        running = None
        begin = lambda: self.cluster.begin("aggregate", *self.BY_MAKE, *options, "-o", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if when:
            running = begin()

            def at_work():
                nonlocal running
                if running.poll() is not None:  # It passed the moment between two looks, and ended.
                    running.communicate()
                    running = begin()
                return when()
            harness.wait_until(at_work, "the aggregation is at work")
        os.kill(pid, signal.SIGSTOP)
        try:
            running = running or begin()
            time.sleep(0.5)
            self.assertIsNone(running.poll(), "the aggregation does not need the node that is stopped")
        finally:
            self.cluster.kill(node)
        out, said = running.communicate(timeout=120)
        self.cluster.restart(node)
        self.assertEqual(running.returncode, 0, said)
        self.assertEqual({line["make"]: line for line in map(json.loads, out.splitlines())}, self.expected_by_make())
        self.assertIn("were read again", said)

    def test_a_node_is_killed_directly(self):
        self.kill_meanwhile("storage.1", "--shuffle", "direct")

    def test_a_node_is_killed_through_the_store(self):
        # The job's record has to be written before it begins, which needs the node.
        self.kill_meanwhile("storage.2", "--shuffle", "store", "--set", "throttle=100000", when=self.is_mapping)


if __name__ == "__main__":
    harness.main()
