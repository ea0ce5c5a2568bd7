"""Ways out of the store: each returns id -> canonical fields of all documents of the type `thing`."""

import gzip
import http.client
import json
import os
import re
import subprocess
import urllib.parse

import harness
import yaml

from nasty_values import FIELDS, canonical, canonical_fields, loads, without_floats
from thrift_client import Connection, must

from fjord_client.ttypes import Aggregate, AggregateWords, GetJobResults, NextChanges, NextVisit, OpenSubscription, OpenVisit, ReadDocument

FOLLOWING = 1


def of_lines(texts, name="put"):
    """Returns the documents of lines of JSON; other lines are left out."""
    found = {}
    for text in texts:
        members = dict(loads(text))
        if name in members:
            assert members[name] not in found, members[name]
            found[members[name]] = canonical_fields(members["fields"])
    return found


def lines_of(text):
    """Splits at \\n only: texts may hold other line ends."""
    return [line for line in text.split("\n") if line]


def csv_rows(text):
    """Returns the rows of CSV. An empty cell is None, unlike the empty text in quotes."""
    rows, row = [], []
    for quotes, plain, end in re.findall(r'(?:("(?:[^"]|"")*")|([^,\n"]*))(,|\n)', text):
        row.append(quotes[1:-1].replace('""', '"') if quotes else plain or None)
        if end == "\n":
            rows.append(row)
            row = []
    return rows


def of_cell(field, cell):
    """Returns the canonical value of a cell, in which what is no plain value is JSON."""
    kind = FIELDS[field]
    return canonical(kind, cell if isinstance(kind, str) else loads(cell))


class WaysOut:
    def __init__(self, cluster, port, ids):
        self.cluster = cluster
        self.port = port
        self.ids = ids

    # --- The command line

    def get(self):
        return of_lines(lines_of(self.cluster.must("get", *self.ids).out))

    def get_json(self):
        return of_lines(lines_of(self.cluster.must("get", "-o", "json", *self.ids).out))

    def get_yaml(self):
        return self.of_yaml(self.cluster.must("get", "-o", "yaml", *self.ids).out)

    def visit(self):
        return of_lines(lines_of(self.cluster.must("visit", "--type", "thing").out))

    def visit_yaml(self):
        return self.of_yaml(self.cluster.must("visit", "--type", "thing", "-o", "yaml").out)

    def of_yaml(self, text):
        return {one["put"]: canonical_fields(without_floats(one["fields"])) for one in yaml.load_all(text, yaml.CSafeLoader)}

    def subscribe(self):
        return of_lines(lines_of(self.cluster.must("subscribe", "--type", "thing", "--once").out))

    def export(self, name, *more):
        path = self.cluster.folder / name
        self.cluster.must("export", path, "--type", "thing", "--overwrite", *more)
        return path

    def export_lines(self):
        with open(self.export("out.jsonl"), encoding="utf-8", newline="") as file:
            return of_lines(lines_of(file.read()))

    def export_lines_gz(self):
        with gzip.open(self.export("out.jsonl.gz"), "rt", encoding="utf-8", newline="") as file:
            return of_lines(lines_of(file.read()))

    def export_csv(self):
        with open(self.export("out.csv"), encoding="utf-8", newline="") as file:
            head, *rows = csv_rows(file.read())
        return {row[0]: {field: of_cell(field, cell) for field, cell in zip(head[1:], row[1:]) if cell is not None} for row in rows}

    # --- HTTP

    def http_text(self, method, target, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, target, body=body, headers=headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, (target, answer.status, text[:500])
        return text

    def http_get(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        found = {}
        for name in self.ids:
            _, space, kind, _, user = name.split(":", 4)
            connection.request("GET", f"/document/v1/{space}/{kind}/docid/{urllib.parse.quote(user)}")
            answer = dict(loads(connection.getresponse().read().decode()))
            found[answer["id"]] = canonical_fields(answer["fields"])
        connection.close()
        return found

    def http_visit(self):
        found, token = {}, ""
        while token is not None:
            answer = dict(loads(self.http_text("GET", "/document/v1/?cluster=fjord&wantedDocumentCount=500" +
                                               (f"&continuation={token}" if token else ""))))
            documents = [dict(one) for one in answer["documents"]]
            found.update({one["id"]: canonical_fields(one["fields"]) for one in documents if one["id"].split(":")[2] == "thing"})
            token = answer.get("continuation")
        return found

    def http_stream(self):
        return of_lines(self.stream_lines())

    def stream_lines(self):
        return lines_of(self.http_text("GET", "/document/v1/?cluster=fjord&stream=true&selection=thing",
                                       headers={"Accept": "application/jsonl"}))

    def http_changes(self):
        return of_lines(lines_of(self.http_text("GET", "/changes/v1?type=thing&once=true")))

    # --- Thrift

    def thrift_get(self):
        return of_lines(self.thrift_lines())

    def thrift_lines(self):
        with Connection(self.cluster.address.split(",")[0]) as calls:
            return [must(calls.readDocument(ReadDocument(id=name))).json for name in self.ids]

    def thrift_visit(self):
        texts, over = [], False
        with Connection(self.cluster.address.split(",")[0]) as calls:
            visit = must(calls.openVisit(OpenVisit(type="thing"))).visit
            while not over:
                reply = must(calls.nextVisit(NextVisit(visit=visit)))
                texts += [one.json for one in reply.documents]
                over = reply.is_over
        return of_lines(texts)

    def thrift_subscription(self):
        texts, state = [], FOLLOWING
        with Connection(self.cluster.address.split(",")[0]) as calls:
            subscription = must(calls.openSubscription(OpenSubscription(type="thing"))).subscription
            while state == FOLLOWING:
                reply = must(calls.nextChanges(NextChanges(subscription=subscription)))
                texts += [one.json for one in reply.changes if not one.removed]
                state = reply.state
        return of_lines(texts)


class RowsOut:
    """Ways out of an aggregation: each returns the cells of a column, canonical, by `kind`."""

    def __init__(self, cluster, port):
        self.cluster = cluster
        self.port = port
        self.http = WaysOut(cluster, port, [])

    def fjord(self, form, words):
        more = ["--group-by", words["group_by"][0]] if "group_by" in words else []
        more += ["--order-by", words["order_by"][0]] if "order_by" in words else []
        done = subprocess.run([str(harness.BIN / "fjord"), "aggregate", "--type", "thing", "--selection", words["selection"], *more,
                               *words["aggregates"], "-o", form], capture_output=True, timeout=60,
                              env={**os.environ, "FJORD_CLUSTER": self.cluster.address})
        assert done.returncode == 0, done
        return done.stdout.decode()  # Without another form of line ends.

    def aggregate_json(self, words):
        return [[cell for _, cell in loads(line)] for line in lines_of(self.fjord("json", words))]

    def aggregate_csv(self, words):
        return csv_rows(self.fjord("csv", words))[1:]

    def post(self, words, form):
        return self.http.http_text("POST", f"/aggregate/v1?format={form}", json.dumps({"type": "thing", **words}))

    def http_aggregate_json(self, words):
        return dict(loads(self.post(words, "json")))["rows"]

    def http_aggregate_lines(self, words):
        rows = [dict(loads(line)) for line in lines_of(self.post(words, "jsonl"))]
        return [[cell for _, cell in row["row"]] for row in rows if "row" in row]

    def http_aggregate_csv(self, words):
        return csv_rows(self.post(words, "csv"))[1:]

    def thrift_aggregate(self, words):
        with Connection(self.cluster.address.split(",")[0]) as calls:
            reply = must(calls.aggregate(Aggregate(words=AggregateWords(type="thing", **words))))
            assert reply.has_ended and not reply.more_rows
        return [[thrift_cell(cell) for cell in row.cells] for row in reply.rows]


def thrift_cell(cell):
    if cell.json is not None:
        return loads(cell.json)
    return next((one for one in (cell.integer, cell.number, cell.text, cell.truth) if one is not None), None)


class ResultsOut:
    """Ways out of the results of a job: each returns key -> canonical fields."""

    def __init__(self, cluster, port):
        self.cluster = cluster
        self.http = WaysOut(cluster, port, [])

    def job_results(self, job):
        return of_results(lines_of(self.cluster.must("job", "results", job, "-o", "json").out))

    def http_results(self, job):
        lines = lines_of(self.http.http_text("GET", f"/jobs/v1/{job}/results?format=jsonl"))
        return of_results(line for line in lines if not line.startswith('{"end"'))

    def thrift_results(self, job):
        with Connection(self.cluster.address.split(",")[0]) as calls:
            reply = must(calls.getJobResults(GetJobResults(job=job)))
            assert not reply.more_results
        return {one.key: canonical_fields(loads(one.value)) for one in reply.results}


def of_results(lines):
    rows = [dict(loads(line)) for line in lines]
    return {row["key"]: canonical_fields(row["value"]) for row in rows}
