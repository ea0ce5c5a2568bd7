"""Aggregation over HTTP: rows as JSON, lines and CSV, errors that name what is wrong, and a client that goes away."""

import csv
import http.client
import io
import json
import unittest

from harness import wait_until
from http_documents import HttpCluster

PATH = "/aggregate/v1"
DOCUMENTS = 300
COUNT = {"type": "item", "aggregates": ["count()"]}


def slow_request(tag):
    """Returns a request that reads 600 kB at 1 kB a second, so that its job does not end by itself in the time of a test."""
    return {"type": "page", "selection": f"page.text != '{tag}'", "aggregates": ["max(text)"], "settings": {"throttle": "1kB"}}


class AggregateTest(HttpCluster):
    schema = """document item {
      field title type string { }
      field sold type long { header }
      field tags type array<string> { }
    }
    document page { field text type string { } }
    document total { field title type string { } field sold type long { } }"""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lines = "".join(json.dumps({"put": f"id:shop:item::{i}", "fields": {"title": f"T{i % 3}", "sold": i}}) + "\n"
                        for i in range(DOCUMENTS))
        cls.cluster.must("import", cls.cluster.file("items.jsonl", lines))
        cls.texts = [f"{i:03}" + "x" * 2000 for i in range(DOCUMENTS)]
        pages = "".join(json.dumps({"put": f"id:shop:page::{i}", "fields": {"text": text}}) + "\n" for i, text in enumerate(cls.texts))
        cls.cluster.must("import", cls.cluster.file("pages.jsonl", pages))

    def ask(self, body, parameters="", headers=None, status=200):
        """Returns the answer as text."""
        connection = self.http.connection
        connection.request("POST", PATH + parameters, body=json.dumps(body), headers=headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
        self.assertEqual(answer.status, status, text)
        self.content_type = answer.headers["Content-Type"]
        return text

    def test_rows(self):
        answer = json.loads(self.ask({"type": "item", "selection": "item.sold >= 3", "group_by": ["title"],
                                      "aggregates": ["count()", "sum(sold) as sold", "avg(sold) as mean"],
                                      "having": "sold > 14850", "order_by": ["sold desc"], "limit": 5}))
        sums = {f"T{k}": [i for i in range(3, DOCUMENTS) if i % 3 == k] for k in range(3)}
        rows = [[title, len(all_sold), sum(all_sold), sum(all_sold) / len(all_sold)] for title, all_sold in sums.items()]
        self.assertEqual(answer["columns"], ["title", "count", "sold", "mean"])
        self.assertEqual(answer["rows"], sorted((row for row in rows if row[2] > 14850), key=lambda row: -row[2]))
        self.assertEqual((answer["documents_read"], answer["dead_letters"]), (DOCUMENTS - 3, 0))
        self.assertGreater(answer["buckets"], 0)
        self.assertEqual(answer["buckets_read"], answer["buckets"])
        self.assertEqual(self.cluster.must("job", "show", answer["job"], "-o", "json").json()["state"], "done")
        limited = json.loads(self.ask({**COUNT, "group_by": ["sold"], "order_by": ["sold"], "limit": 2}))
        self.assertEqual(limited["rows"], [[0, 1], [1, 1]])
        empty = json.loads(self.ask({"type": "item", "selection": "item.sold < 0", "aggregates": ["count()", "avg(sold) as mean"]}))
        self.assertEqual(empty["rows"], [[0, None]])

    def test_forms(self):
        body = {"type": "item", "group_by": ["title"], "aggregates": ["count()", "sum(sold) as sold"], "order_by": ["title"]}
        wanted = json.loads(self.ask(body))
        self.assertEqual(self.content_type, "application/json; charset=UTF-8")
        for parameters, headers in (("?format=jsonl", None), ("", {"Accept": "application/jsonl"}),
                                    ("", {"Accept": "application/jsonl, text/csv;q=0.9, application/json;q=0.5"})):
            lines = [json.loads(line) for line in self.ask(body, parameters, headers).splitlines()]
            self.assertEqual(self.content_type, "application/jsonl; charset=UTF-8")
            self.assertEqual([list(line["row"].items()) for line in lines[:-1]],
                             [list(zip(wanted["columns"], row)) for row in wanted["rows"]])
            end = lines[-1]["end"]
            self.assertEqual((end["rows"], end["documents_read"], end["buckets"]), (3, DOCUMENTS, wanted["buckets"]))
        for parameters, headers in (("?format=csv", None), ("", {"Accept": "text/csv"}), ("?format=csv", {"Accept": "application/json"})):
            rows = list(csv.reader(io.StringIO(self.ask(body, parameters, headers))))
            self.assertEqual(self.content_type, "text/csv; charset=UTF-8")
            self.assertEqual(rows, [wanted["columns"]] + [[str(cell) for cell in row] for row in wanted["rows"]])
        for accept in ("*/*", "application/json, text/csv;q=0.5", "text/html"):
            self.assertEqual(json.loads(self.ask(body, headers={"Accept": accept}))["rows"], wanted["rows"])
        self.must(200, "POST", "/document/v1/quote/item/docid/1", {"fields": {"title": 'a,"b"\n', "sold": -1}})
        quoted = list(csv.reader(io.StringIO(self.ask({**body, "selection": "item.sold < 0"}, "?format=csv"), newline="")))
        self.assertEqual(quoted[1], ['a,"b"\n', "1", "-1"])
        self.must(200, "DELETE", "/document/v1/quote/item/docid/1")

    def test_many_rows(self):
        """More than one piece of an answer."""
        body = {"type": "page", "group_by": ["text"], "aggregates": ["count()"]}
        rows = json.loads(self.ask(body))["rows"]
        self.assertEqual(sorted(row[0] for row in rows), self.texts)
        lines = self.ask(body, "?format=jsonl").splitlines()
        self.assertEqual(json.loads(lines[-1])["end"]["rows"], DOCUMENTS)
        self.assertEqual(len(lines), DOCUMENTS + 1)

    def test_rows_as_documents(self):
        body = {"type": "item", "group_by": ["title"], "aggregates": ["sum(sold) as sold"], "into": "total",
                "into_namespace": "sums", "name": "by-title"}
        answer = json.loads(self.ask(body))
        self.assertEqual((answer["documents_put"], answer["documents_removed"]), (3, 0))
        found = self.cluster.documents("--type", "total")
        self.assertEqual({one["title"]: one["sold"] for one in found.values()}, dict(answer["rows"]))
        self.assertTrue(all(id.startswith("id:sums:total:") for id in found))
        answer = json.loads(self.ask({**body, "selection": "item.title == 'T1'"}))
        self.assertEqual((answer["documents_put"], answer["documents_removed"]), (1, 2))

    def test_errors_name_what_is_wrong(self):
        for change, code, word in (({"type": "absent"}, "UNKNOWN_TYPE", "absent"),
                                   ({"selection": "item.sold >"}, "INVALID_SELECTION", "selection"),
                                   ({"group_by": ["absent"]}, "INVALID_SELECTION", 'group-by "absent"'),
                                   ({"aggregates": ["median(sold)"]}, "INVALID_ARGUMENT", "median"),
                                   ({"aggregates": []}, "INVALID_ARGUMENT", "aggregate"),
                                   ({"order_by": ["absent"]}, "INVALID_ARGUMENT", "order-by"),
                                   ({"having": "absent > 1"}, None, "having"),
                                   ({"limit": -1}, "INVALID_ARGUMENT", '"limit"'),
                                   ({"group_by": "title"}, "INVALID_ARGUMENT", '"group_by"'),
                                   ({"grup_by": []}, "INVALID_ARGUMENT", '"grup_by"'),
                                   ({"into": "absent"}, None, "absent"),
                                   ({"settings": {"cpu_max": "x"}}, "INVALID_ARGUMENT", "cpu_max"),
                                   ({"settings": {"absent": "1"}}, "INVALID_ARGUMENT", "absent")):
            answer = json.loads(self.ask({**COUNT, **change}, status=400))
            self.assertIn(word, answer["message"], change)
            self.assertEqual(answer["code"], code or answer["code"], answer)
        self.assertIn('"type"', json.loads(self.ask({"aggregates": ["count()"]}, status=400))["message"])
        for parameters in ("?format=xml", "?format=", "?timeout=0", "?limit=1"):
            self.ask(COUNT, parameters, status=400)
        self.must(405, "GET", PATH)

    def job_of(self, tag):
        """Returns the job whose selection has this text, once it runs."""
        found = []

        def is_there():
            found[:] = [one for one in self.cluster.must("job", "list", "-o", "json").json_lines() if tag in one["selection"]]
            return found and found[0]["phase"] == "map"
        wait_until(is_there, "the job runs")
        return found[0]["job"]

    def test_a_client_that_goes_away_cancels_the_job(self):
        slow = slow_request("1234567")
        gone = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        gone.request("POST", PATH, body=json.dumps(slow))
        job = self.job_of("1234567")
        gone.close()
        self.cluster.wait_for_job(job, ("cancelled",))

    def test_a_timeout_cancels_the_job(self):
        slow = slow_request("7654321")
        answer = json.loads(self.ask(slow, "?timeout=100ms", status=504))
        self.assertEqual(answer["code"], "TIMEOUT")
        jobs = self.cluster.must("job", "list", "-o", "json").json_lines()
        self.cluster.wait_for_job(next(one["job"] for one in jobs if "7654321" in one["selection"]), ("cancelled",))


if __name__ == "__main__":
    unittest.main()
