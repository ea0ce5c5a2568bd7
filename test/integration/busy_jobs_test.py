"""Jobs that compute all the time leave processor time to others: visits, aggregations, other jobs, and requests about
jobs."""

import json
import re
import time
import unittest
import urllib.request

import harness

SCHEMA = """document listing {
  field city type string { header }
  field text type string { body }
}
"""
# About 10 ms per document, in the process of the script.
BURN = """
function map(doc, emit)
  local x = 0
  for i = 1, 1000000 do x = x + i * i end
  emit(doc.fields.city, 1)
end
function reduce(key, values) return #values end
"""
# Seconds for each of many keys, in the distributor, which reduces.
SLOW_REDUCE = """
function map(doc, emit) emit(doc.fields.city, 1) end
function reduce(key, values)
  local x = 0
  for i = 1, 100000000 do x = x + i * i end
  return #values
end
"""
DOCUMENTS = 12000
# Without turns each of these would wait for minutes until long tasks have ended.
SOON = 20


class BusyJobsTest(unittest.TestCase):
    def test_others_have_their_turn(self):
        with harness.Cluster(storage=3, distributors=2, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            lines = [json.dumps({"put": f"id:t:listing::{i}", "fields": {"city": f"city {i % 20}", "text": "x" * 100}}) for i in range(DOCUMENTS)]
            cluster.must("feed", cluster.file("feed.jsonl", "\n".join(lines) + "\n"))
            built_in = ("heavycity", "--param", "field=city", "--param", "iterations=3000000")
            script = ("script", "--script", cluster.file("burn.lua", BURN), "--param", "timeout_ms=60000")
            jobs = [self.begin(cluster, *built_in), self.begin(cluster, *script), self.begin(cluster, *built_in)]
            for job in jobs:
                harness.wait_until(lambda job=job: self.show(cluster, job)["phase"] == "map", f"{job} maps")
            harness.wait_until(lambda: all(queued > 0 for queued in self.queued(cluster)), "all nodes have more tasks than they run at once")
            self.check_others(cluster)
            self.check_cpu_max(cluster, *built_in)
            for job in jobs:
                self.assertEqual(self.show(cluster, job)["phase"], "map", "it had to be busy until now")
                self.soon(cluster, "job", "cancel", job)
                cluster.wait_for_job(job, ("cancelled",))

    def test_a_job_that_reduces_in_a_distributor_can_be_asked_about_and_cancelled(self):
        with harness.Cluster(storage=2, redundancy=1) as cluster:
            cluster.deploy(SCHEMA)
            lines = [json.dumps({"put": f"id:t:listing::{i}", "fields": {"city": f"city {i}"}}) for i in range(200)]
            cluster.must("feed", cluster.file("feed.jsonl", "\n".join(lines) + "\n"))
            job = self.begin(cluster, "script", "--script", cluster.file("slow.lua", SLOW_REDUCE), "--shuffle", "direct",
                             "--param", "timeout_ms=60000")
            harness.wait_until(lambda: self.show(cluster, job)["phase"] == "reduce", "it reduces")
            self.assertIn(job, self.soon(cluster, "job", "list").out)
            self.assertEqual(self.show(cluster, job)["phase"], "reduce", "it had to be busy until now")
            self.soon(cluster, "job", "cancel", job)
            cluster.wait_for_job(job, ("cancelled",))
            self.soon(cluster, "aggregate", "--type", "listing", "count() AS n")

    def begin(self, cluster, *arguments):
        return cluster.must("job", "run", *arguments, "--type", "listing", "--set", "visitors_per_node=16").out.strip()

    def show(self, cluster, job):
        return cluster.must("job", "show", job, "-o", "json").json()

    def queued(self, cluster):
        """Returns the number of visitors that have not begun, by storage node."""
        for process in cluster.local("status", "-o", "json").json():
            if not process["node"].startswith("storage"):
                continue
            with urllib.request.urlopen(f"http://{process['http']}/metrics", timeout=30) as answer:
                page = answer.read().decode()
            yield float(re.search(r"^fjord_visitor_queued (\S+)$", page, re.MULTILINE).group(1))

    def soon(self, cluster, *arguments, code=harness.OK, limit=SOON):
        began = time.monotonic()
        ended = cluster.fjord(*arguments, timeout=limit + 60)
        seconds = time.monotonic() - began
        print(f"{' '.join(arguments)[:50]}: {seconds:.2f} s", flush=True)
        self.assertEqual(ended.code, code, ended)
        self.assertLess(seconds, limit, arguments)
        return ended

    def check_others(self, cluster):
        for _ in range(3):
            self.assertEqual(len(self.soon(cluster, "visit", "--type", "listing", "--limit", "1").out.splitlines()), 1)
            count = self.soon(cluster, "aggregate", "--type", "listing", "count() AS n", "-o", "json")
            self.assertEqual(count.json()["n"], DOCUMENTS)
            self.soon(cluster, "job", "list")
        ended = self.soon(cluster, "job", "run", "citycount", "--type", "listing", "--param", "field=city", "--wait", "-o", "json")
        self.assertEqual(sum(cluster.results(ended.json()["job"]).values()), DOCUMENTS)

    def check_cpu_max(self, cluster, *arguments):
        """The tasks of this job would take minutes; the limit is noticed while they run. The exact time depends on the
        machine."""
        ended = self.soon(cluster, "job", "run", *arguments, "--type", "listing", "--set", "cpu_max=1", "--wait", "-o", "json", code=harness.FAILED,
                          limit=120)
        self.assertIn("cpu_max=1", ended.err)
        used = ended.json()["processor_seconds"]
        print(f"stopped when it had used {used} s", flush=True)
        self.assertGreaterEqual(used, 1)
        self.assertLess(used, 5)


if __name__ == "__main__":
    harness.main()
