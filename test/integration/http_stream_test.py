"""Streamed visits over HTTP: lines and JSON, back-pressure of a slow reader, clients that go away, nodes that are killed."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import time
import unittest
import urllib.parse
import urllib.request

from harness import wait_until
from http_documents import HttpCluster

DOCUMENTS = 20_000
PATH = "/document/v1/stream/item/docid/"
LINES = {"Accept": "application/jsonl"}
MIB = 1 << 20


class StreamTest(HttpCluster):
    storage_nodes = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wanted = [f"id:stream:item::{i}" for i in range(DOCUMENTS)]
        lines = "".join(json.dumps({"put": f"id:stream:item::{i}", "fields": {"sold": i, "title": "x" * 2000}}) + "\n"
                        for i in range(DOCUMENTS))
        cls.cluster.must("import", cls.cluster.file("stream.jsonl", lines))

    def stream(self, parameters="", headers=None, path=PATH):
        """Returns the lines of a streamed visit as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("GET", f"{path}?stream=true{parameters}", headers=LINES if headers is None else headers)
            answer = connection.getresponse()
            self.content_type = answer.headers["Content-Type"]
            self.assertEqual(answer.status, 200)
            return [json.loads(line) for line in answer]

    def check_lines(self, lines, ids):
        """Checks the form of a complete stream; each document comes once."""
        self.assertEqual(sorted(one["put"] for one in lines if "put" in one), sorted(ids))
        self.assertEqual(lines[-1], {"continuation": {"percentFinished": 100.0}})
        self.assertEqual(lines[-2], {"sessionStats": {"documentCount": len(ids)}})
        for one in lines[:-2]:
            self.assertIn(next(iter(one)), ("put", "remove", "continuation"))
            if "continuation" in one:
                self.assertRegex(one["continuation"]["token"], "^[A-Za-z0-9_=-]+$")

    def test_lines(self):
        wanted = self.wanted
        lines = self.stream()
        self.assertEqual(self.content_type, "application/jsonl; charset=UTF-8")
        self.check_lines(lines, wanted)
        self.assertEqual(next(one for one in lines if one.get("put", "").endswith("::7"))["fields"],
                         {"sold": 7, "title": "x" * 2000})
        # Not even wantedDocumentCount ends it: clients send it and take a stream that ends early for a broken one.
        some = urllib.parse.quote_plus("item.sold < 3000")
        self.check_lines(self.stream(f"&wantedDocumentCount=5&concurrency=2&selection={some}"), wanted[:3000])
        slices = [one for i in range(3) for one in self.stream(f"&slices=3&sliceId={i}&fieldSet=[id]") if "put" in one]
        self.assertEqual(sorted(one["put"] for one in slices), sorted(wanted))
        self.assertTrue(all(one["fields"] == {} for one in slices))
        self.check_lines(self.stream("&cluster=fjord&bucketSpace=global", path="/document/v1/"), [])

    def test_forms(self):
        some = "&selection=" + urllib.parse.quote_plus("item.sold < 3")
        for accept in ("application/jsonl", "application/json, application/jsonl", "application/jsonl;q=0.5,application/json;q=0.5",
                       "text/plain, application/jsonl"):
            self.check_lines(self.stream(some, {"Accept": accept}), [f"id:stream:item::{i}" for i in range(3)])
        for accept in ("application/json", "*/*", "application/json, application/jsonl;q=0.9", "application/jsonl;q=0", None):
            answer, = self.stream(some, {"Accept": accept} if accept else {})
            self.assertTrue(self.content_type.startswith("application/json;"), accept)
            self.assertEqual(answer["pathId"], PATH)
            self.assertEqual(sorted(one["id"] for one in answer["documents"]), [f"id:stream:item::{i}" for i in range(3)])
            self.assertEqual(answer["documentCount"], 3)
            self.assertNotIn("continuation", answer)
        plain = self.must(200, "GET", f"{PATH}?wantedDocumentCount=100{some}", headers=LINES)
        self.assertEqual(plain["documentCount"], 3)

    def test_removed_documents_and_times(self):
        path = "/document/v1/removes/item/docid/"
        for i in range(10):
            self.must(200, "POST", f"{path}{i}", {"fields": {"sold": i}})
        last = self.newest_version(f"id:removes:item::{i}" for i in range(10))
        for i in range(4):
            self.must(200, "DELETE", f"{path}{i}")
        lines = self.stream("&includeRemoves=true", path=path)
        self.assertEqual({one["remove"] for one in lines if "remove" in one}, {f"id:removes:item::{i}" for i in range(4)})
        self.assertEqual(lines[-2], {"sessionStats": {"documentCount": 10}})
        after = self.stream(f"&includeRemoves=true&fromTimestamp={last + 1}", path=path)
        self.assertEqual(len([one for one in after if "remove" in one]), 4)
        self.assertEqual(len([one for one in after if "put" in one]), 0)
        self.check_lines(self.stream(f"&toTimestamp={last}", path=path), [f"id:removes:item::{i}" for i in range(4, 10)])

    def test_bad_requests(self):
        for parameters in ("stream=yes", "stream=", "stream=true&selection=((", "stream=true&continuation=AAAA", "stream=true&slices=2",
                           "stream=true&concurrency=0", "stream=true&wantedDocumentCount=0", "stream=true&fromTimestamp=x",
                           "stream=true&fieldSet=item:absent", "stream=true&dryRun=true", "stream=true&bucketSpace=default"):
            self.assertTrue(self.must(400, "GET", f"{PATH}?{parameters}", headers=LINES)["message"], parameters)

    def cut_stream(self, token):
        """Returns the lines of a stream that its timeout ends before it is complete: nothing is read until that time is over."""
        timeout_ms = 200
        with self.slow_readers(1, f"&timeout={timeout_ms}ms" + (f"&continuation={token}" if token else "")) as readers:
            # The gateway had begun to count before it sent the head.
            over = time.monotonic() + timeout_ms / 1000
            wait_until(lambda: time.monotonic() > over, "the timeout is over")
            return [json.loads(line) for line in readers[0].read().splitlines()]

    def test_a_stream_in_parts(self):
        """A stream that its timeout ends goes on from its last token, as a stream or in chunks."""
        found, token = set(), ""
        for _ in range(2):
            lines = self.cut_stream(token)
            self.assertIn("timeout", lines[-1]["message"])
            token = lines[-2]["continuation"]["token"]
            self.assertLess(len(token), 32 << 10)
            found |= {one["put"] for one in lines if "put" in one}
            self.assertLess(len(found), DOCUMENTS)
            chunk = self.must(200, "GET", f"{PATH}?wantedDocumentCount=100&continuation={token}")
            found |= {one["id"] for one in chunk["documents"]}
            token = chunk["continuation"]
        lines = self.stream(f"&continuation={token}")
        self.assertEqual(lines[-1], {"continuation": {"percentFinished": 100.0}})
        rest = [one["put"] for one in lines if "put" in one]
        self.assertLess(len(rest), DOCUMENTS, "it begins where the chunk had ended")
        self.assertEqual(found | set(rest), set(self.wanted))

    def process(self, node):
        return next(one for one in self.cluster.local("status", "-o", "json").json() if one["node"] == node)

    def metric(self, name):
        """Returns the sum of a metric over the storage nodes."""
        total = 0.0
        for i in range(self.storage_nodes):
            with urllib.request.urlopen(f"http://{self.process(f'storage.{i}')['http']}/metrics", timeout=30) as answer:
                total += sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? ([0-9.e+]+)$", answer.read().decode(), re.M))
        return total

    def memory(self):
        status = pathlib.Path(f"/proc/{self.process('gateway.0')['pid']}/status").read_text()
        return int(re.search("^VmRSS:\\s*([0-9]+) kB", status, re.M)[1]) << 10

    @contextlib.contextmanager
    def slow_readers(self, count, parameters=""):
        """Streams whose clients have read only the head."""
        with contextlib.ExitStack() as stack:
            answers = []
            for _ in range(count):
                connection = http.client.HTTPConnection("127.0.0.1", self.port)
                connection.sock = stack.enter_context(socket.socket())
                connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
                connection.sock.connect(("127.0.0.1", self.port))
                connection.sock.settimeout(60)
                connection.request("GET", f"{PATH}?stream=true{parameters}", headers=LINES)
                answers.append(stack.enter_context(connection.getresponse()))
                self.assertEqual(answers[-1].status, 200)
            yield answers

    def read_bytes(self):
        return self.metric("fjord_visitor_docblock_bytes_total")

    def steady(self, value):
        """Waits until the value does not change for half a second."""
        seen = [value()]

        def is_same():
            seen.append(value())
            return seen[-1] == seen[-2]

        wait_until(is_same, "nothing more is read", pause=0.5)
        return seen[-1]

    def test_a_slow_reader_slows_the_visit_down(self):
        total = DOCUMENTS * 2000
        before_bytes, before_memory = self.read_bytes(), self.memory()
        with self.slow_readers(4) as readers:
            self.assertLess(self.steady(self.read_bytes) - before_bytes, 4 * total * 0.8)
            self.assertLess(self.memory() - before_memory, 100 * MIB)
            # Others are served meanwhile.
            self.assertEqual(self.must(200, "GET", PATH + "1")["fields"]["sold"], 1)
            self.assertEqual(self.must(200, "GET", PATH + "?wantedDocumentCount=10&selection=item.sold+<+3")["documentCount"], 3)
            received = readers[0].read()
        self.check_lines([json.loads(line) for line in received.splitlines()], self.wanted)

    def test_a_client_that_goes_away_ends_its_visit(self):
        with self.slow_readers(3):
            before = self.steady(self.read_bytes)
        wait_until(lambda: self.metric("fjord_visitor_running") == 0, "the visitors have ended", 10)
        self.assertLess(self.steady(self.read_bytes) - before, DOCUMENTS * 2000)  # Each of the three would read that much.

    def test_a_storage_node_that_is_killed(self):
        with self.slow_readers(1) as readers:
            self.cluster.kill("storage.2")
            received = readers[0].read()
        self.cluster.restart("storage.2")
        self.cluster.wait_healthy()
        self.check_lines([json.loads(line) for line in received.splitlines()], self.wanted)

    def test_a_gateway_that_stops_or_dies_leaves_a_token(self):
        for sign in (signal.SIGTERM, signal.SIGKILL):
            with self.slow_readers(1) as readers:
                lines = []
                while not lines or b'"token"' not in lines[-1]:
                    lines.append(readers[0].readline())
                    self.assertTrue(lines[-1], "the stream has ended without a token")
                os.kill(self.process("gateway.0")["pid"], sign)
                with contextlib.suppress(ConnectionError, http.client.IncompleteRead):
                    while line := readers[0].readline():
                        lines.append(line)
            whole = [json.loads(line) for line in lines if line.endswith(b"}\n")]
            found = [one["put"] for one in whole if "put" in one]
            self.assertLess(len(found), DOCUMENTS)
            last = [one["continuation"] for one in whole if "continuation" in one][-1]
            self.cluster.restart("gateway.0")
            lines = self.stream(f"&continuation={last['token']}")
            found += [one["put"] for one in lines if "put" in one]
            self.assertEqual(sorted(set(found)), sorted(self.wanted))


if __name__ == "__main__":
    unittest.main()
