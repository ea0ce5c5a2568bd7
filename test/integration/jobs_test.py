"""Jobs over real data agree exactly with a separate computation, also when a storage node is killed during the job."""

import collections
import csv
import json
import math
import subprocess
import time
import unittest

import harness
from schemas import CAR

CITY = """document city {
  field name type string { header }
  field country type string { header }
  field subcountry type string { header }
  field geonameid type int { header }
}
"""
COUNTRY = """document country_count {
  field country type string { header }
  field n type long { header }
}
"""

CARS = harness.data_file("used-cars.csv")
CITIES = harness.data_file("world-cities.csv")


def rows(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def stats_by(records, group, value, convert):
    """Returns the expected result of fieldstats; floating-point sums are exact and rounded once."""
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
        cls.cluster.deploy(CAR, CITY, COUNTRY)
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
        """Runs a job and kills the node while the job has work to do there. Returns the ended job and its results."""
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
        # heavycity is citycount with much computation per document, so the node is certainly killed during the job.
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

    # --- Jobs do not depend on the process that runs them.

    def show(self, job):
        return self.cluster.must("job", "show", job, "-o", "json").json()

    def wait_for(self, job, condition, what):
        found = {}

        def reached():
            finished = self.cluster.fjord("job", "show", job, "-o", "json", "--timeout", "5")
            if finished.code == harness.OK:
                found.update(finished.json())
                self.assertNotIn(found["phase"], ("failed",), found)
            return bool(found) and condition(found)

        harness.wait_until(reached, what)
        return found

    def slow_job(self, *settings):
        return self.cluster.must("job", "run", "heavycity", "--type", "city", "--param", "field=country", "--param",
                                 "iterations=3000", "--visitors-per-node", 1,
                                 *[word for setting in settings for word in ("--set", setting)]).out.strip()

    def test_a_job_goes_on_when_the_distributor_that_runs_it_is_killed(self):
        job = self.slow_job("throttle=30kB")
        running = self.wait_for(job, lambda now: now["map_tasks_done"] > 2, "job is under way")
        self.assertEqual(running["state"], "running")
        self.cluster.kill(running["owner"])
        taken = self.wait_for(job, lambda now: now["taken_over"] > 0, "job has another owner")
        self.assertNotEqual(taken["owner"], running["owner"])
        self.cluster.must("job", "set", job, "throttle=0")
        self.cluster.must("job", "watch", job, timeout=180)
        ended = self.show(job)
        self.assertEqual(ended["phase"], "done", ended)
        self.assertEqual(ended["documents_read"], len({city["geonameid"] for city in self.cities}))
        self.assertEqual(self.cluster.results(job), dict(collections.Counter(city["country"] for city in self.cities)))
        self.assertIn(job, [line["job"] for line in self.cluster.must("job", "list", "-o", "json").json_lines()])
        self.cluster.restart(running["owner"])

    def country_documents(self):
        found = self.cluster.documents("--type", "country_count")
        return {id_: (fields["country"], fields["n"]) for id_, fields in found.items()}

    def check_chain_with_kills(self, shuffle, kills):
        """Runs a long chain whose passes after the first change nothing; kills the job's owner in one pass after the
        other."""
        again = json.dumps({"group_by": "country", "aggregates": "sum(n) AS n"})
        passes = 4
        name = f"chain-{shuffle}"
        expected = collections.Counter(city["country"] for city in self.cities)
        stale = f'id:results:country_count::{name}/["Atlantis"]'
        self.cluster.must("put", stale, "-", stdin=json.dumps({"country": "Atlantis", "n": 1}))
        process = self.cluster.begin("aggregate", "--type", "city", "--group-by", "country", "count() AS n",
                                     *["--then", again] * (passes - 1), "--into", "country_count", "--name", name, "--shuffle", shuffle,
                                     "--set", "throttle=15kB", "-o", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seen = {}

        def is_in_pass(first):
            for job in self.cluster.must("job", "list", "-o", "json").json_lines():
                mine = job["state"] == "running" and job.get("passes", [{}])[-1].get("into") == "country_count"
                if mine and sum(one["state"] == "done" for one in job["passes"]) >= first:
                    seen.update(job)
                    return True
            self.assertIsNone(process.poll(), "the job was over before it could be caught")
            return False

        killed = []
        for first in kills:
            harness.wait_until(lambda: is_in_pass(first), f"pass {first + 1} is under way")
            self.cluster.kill(seen["owner"])
            killed.append((seen["owner"], sum(one["state"] == "done" for one in seen["passes"])))
            self.wait_for(seen["job"], lambda now: now["taken_over"] >= len(killed), "job has another owner")
            self.cluster.restart(seen["owner"])
        self.cluster.fjord("job", "set", seen["job"], "throttle=0")  # Unless the job has ended.
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, harness.OK, err)
        self.assertEqual({row["country"]: row["n"] for row in map(json.loads, out.splitlines())}, dict(expected))
        ended = self.show(seen["job"])
        self.assertEqual((ended["phase"], ended["taken_over"]), ("done", len(kills)), killed)
        self.assertEqual([one["results"] for one in ended["passes"]], [len(expected)] * passes)
        self.assertEqual([one["documents_read"] for one in ended["passes"][1:]], [len(expected)] * (passes - 1))
        self.assertEqual(ended["passes"][0]["documents_read"], len({city["geonameid"] for city in self.cities}))
        self.assertEqual({id_: one for id_, one in self.country_documents().items() if f"::{name}/" in id_},
                         {f'id:results:country_count::{name}/["{country}"]': (country, n) for country, n in expected.items()})
        self.assertEqual((ended["passes"][-1]["documents_put"], ended["passes"][-1]["documents_removed"]), (len(expected), 1))
        self.assertEqual(self.cluster.documents("--type", "fjord_tuples", "--selection", f'fjord_tuples.job = "{seen["job"]}*"'), {})
        self.assertIn("pass 1: ", err)
        self.assertIn(f"{len(expected)} documents of type country_count were put, 1 of an earlier run were removed", err)

    def test_a_chained_job_goes_on_when_its_distributor_is_killed_in_its_passes_directly(self):
        self.check_chain_with_kills("direct", (1,))

    def test_a_chained_job_goes_on_when_its_distributor_is_killed_in_its_passes_through_the_store(self):
        self.check_chain_with_kills("store", (0, 2))

    def test_an_aggregation_is_answered_although_its_distributor_is_killed(self):
        arguments = ["aggregate", "--type", "city", "--group-by", "country", "count()", "--order-by", "country", "-o", "json"]
        whole = self.cluster.must(*arguments).out
        process = self.cluster.begin(*arguments, "--set", "throttle=2kB", stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def under_way():
            jobs = self.cluster.must("job", "list", "-o", "json").json_lines()
            return [job for job in jobs if job["application"] == "aggregate" and job["phase"] == "map"]

        harness.wait_until(lambda: under_way(), "the aggregation is under way")
        running = under_way()[0]
        self.cluster.kill(running["owner"])
        taken = self.wait_for(running["job"], lambda now: now["taken_over"] > 0 or now["owner"] != running["owner"],
                              "the aggregation has another owner")
        if taken["state"] == "running":
            self.cluster.fjord("job", "set", running["job"], "throttle=0")
        out, err = process.communicate(timeout=120)
        self.cluster.restart(running["owner"])
        self.assertEqual(process.returncode, harness.OK, err)
        self.assertEqual(out, whole)
        self.assertIn("nothing is missing", err)

    def test_a_job_can_be_paused_changed_and_cancelled_while_it_runs(self):
        job = self.slow_job("throttle=5kB")
        running = self.wait_for(job, lambda now: now["map_tasks_done"] > 2, "job is under way")
        self.assertEqual(running["settings"], {"throttle": "5kB"})
        self.assertTrue(running["live"])
        begun = time.monotonic()
        self.cluster.must("job", "pause", job)
        paused = self.show(job)
        self.assertLess(time.monotonic() - begun, 2, "two calls of the program")
        self.assertEqual((paused["state"], paused["bound_by"]), ("paused", "paused"))
        self.assertIn("state        paused", self.cluster.must("job", "show", job).out)
        again = self.show(job)
        self.assertEqual(again["map_tasks_done"], paused["map_tasks_done"])
        self.assertEqual(self.cluster.fjord("job", "set", job, "throttle=fast").code, harness.USAGE)
        self.cluster.must("job", "set", job, "throttle=8kB", "dead_letters_max=5")
        self.cluster.must("job", "resume", job)
        changed = self.show(job)
        self.assertEqual(changed["settings"], {"throttle": "8kB", "dead_letters_max": "5"})
        self.assertEqual(changed["state"], "running")
        self.assertGreaterEqual(changed["map_tasks"], changed["map_tasks_done"])
        begun = time.monotonic()
        self.cluster.must("job", "cancel", job)
        self.cluster.wait_for_job(job, ("cancelled",))
        self.assertLess(time.monotonic() - begun, 3)

    def test_documents_that_map_fails_on_are_listed(self):
        arguments = ["job", "run", "fieldstats", "--type", "city", "--param", "group=subcountry", "--param",
                     "value=geonameid", "--param", "missing=error", "--wait", "-o", "json"]
        without = {city["geonameid"] for city in self.cities if city["subcountry"] == ""}
        self.assertGreater(len(without), 0)
        partly = self.cluster.fjord(*arguments, "--set", f"dead_letters_max={len(without)}")
        self.assertEqual(partly.code, harness.PARTIAL, partly)
        self.assertIn(f"done without {len(without)} of {len(self.cities)} documents", partly.err)
        ended = partly.json()
        self.assertEqual(ended["phase"], "done")
        self.assertEqual(ended["dead_letters"], len(without))
        self.assertEqual(self.cluster.fjord("job", "watch", ended["job"]).code, harness.PARTIAL)
        listed = self.cluster.must("job", "dead-letters", ended["job"], "-o", "json").json_lines()
        self.assertEqual({line["document"].rsplit(":", 1)[1] for line in listed}, without)
        self.assertIn("it has no subcountry", listed[0]["error"])
        failed = self.cluster.fjord(*arguments, "--set", f"dead_letters_max={len(without) - 1}")
        self.assertNotEqual(failed.code, harness.OK)
        self.assertIn("dead_letters_max", failed.err)
        all_of_them = self.cluster.fjord(*arguments, "--selection", "city.subcountry == null", "--set", f"dead_letters_max={len(without)}")
        self.assertEqual(all_of_them.code, harness.FAILED, all_of_them)
        self.assertIn(f"map() failed on each of the {len(without)} documents", all_of_them.err)

    def test_results_and_jobs_are_removed(self):
        def results_left():
            return sum(1 for line in self.cluster.must("visit", "--type", "fjord_result", "--fields", "[id]").out.splitlines() if f":{job}/" in line)

        job = self.cluster.must("job", "run", "citycount", "--type", "city", "--param", "field=country", "--wait", "-o", "json").json()["job"]
        self.assertGreater(results_left(), 100)
        shown = self.show(job)
        self.assertEqual(shown["results_until_unix_us"] - shown["finished_unix_us"], 7 * 24 * 3600 * 10**6)
        self.assertRegex(self.cluster.must("job", "list").out, job + r".* \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
        self.cluster.must("job", "results", job, "--remove")
        self.assertEqual(results_left(), 0)
        self.assertTrue(self.show(job)["results_removed"])
        self.assertRegex(self.cluster.must("job", "list").out, job + ".* removed")
        gone = self.cluster.fjord("job", "results", job)
        self.assertEqual(gone.code, harness.NOT_FOUND, gone)
        self.cluster.must("job", "remove", job)
        self.assertEqual(self.cluster.fjord("job", "show", job).code, harness.NOT_FOUND)
        self.assertEqual(self.cluster.fjord("job", "remove", job).code, harness.NOT_FOUND)
        running = self.cluster.must("job", "run", "citycount", "--type", "city", "--param", "field=country", "--set", "throttle=500").out.strip()
        refused = self.cluster.fjord("job", "remove", running)
        self.assertEqual(refused.code, harness.FAILED, refused)
        self.assertIn("cancel it first", refused.err)
        self.cluster.must("job", "cancel", running)


if __name__ == "__main__":
    harness.main()
