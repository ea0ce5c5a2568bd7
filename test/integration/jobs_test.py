"""Jobs over real data agree exactly with a computation of our own, also when a storage node is killed during the job."""

import collections
import csv
import math
import time
import unittest

import harness

CAR = """document car {
  field make type string { header }
  field model type string { header }
  field year type int { header }
  field price type int { header }
  field transmission type string { header }
  field mileage type int { header }
  field fueltype type string { header }
  field tax type int { header }
  field mpg type double { header }
  field enginesize type double { header }
}
"""
CITY = """document city {
  field name type string { header }
  field country type string { header }
  field subcountry type string { header }
  field geonameid type int { header }
}
"""

CARS = harness.data_file("used-cars.csv")
CITIES = harness.data_file("world-cities.csv")


def rows(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def stats_by(records, group, value, convert):
    """What fieldstats should say; floating-point sums are exact and rounded once."""
    groups = collections.defaultdict(list)
    for record in records:
        if record[group] != "" and record[value] != "":
            groups[record[group]].append(convert(record[value]))
    expected = {}
    for key, values in groups.items():
        total = sum(values) if convert is int else math.fsum(values)
        expected[key] = {"count": len(values), "sum": total, "min": min(values), "max": max(values), "avg": total / len(values)}
    return expected


class JobsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(storage=3, distributors=2, redundancy=2)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.deploy(CAR, CITY)
        cls.cars = rows(CARS)
        cls.cities = rows(CITIES)
        summary = cls.cluster.must("import", "--type", "car", "--id-row", CARS).json()
        assert summary["ok"] == len(cls.cars) and summary["failed"] == 0, summary
        summary = cls.cluster.must("import", "--type", "city", "--id-field", "geonameid", CITIES).json()
        assert summary["ok"] == len(cls.cities) and summary["failed"] == 0, summary

    def setUp(self):
        self.cluster.wait_healthy()

    def run_job(self, *arguments):
        ended = self.cluster.must("job", "run", *arguments, "--wait", "-o", "json").json()
        self.assertEqual(ended["phase"], "done")
        return ended, self.cluster.results(ended["job"])

    def test_all_rows_are_there(self):
        self.assertEqual(len(self.cluster.documents("--type", "car")), len(self.cars))
        self.assertEqual(len(self.cluster.documents("--type", "city")), len({row["geonameid"] for row in self.cities}))

    def test_mean_price_by_make(self):
        ended, results = self.run_job("fieldstats", "--type", "car", "--param", "group=make", "--param", "value=price")
        self.assertEqual(results, stats_by(self.cars, "make", "price", int))
        self.assertEqual(ended["documents_read"], len(self.cars))

    def test_mean_price_by_model(self):
        _, results = self.run_job("fieldstats", "--type", "car", "--param", "group=model", "--param", "value=price")
        self.assertEqual(results, stats_by(self.cars, "model", "price", int))

    def test_floating_point_sums_are_exact(self):
        _, results = self.run_job("fieldstats", "--type", "car", "--param", "group=make", "--param", "value=mpg")
        self.assertEqual(results, stats_by(self.cars, "make", "mpg", float))

    def test_selection_limits_the_input(self):
        _, results = self.run_job("fieldstats", "--type", "car", "--selection", "car.year >= 2018", "--param", "group=make",
                                  "--param", "value=price")
        recent = [car for car in self.cars if int(car["year"]) >= 2018]
        self.assertEqual(results, stats_by(recent, "make", "price", int))

    def test_cities_by_country(self):
        _, results = self.run_job("citycount", "--type", "city", "--param", "field=country")
        self.assertEqual(results, dict(collections.Counter(city["country"] for city in self.cities)))

    def test_results_are_documents(self):
        ended, results = self.run_job("citycount", "--type", "city", "--param", "field=country", "--output-namespace", "countries")
        documents = self.cluster.documents("--type", "fjord_result", "--selection", f'fjord_result.job == "{ended["job"]}"')
        self.assertEqual({fields["key"]: int(fields["value"]) for fields in documents.values()}, results)
        self.assertTrue(all(id_.startswith("id:countries:fjord_result:") for id_ in documents), list(documents)[:3])

    def kill_during(self, node, *arguments):
        """Runs a job, kills the node while the job has work to do there, and returns the ended job and its results."""
        for attempt in range(10):
            # One task at a time on each node, and another moment in each attempt.
            job = self.cluster.must("job", "run", *arguments, "--visitors-per-node", 1).out.strip()
            time.sleep(attempt * 0.03 % 0.2)
            self.cluster.kill(node)
            killed_us = time.time_ns() // 1000
            self.cluster.must("job", "watch", job, timeout=180)
            ended = self.cluster.must("job", "show", job, "-o", "json").json()
            results = self.cluster.results(job)
            self.cluster.restart(node)
            self.cluster.wait_healthy()
            self.assertEqual(ended["phase"], "done", ended)
            if ended["tasks_repeated"] > 0 and ended["finished_unix_us"] > killed_us:
                return ended, results
        self.fail(f"no job could be caught while it worked on {node}: {ended}")

    def test_cities_by_country_with_a_node_killed(self):
        # heavycity is citycount with so much computation a document that the node is certainly killed in between.
        ended, results = self.kill_during("storage.1", "heavycity", "--type", "city", "--param", "field=country",
                                          "--param", "iterations=20000")
        self.assertEqual(results, dict(collections.Counter(city["country"] for city in self.cities)))
        self.assertEqual(ended["documents_read"], len({city["geonameid"] for city in self.cities}))

    def test_mean_price_by_make_with_a_node_killed(self):
        ended, results = self.kill_during("storage.2", "fieldstats", "--type", "car", "--param", "group=make",
                                          "--param", "value=price")
        self.assertEqual(results, stats_by(self.cars, "make", "price", int))
        self.assertEqual(ended["documents_read"], len(self.cars))

    def test_mean_price_by_model_with_a_node_killed(self):
        _, results = self.kill_during("storage.0", "fieldstats", "--type", "car", "--param", "group=model",
                                      "--param", "value=price")
        self.assertEqual(results, stats_by(self.cars, "model", "price", int))


if __name__ == "__main__":
    harness.main()
