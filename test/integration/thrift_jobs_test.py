"""Aggregations and jobs through api/client.thrift: in every form, at every distributor, while nodes are killed."""

import json
import unittest

import harness
from thrift_client import Connection, must, name_of

from fjord_api.ttypes import JobAction
from fjord_client.ttypes import (Aggregate, AggregateWords, AwaitJob, Cell, ChangeJob, GetJobResults, GetJobs, JobPassWords,
                                 JobState, StartJob)

SCHEMA = """document sale {
  field city type string { header }
  field price type int { header }
  field tags type array<string> { header }
}
document city_total {
  field city type string { header }
  field n type long { header }
}"""
DOCUMENTS = 1200
CITIES = 37
# Each document takes a few milliseconds, so that the test finds the job at work.
SLOW = """
function map(doc, emit)
  local x = 0
  for i = 1, 300000 do x = x + i end
  emit(doc.fields.city, 1)
end
function combine(city, a, b) return a + b end
function reduce(city, values)
  local n = 0
  for _, value in ipairs(values) do n = n + value end
  return n
end
"""


def sale(i):
    return {"city": f"city {i % CITIES:02}", "price": i, "tags": ["even" if i % 2 == 0 else "odd"]}


def counts():
    result = {}
    for i in range(DOCUMENTS):
        city = sale(i)["city"]
        result[city] = result.get(city, 0) + 1
    return result


def feed(cluster, numbers=range(DOCUMENTS)):
    lines = "".join(json.dumps({"put": f"id:shop:sale::{i}", "fields": sale(i)}) + "\n" for i in numbers)
    cluster.must("feed", "-", stdin=lines)


def value_of(cell):
    """Returns the value of a cell; None for no value."""
    values = [value for value in (cell.integer, cell.number, cell.text, cell.truth, cell.json) if value is not None]
    return values[0] if values else None


def values_of(reply):
    return [[value_of(cell) for cell in row.cells] for row in reply.rows]


def results(calls, job, bytes_max=0):
    """Returns all results of a job, page by page."""
    found = {}
    keys = []
    while True:
        page = must(calls.getJobResults(GetJobResults(job=job, results_from=len(keys), bytes_max=bytes_max)))
        keys += [result.key for result in page.results]
        found.update({result.key: json.loads(result.value) for result in page.results})
        if not page.more_results:
            break
    assert keys == sorted(keys) and len(found) == len(keys), keys
    return found


class ThriftJobsTest(unittest.TestCase):
    def test_aggregations_have_typed_rows(self):
        with harness.Cluster(storage=2, distributors=2) as cluster:
            cluster.deploy(SCHEMA)
            feed(cluster)
            first, second = cluster.address.split(",")
            words = AggregateWords(type="sale", group_by=["city"], aggregates=["count() AS n", "avg(price) AS mean", "top(1,city) AS most"],
                                   having="n > 32", order_by=["city desc"], limit=3)
            with Connection(first) as calls:
                done = must(calls.aggregate(Aggregate(words=words)))
                self.assertTrue(done.has_ended)
                self.assertEqual(done.columns, ["city", "n", "mean", "most"])
                self.assertEqual((done.documents_read, done.fraction_done, done.more_rows), (DOCUMENTS, 1.0, False))
                cells = done.rows[0].cells
                prices = [i for i in range(DOCUMENTS) if i % CITIES == 15]
                self.assertEqual(cells[:3], [Cell(text="city 15"), Cell(integer=33), Cell(number=sum(prices) / len(prices))])
                self.assertEqual(json.loads(cells[3].json)[0]["value"], "city 15")
                self.assertEqual([row[0] for row in values_of(done)], ["city 15", "city 14", "city 13"])
                empty = must(calls.aggregate(Aggregate(words=AggregateWords(type="sale", selection="price < 0",
                                                                            aggregates=["count()", "avg(price)"]))))
                self.assertEqual(values_of(empty), [[0, None]])

                # Rows in pages, at another distributor.
                pages = []
                with Connection(second) as other:
                    more = True
                    asked = must(calls.aggregate(Aggregate(words=AggregateWords(type="sale", group_by=["price"], aggregates=["count()"]),
                                                           bytes_max=1)))
                    self.assertEqual((len(asked.rows), asked.more_rows), (1, True))
                    while more:
                        page = must(other.aggregate(Aggregate(job=asked.job, rows_from=len(pages), bytes_max=5000)))
                        pages += values_of(page)
                        more = page.more_rows
                self.assertEqual(pages, [[i, 1] for i in range(DOCUMENTS)])

                stored = must(calls.aggregate(Aggregate(words=AggregateWords(type="sale", group_by=["city"], aggregates=["count() AS n"],
                                                                             into="city_total", into_namespace="shop", into_name="t"))))
                self.assertEqual(stored.documents_put, CITIES)
                self.assertEqual({fields["city"]: fields["n"] for fields in cluster.documents("--type", "city_total").values()}, counts())

                for words, code in ((AggregateWords(type="none", aggregates=["count()"]), "UNKNOWN_TYPE"),
                                    (AggregateWords(aggregates=["count()"]), "INVALID_ARGUMENT"),
                                    (AggregateWords(type="sale", aggregates=["count(nothing)"]), "INVALID_SELECTION")):
                    self.assertEqual(name_of(calls.aggregate(Aggregate(words=words)).status), code, words)
                self.assertEqual(name_of(calls.aggregate(Aggregate(job="none", timeout_ms=300)).status), "TIMEOUT")

                cluster.must("config", "set", "gateway.results_bytes_max=1KiB")

                def refused():
                    reply = calls.aggregate(Aggregate(words=AggregateWords(type="sale", group_by=["price"], aggregates=["count()"])))
                    return name_of(reply.status) != "OK" and reply.status
                status = harness.wait_until(refused, "the setting holds")
                self.assertEqual((name_of(status), status.setting, status.limit), ("TOO_LARGE", "gateway.results_bytes_max", "1024"))

    def test_jobs_in_every_form(self):
        with harness.Cluster(storage=2, distributors=2) as cluster:
            cluster.deploy(SCHEMA)
            feed(cluster)
            first, second = cluster.address.split(",")
            with Connection(first) as calls, Connection(second) as other:
                def run(*passes, **options):
                    job = must(calls.startJob(StartJob(passes=list(passes), **options))).job
                    ended = must(other.awaitJob(AwaitJob(job=job, timeout_ms=120000))).job
                    self.assertEqual((ended.job, ended.state), (job, JobState.DONE), ended)
                    return ended

                # A built-in application; those of plugins are named likewise.
                stats = run(JobPassWords(application="fieldstats", type="sale", parameters={"group": "city", "value": "price"}))
                found = results(calls, stats.job, bytes_max=500)
                self.assertEqual({city: row["count"] for city, row in found.items()}, counts())
                self.assertEqual((stats.documents_read, stats.results, stats.fraction_done), (DOCUMENTS, CITIES, 1.0))
                # A script, in two passes: how many cities have how many sales.
                chain = run(JobPassWords(script=SLOW, type="sale", selection="sale.price < 111"),
                            JobPassWords(aggregate=AggregateWords(group_by=["value"], aggregates=["count() AS cities"])))
                self.assertEqual(chain.passes, 2)
                self.assertEqual(list(results(other, chain.job).values()), [["3", CITIES]])
                # An aggregation whose partial results are kept.
                words = AggregateWords(type="sale", group_by=["city"], aggregates=["count() AS n"])
                for _ in range(2):
                    counted = run(JobPassWords(aggregate=words), incremental=True)
                    self.assertEqual({row[0]: row[1] for row in results(calls, counted.job).values()}, counts())
                # Documents as results, and the id of the client: a repeated call starts one job.
                twice = StartJob(passes=[JobPassWords(aggregate=AggregateWords(
                    type="sale", group_by=["city"], aggregates=["count() AS n"], into="city_total", into_namespace="x"))], job="job-mine")
                self.assertEqual([must(calls.startJob(twice)).job for _ in range(2)], ["job-mine", "job-mine"])
                must(calls.awaitJob(AwaitJob(job="job-mine", timeout_ms=120000)))
                self.assertEqual(len(cluster.documents("--type", "city_total")), CITIES)

                listed = [job.job for job in must(other.getJobs(GetJobs())).jobs]
                self.assertEqual(listed.count("job-mine"), 1)
                self.assertEqual(set(listed) >= {stats.job, chain.job, "job-mine"}, True)
                must(calls.changeJob(ChangeJob(job=stats.job, action=JobAction.REMOVE)))
                harness.wait_until(lambda: name_of(calls.getJobs(GetJobs(job=stats.job)).status) == "NOT_FOUND", "the job is removed")

                for passes, code in (([], "INVALID_ARGUMENT"), ([JobPassWords(type="sale")], "INVALID_ARGUMENT"),
                                     ([JobPassWords(application="none", type="sale")], "INVALID_ARGUMENT"),
                                     ([JobPassWords(script="function map(", type="sale")], "INVALID_ARGUMENT"),
                                     ([JobPassWords(application="fieldstats", type="none")], "UNKNOWN_TYPE")):
                    self.assertEqual(name_of(calls.startJob(StartJob(passes=passes)).status), code, passes)
                self.assertEqual(name_of(calls.changeJob(ChangeJob(job="job-mine")).status), "INVALID_ARGUMENT")
                failed = must(calls.startJob(StartJob(passes=[JobPassWords(
                    script="function map(doc) error('no') end function reduce() end", type="sale")]))).job
                info = must(calls.awaitJob(AwaitJob(job=failed, timeout_ms=120000))).job
                self.assertEqual(info.state, JobState.FAILED)
                self.assertIn("no", info.error.message)

    def test_a_job_is_controlled_and_survives_kills(self):
        with harness.Cluster(storage=3, redundancy=2, distributors=2) as cluster:
            cluster.deploy(SCHEMA)
            feed(cluster)
            first, second = cluster.address.split(",")
            slow = StartJob(passes=[JobPassWords(script=SLOW, type="sale")])
            with Connection(first) as calls:
                job = must(calls.startJob(slow)).job
                early = calls.getJobResults(GetJobResults(job=job)).status
                self.assertEqual(name_of(early), "INVALID_ARGUMENT")
                must(calls.changeJob(ChangeJob(job=job, action=JobAction.PAUSE)))

                def state():
                    return must(calls.getJobs(GetJobs(job=job))).jobs[0].state
                harness.wait_until(lambda: state() == JobState.PAUSED, "the job is paused")
                waited = must(calls.awaitJob(AwaitJob(job=job, timeout_ms=200))).job
                self.assertEqual(waited.state, JobState.PAUSED)
                owner = waited.owner
                must(calls.changeJob(ChangeJob(job=job, action=JobAction.SET, settings={"cpu_max": "100000"})))
                cluster.kill("storage.1")
                must(calls.changeJob(ChangeJob(job=job, action=JobAction.RESUME)))
                other_job = must(calls.startJob(slow)).job
                must(calls.changeJob(ChangeJob(job=other_job, action=JobAction.CANCEL)))
                cancelled = must(calls.awaitJob(AwaitJob(job=other_job, timeout_ms=60000))).job
                self.assertEqual(cancelled.state, JobState.CANCELLED)
            # The distributor that runs the job dies as well. The client waits at the other one.
            cluster.kill(owner)
            with Connection(second if owner == "distributor.0" else first) as calls:
                ended = must(calls.awaitJob(AwaitJob(job=job, timeout_ms=180000))).job
                self.assertEqual(ended.state, JobState.DONE, ended)
                self.assertEqual(results(calls, job), counts())


if __name__ == "__main__":
    harness.main()
