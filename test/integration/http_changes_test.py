"""Changes of documents as lines over HTTP: from the beginning, from a cursor, slow readers, and clients that go away."""

import contextlib
import http.client
import json
import os
import signal
import unittest
import urllib.parse

from harness import wait_until
from http_documents import HttpCluster

PATH = "/changes/v1"
DOCUMENTS = 500


class Changes:
    """An open stream of changes."""

    def __init__(self, test, parameters=None, body=None):
        self.test = test
        self.connection = http.client.HTTPConnection("127.0.0.1", test.port, timeout=60)
        test.addCleanup(self.connection.close)
        target = PATH + ("?" + urllib.parse.urlencode(parameters) if parameters else "")
        self.connection.request("GET" if body is None else "POST", target, body=None if body is None else json.dumps(body))
        self.answer = self.connection.getresponse()
        test.assertEqual(self.answer.status, 200)
        test.assertEqual(self.answer.headers["Content-Type"], "application/jsonl; charset=UTF-8")
        self.cursor = ""

    def next(self):
        """Returns the next line; None at the end."""
        line = self.answer.readline()
        if not line:
            return None
        one = json.loads(line)
        self.cursor = one.get("cursor", self.cursor)
        return one

    def until(self, condition):
        """Returns the lines up to one for which the condition is true."""
        lines = []
        while (line := self.next()) is not None:
            lines.append(line)
            if condition(line):
                return lines
        raise AssertionError(f"the stream has ended after {lines[-3:]}")

    def until_caught_up(self):
        return self.until(lambda line: "caught_up" in line)


class ChangesTest(HttpCluster):
    def put(self, space, number, sold, title=None):
        fields = {"sold": sold, **({"title": title} if title else {})}
        self.must(200, "POST", f"/document/v1/{space}/item/docid/{number}", {"fields": fields})

    def test_existing_documents_and_changes(self):
        for i in range(20):
            self.put("all", i, i, f"T{i}")
        changes = Changes(self, {"selection": "id.namespace == 'all' and item.sold >= 5", "type": "item"})
        lines = changes.until_caught_up()
        self.assertEqual({one["put"]: one["fields"] for one in lines if "put" in one},
                         {f"id:all:item::{i}": {"sold": i, "title": f"T{i}"} for i in range(5, 20)})
        self.put("all", 3, 30)
        self.assertEqual(changes.until(lambda line: "put" in line)[-1], {"put": "id:all:item::3", "fields": {"sold": 30}})
        self.must(200, "DELETE", "/document/v1/all/item/docid/7")
        self.assertEqual(changes.until(lambda line: "remove" in line)[-1], {"remove": "id:all:item::7"})
        self.put("all", 8, 1)  # It matches no more.
        self.assertEqual(changes.until(lambda line: "remove" in line)[-1], {"remove": "id:all:item::8"})
        changes.until(lambda line: set(line) == {"cursor"} or "caught_up" in line)
        cursor = changes.cursor
        changes.connection.close()
        self.put("all", 9, 90)
        for again in (Changes(self, {"selection": "id.namespace == 'all' and item.sold >= 5", "type": "item", "cursor": cursor}),
                      Changes(self, body={"selection": "id.namespace == 'all' and item.sold >= 5", "type": "item", "cursor": cursor})):
            lines = again.until_caught_up()
            self.assertIn({"put": "id:all:item::9", "fields": {"sold": 90}}, lines)
            self.assertNotIn("id:all:item::10", [one.get("put") for one in lines])

    def test_fields_and_from_now(self):
        self.put("now", 1, 1, "T")
        changes = Changes(self, {"selection": "id.namespace == 'now'", "fields": "title", "from_now": "true"})
        self.assertEqual([one for one in changes.until_caught_up() if "put" in one], [])
        self.put("now", 2, 2, "U")
        self.assertEqual(changes.until(lambda line: "put" in line)[-1], {"put": "id:now:item::2", "fields": {"title": "U"}})
        changes = Changes(self, body={"selection": "id.namespace == 'now'", "fields": ["sold"]})
        self.assertEqual({one["put"]: one["fields"] for one in changes.until_caught_up() if "put" in one},
                         {"id:now:item::1": {"sold": 1}, "id:now:item::2": {"sold": 2}})

    def test_heartbeats(self):
        changes = Changes(self, {"selection": "id.namespace == 'none'", "heartbeat": "50ms"})
        changes.until_caught_up()
        beat = changes.until(lambda line: "heartbeat" in line)[-1]
        self.assertEqual((beat["heartbeat"], set(beat)), (True, {"heartbeat", "cursor"}))
        for _ in range(30):  # More than two rounds of the subscription; caught up is said once.
            self.assertEqual([set(line) for line in changes.until(lambda line: "heartbeat" in line)], [{"heartbeat", "cursor"}])

    def test_errors(self):
        for parameters, code in (({"type": "absent"}, "UNKNOWN_TYPE"), ({"selection": "(("}, "INVALID_SELECTION"),
                                 ({"fields": "absent"}, "INVALID_FIELD"), ({"cursor": "x"}, "INVALID_ARGUMENT"),
                                 ({"from_now": "maybe"}, "INVALID_ARGUMENT"), ({"heartbeat": "0"}, "INVALID_ARGUMENT"),
                                 ({"absent": "1"}, "INVALID_ARGUMENT")):
            answer = self.must(400, "GET", PATH + "?" + urllib.parse.urlencode(parameters))
            self.assertEqual(answer["code"], code, answer)
        self.assertIn('"from_now"', self.must(400, "POST", PATH, {"from_now": "yes"})["message"])
        cursor = Changes(self, {"selection": "id.namespace == 'none'"})
        cursor.until_caught_up()
        other = {"selection": "id.namespace == 'other'", "cursor": cursor.cursor}
        self.assertEqual(self.must(400, "POST", PATH, other)["code"], "INVALID_ARGUMENT")

    def test_resync(self):
        """A cursor from before removes that the cluster has forgotten."""
        self.put("old", 1, 1)
        changes = Changes(self, {"selection": "id.namespace == 'old'"})
        changes.until_caught_up()
        changes.connection.close()
        self.must(200, "DELETE", "/document/v1/old/item/docid/1")
        self.cluster.must("config", "set", "documents.remove_retention=1ms")
        try:
            def is_forgotten():
                again = Changes(self, body={"selection": "id.namespace == 'old'", "cursor": changes.cursor})
                lines = again.until(lambda line: "caught_up" in line or "resync" in line)
                again.connection.close()
                return lines[-1] if "resync" in lines[-1] else None
            last = wait_until(is_forgotten, "the remove is forgotten")
            self.assertEqual((last["resync"], set(last)), (True, {"resync", "horizon_unix_us"}))
            again = Changes(self, body={"selection": "id.namespace == 'old'", "cursor": changes.cursor})
            again.until(lambda line: "resync" in line)
            self.assertIsNone(again.next())
        finally:
            self.cluster.must("config", "unset", "documents.remove_retention")

    def test_a_slow_reader_and_clients_that_go_away(self):
        """Streams of changes take the threads of streams, and give them back when their clients go away."""
        lines = "".join(json.dumps({"put": f"id:many:item::{i}", "fields": {"sold": i, "title": "x" * 20_000}}) + "\n"
                        for i in range(DOCUMENTS))
        self.cluster.must("import", self.cluster.file("many.jsonl", lines))
        with contextlib.ExitStack() as open_ones:
            slow = [Changes(self, {"selection": "id.namespace == 'many'"}) for _ in range(32)]
            for one in slow:
                open_ones.callback(one.connection.close)
            self.assertEqual(self.must(429, "GET", PATH)["message"][:8], "too many")
            # One that is read at last has everything.
            found = {one["put"]: one["fields"]["sold"] for one in slow[0].until_caught_up() if "put" in one}
            self.assertEqual(found, {f"id:many:item::{i}": i for i in range(DOCUMENTS)})

        def is_free():
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as one:
                one.request("GET", PATH + "?selection=" + urllib.parse.quote("id.namespace == 'none'"))
                return one.getresponse().status == 200
        wait_until(is_free, "threads are free again")

    def test_a_gateway_that_stops_ends_the_stream(self):
        self.put("stop", 1, 1)
        changes = Changes(self, {"selection": "id.namespace == 'stop'"})
        changes.until_caught_up()
        os.kill(int((self.cluster.directory / "run" / "gateway.0.pid").read_text().split()[0]), signal.SIGTERM)
        while changes.next() is not None:
            pass
        self.cluster.restart("gateway.0")
        self.http = self.connect()
        self.put("stop", 2, 2)
        again = Changes(self, {"selection": "id.namespace == 'stop'", "cursor": changes.cursor})
        self.assertEqual([one["put"] for one in again.until_caught_up() if "put" in one], ["id:stop:item::2"])


if __name__ == "__main__":
    unittest.main()
