"""Jobs over HTTP: every form, results, control, progress as events, and clients that go away."""

import contextlib
import http.client
import json
import pathlib
import re
import unittest

from harness import SANITIZED, wait_until
from http_documents import HttpCluster

PATH = "/jobs/v1"
LONG_ANSWERS = 32  # kStreamThreads of gateway/http/http_gateway.cpp.
DOCUMENTS = 300
KINDS = 3
SCRIPT = """
function map(doc, emit)
  if doc.fields.sold == 7 then error("no sevens") end
  emit(doc.fields.title, 1)
end
function reduce(title, values)
  return {n = #values}
end
"""
BY_TITLE = {"script": SCRIPT, "type": "item", "selection": "item.sold != 7"}
STATS = {"application": "fieldstats", "type": "item", "parameters": {"group": "title", "value": "sold"}}
# They read 600 kB at 1 kB a second: they do not end by themselves in the time of a test.
SLOW_PASS = {"application": "fieldstats", "type": "page", "parameters": {"group": "text", "value": "n"}}
SLOW = {"throttle": "1kB"}


class Events:
    """Reads server-sent events."""

    def __init__(self, port, path):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.connection.request("GET", path)
        self.answer = self.connection.getresponse()

    def next(self):
        """Returns the next event as a dictionary of its fields, or a comment; None at the end."""
        event = {}
        while line := self.answer.readline().decode():
            line = line.rstrip("\n")
            if not line and event:
                return event
            name, _, value = line.partition(": ")
            event[name or "comment"] = value
        return None


class JobsTest(HttpCluster):
    schema = """document item {
      field title type string { }
      field sold type long { header }
    }
    document page { field text type string { } field n type int { } }
    document total { field title type string { } field n type long { } }"""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lines = "".join(json.dumps({"put": f"id:shop:item::{i}", "fields": {"title": f"T{i % KINDS}", "sold": i}}) + "\n"
                        for i in range(DOCUMENTS))
        lines += "".join(json.dumps({"put": f"id:shop:page::{i}", "fields": {"text": f"T{i % KINDS}" + "x" * 2000, "n": i}}) + "\n"
                         for i in range(DOCUMENTS))
        cls.cluster.must("import", cls.cluster.file("items.jsonl", lines))

    def run_job(self, *passes, **options):
        """Runs a job to its end within the request."""
        ended = self.must(200, "POST", PATH, {"passes": list(passes), "detached": False, **options})
        self.assertEqual((ended["state"], ended["error"]), ("done", None), ended)
        self.assertEqual(ended["fraction_done"], 1)
        return ended

    def submit(self, *passes, **options):
        return self.must(200, "POST", PATH, {"passes": list(passes), **options})["job"]

    def slow_job(self):
        """Returns a job that does not end by itself in the time of a test."""
        job = self.submit(SLOW_PASS, settings=SLOW)
        self.wait_for(job, lambda now: now["phase"] == "map")
        return job

    def wait_for(self, job, condition):
        shown = {}

        def reached():
            shown.update(self.must(200, "GET", f"{PATH}/{job}"))
            return condition(shown)
        wait_until(reached, f"job {job} gets there")
        return shown

    def results(self, job):
        return {one["key"]: one["value"] for one in self.must(200, "GET", f"{PATH}/{job}/results")["results"]}

    def test_a_script(self):
        ended = self.run_job(BY_TITLE)
        self.assertEqual(ended["passes"][0]["documents_read"], DOCUMENTS - 1)
        self.assertEqual(ended["documents_read"], DOCUMENTS - 1)
        wanted = {f"T{kind}": {"n": len([i for i in range(DOCUMENTS) if i % KINDS == kind and i != 7])} for kind in range(KINDS)}
        self.assertEqual(self.results(ended["job"]), wanted)
        self.http.connection.request("GET", f"{PATH}/{ended['job']}/results", headers={"Accept": "application/jsonl"})
        answer = self.http.connection.getresponse()
        lines = [json.loads(line) for line in answer.read().splitlines()]
        self.assertEqual(answer.headers["Content-Type"], "application/jsonl; charset=UTF-8")
        self.assertEqual(lines, [{"key": key, "value": wanted[key]} for key in sorted(wanted)] + [{"end": {"results": KINDS}}])
        self.assertEqual(self.must(200, "GET", f"{PATH}/{ended['job']}/dead_letters"), {"dead_letters": []})

    def test_detached_jobs_need_no_thread_of_long_answers(self):
        slow = self.slow_job()
        events = [Events(self.port, f"{PATH}/{slow}/events") for _ in range(LONG_ANSWERS)]
        for one in events:
            self.addCleanup(one.connection.close)
            self.assertEqual(one.answer.status, 200)
        waiting = {"passes": [BY_TITLE], "detached": False}
        self.assertIn("long answers", self.must(429, "POST", PATH, waiting)["message"])
        job = self.submit(BY_TITLE)
        self.wait_for(job, lambda now: now["state"] == "done")
        self.must(200, "POST", f"{PATH}/{slow}/cancel")
        for one in events:
            one.answer.read()  # Its end: the job is cancelled.
        wait_until(lambda: self.http.send("POST", PATH, waiting)[0] == 200, "the threads are free again")

    def test_results_that_do_not_fit_into_the_memory_of_the_gateway_come_by_key(self):
        """16 MiB of results are in memory at a time; these are three times as many, in the store and with the distributor."""
        script = ("function map(doc, emit) emit(string.format('%03d', doc.fields.sold), 1) end\n"
                  "function reduce(key, values) return string.rep(key, 50000) end")
        for shuffle in ("store", "direct"):
            ended = self.run_job({"script": script, "type": "item"}, shuffle=shuffle)
            before = self.gateway_memory()
            self.http.connection.request("GET", f"{PATH}/{ended['job']}/results?format=jsonl")
            answer = self.http.connection.getresponse()
            keys = []
            for line in answer:
                one = json.loads(line)
                if "key" in one:
                    keys.append(one["key"])
                    self.assertEqual(one["value"], one["key"] * 50_000)
            self.assertEqual(keys, [f"{i:03}" for i in range(DOCUMENTS)], shuffle)
            self.assertEqual(one, {"end": {"results": DOCUMENTS}})
            if not SANITIZED:
                self.assertLess(self.gateway_memory() - before, 150 << 20)
            if shuffle == "direct":
                continue
            # A result is missing: the last part says so, and the client sees that the body is not whole.
            mine = f"fjord_result.job == '{ended['job']}' and fjord_result.key == '007'"
            self.cluster.must("remove", "--type", "fjord_result", "--selection", mine, "--yes")
            self.http.connection.request("GET", f"{PATH}/{ended['job']}/results?format=jsonl")
            answer = self.http.connection.getresponse()
            self.assertEqual(answer.status, 200)
            with self.assertRaises(http.client.IncompleteRead) as cut:
                answer.read()
            self.assertNotIn(b'"end"', cut.exception.partial)
            self.http = self.connect()

    def gateway_memory(self):
        processes = self.cluster.local("status", "-o", "json").json()
        pid = next(one["pid"] for one in processes if one["node"] == "gateway.0")
        return int(re.search("^VmRSS:\\s*([0-9]+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]) << 10

    def test_dead_letters(self):
        ended = self.run_job({**BY_TITLE, "selection": ""})
        self.assertEqual(ended["dead_letters"], 1)
        letter, = self.must(200, "GET", f"{PATH}/{ended['job']}/dead_letters")["dead_letters"]
        self.assertEqual(letter["document"], "id:shop:item::7")
        self.assertIn("no sevens", letter["error"])

    def test_an_application_and_options(self):
        ended = self.run_job(STATS,
                             shuffle="store", output_namespace="mine", output_buckets=4, visitors_per_node=2, settings={"cpu_max": "60"})
        self.assertEqual((ended["settings"]["cpu_max"], ended["output_namespace"]), ("60", "mine"))
        self.assertEqual(ended["passes"][0]["shuffle"], "store")
        self.assertEqual(ended["passes"][0]["parameters"], {"group": "title", "value": "sold"})
        self.assertEqual(set(self.results(ended["job"])), {f"T{kind}" for kind in range(KINDS)})

    def test_passes_and_stored_rows(self):
        count = {"aggregation": {"type": "item", "group_by": ["title"], "aggregates": ["count() as n"]}}
        total = {"aggregation": {"group_by": ["title"], "aggregates": ["sum(n) as n"], "into": "total", "into_namespace": "sums", "name": "t"}}
        ended = self.run_job(count, total)
        self.assertEqual([one["state"] for one in ended["passes"]], ["done", "done"])
        self.assertEqual(ended["passes"][1]["into"], {"type": "total", "namespace": "sums", "name": "t"})
        self.assertEqual(ended["passes"][1]["documents_put"], KINDS)
        found = self.cluster.documents("--type", "total", "--selection", "id.namespace == 'sums'")
        self.assertEqual({one["title"]: one["n"] for one in found.values()}, {f"T{kind}": DOCUMENTS // KINDS for kind in range(KINDS)})
        script = {"script": "function map(doc, emit) emit('all', doc.fields.n) end\nfunction reduce(k, v) return #v end"}
        ended = self.run_job(count, script)
        self.assertEqual(self.results(ended["job"]), {"all": KINDS})

    def test_incremental_runs(self):
        job = {"script": SCRIPT, "type": "item", "selection": "item.sold > 200"}
        self.assertEqual(self.run_job(job, incremental=True)["passes"][0]["documents_reused"], 0)
        self.assertGreater(self.run_job(job, incremental=True)["passes"][0]["documents_reused"], 0)

    def test_errors_name_what_is_wrong(self):
        item = STATS
        for body, word in (({"passes": []}, "pass"), ({}, '"passes"'), ({"passes": [{}]}, '"passes.0"'),
                           ({"passes": [{**item, "script": "x"}]}, "exactly one"),
                           ({"passes": [{"type": "item", "aggregation": {"aggregates": ["count()"]}}]}, '"passes.0"'),
                           ({"passes": [{"aggregation": {"type": "item"}}]}, '"passes.0.aggregation.aggregates"'),
                           ({"passes": [{**item, "type": "absent"}]}, "absent"),
                           ({"passes": [{**item, "application": "absent"}]}, "absent"),
                           ({"passes": [{**item, "selection": "(("}]}, "selection"),
                           ({"passes": [{"script": "function map(", "type": "item"}]}, "script"),
                           ({"passes": [{**BY_TITLE, "parameters": {"script": "x"}}]}, '"script"'),
                           ({"passes": [item], "shuffle": "best"}, '"shuffle"'),
                           ({"passes": [item], "output_buckets": 1 << 40}, '"output_buckets"'),
                           ({"passes": [item], "settings": {"cpu_max": "x"}}, "cpu_max"),
                           ({"passes": [item], "detached": "no"}, '"detached"')):
            for extra in ({}, {"detached": False}) if "detached" not in body else ({},):
                self.assertIn(word, self.must(400, "POST", PATH, {**body, **extra})["message"], body)
        for method, path, body in (("GET", "absent", None), ("DELETE", "absent", None), ("POST", "absent/pause", None),
                                   ("GET", "absent/results", None), ("GET", "absent/events", None), ("GET", "absent/dead_letters", None),
                                   ("POST", "absent/settings", {"settings": {"throttle": "0"}}), ("DELETE", "absent/results", None)):
            self.assertEqual(self.must(404, method, f"{PATH}/{path}", body)["code"], "NOT_FOUND")

    def test_control(self):
        job = self.slow_job()
        self.assertIn(job, [one["job"] for one in self.must(200, "GET", PATH)["jobs"]])
        self.assertEqual(self.must(200, "POST", f"{PATH}/{job}/pause"), {"job": job})
        self.wait_for(job, lambda now: now["state"] == "paused")
        self.must(400, "DELETE", f"{PATH}/{job}")
        self.must(400, "GET", f"{PATH}/{job}/results")
        self.assertIn("throttle", self.must(400, "POST", f"{PATH}/{job}/settings", {"settings": {"throttle": "x"}})["message"])
        self.must(400, "POST", f"{PATH}/{job}/settings", {"settings": {}})
        self.must(200, "POST", f"{PATH}/{job}/settings", {"settings": {"throttle": "0"}})
        self.must(200, "POST", f"{PATH}/{job}/resume")
        ended = self.wait_for(job, lambda now: now["state"] == "done")
        self.assertEqual(ended["documents_read"], DOCUMENTS)
        self.must(200, "DELETE", f"{PATH}/{job}/results")
        self.assertTrue(self.must(200, "GET", f"{PATH}/{job}")["results_removed"])
        self.must(404, "GET", f"{PATH}/{job}/results")
        self.must(200, "DELETE", f"{PATH}/{job}")
        self.must(404, "GET", f"{PATH}/{job}")

    def test_events(self):
        job = self.slow_job()
        events = Events(self.port, f"{PATH}/{job}/events?heartbeat=1ms")
        self.addCleanup(events.connection.close)
        self.assertEqual(events.answer.headers["Content-Type"], "text/event-stream; charset=UTF-8")
        first = events.next()
        self.assertEqual((first["id"], first["event"]), ("1", "progress"))
        self.assertEqual(json.loads(first["data"])["job"], job)
        self.must(200, "POST", f"{PATH}/{job}/pause")
        event = first
        while "data" not in event or json.loads(event["data"])["state"] != "paused":
            event = events.next()
        while "comment" not in event:  # Nothing changes any more, so heartbeats come.
            event = events.next()
        self.assertEqual(event, {"comment": "alive"})
        self.must(200, "POST", f"{PATH}/{job}/cancel")
        ids = []
        while (event := events.next()) is not None:
            ids += [int(event["id"])] if "id" in event else []
            last = event
        self.assertEqual(last["event"], "end")
        self.assertEqual(json.loads(last["data"])["state"], "cancelled")
        self.assertEqual(ids, list(range(ids[0], ids[0] + len(ids))))
        ended = Events(self.port, f"{PATH}/{job}/events")
        self.addCleanup(ended.connection.close)
        self.assertEqual((ended.next()["event"], ended.next()), ("end", None))
        self.must(400, "GET", f"{PATH}/{job}/events?heartbeat=0")

    def test_a_client_that_goes_away(self):
        """It cancels the job that it waits for. One that watches a job, or has submitted it as detached, does not."""
        slow = {**SLOW_PASS, "selection": "page.n != 424242"}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as gone:
            gone.request("POST", PATH, body=json.dumps({"passes": [slow], "settings": SLOW, "detached": False}))
            mine = []

            def runs():
                mine[:] = [one["job"] for one in self.must(200, "GET", PATH)["jobs"]
                           if one["passes"][0]["selection"] == slow["selection"] and one["phase"] == "map"]
                return mine
            wait_until(runs, "the job runs")
        watched = self.slow_job()
        events = Events(self.port, f"{PATH}/{watched}/events")
        events.next()
        events.connection.close()
        self.wait_for(mine[0], lambda now: now["state"] == "cancelled")
        self.assertIn(self.must(200, "GET", f"{PATH}/{watched}")["state"], ("running", "queued"))
        self.must(200, "POST", f"{PATH}/{watched}/cancel")


if __name__ == "__main__":
    unittest.main()
