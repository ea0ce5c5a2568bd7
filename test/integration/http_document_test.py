"""The document API over HTTP on real processes: single documents, visits chunk by chunk, and requests that are refused."""

import contextlib
import gzip
import http.client
import json
import re
import socket
import threading
import unittest
import urllib.parse

from harness import Cluster, free_ports, wait_until
from http_documents import ROOT, SCHEMA, Http


def raw_exchange(port, sent):
    """Sends bytes and returns everything until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as one:
        one.sendall(sent)
        received = b""
        while part := one.recv(65536):
            received += part
        return received


class HttpDocumentTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port = free_ports(1)[0]
        cls.cluster = Cluster(storage=2, settings=f"gateways:\n  - address: 127.0.0.1:{cls.port}\n")
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        schema = cls.cluster.folder / "item.sd"
        schema.write_text(SCHEMA)
        cls.cluster.must("schema", "deploy", schema)

    def setUp(self):
        self.http = Http(self.port)
        self.addCleanup(self.http.connection.close)

    def must(self, expected, method, target, body=None, headers=None):
        status, answer = self.http.send(method, target, body, headers)
        self.assertEqual(status, expected, f"{method} {target}: {answer}")
        if status != 204:
            self.assertEqual(answer.get("pathId", target.split("?")[0]), target.split("?")[0])
        return answer

    def test_put_get_update_and_remove(self):
        path = ROOT + "one"
        self.assertEqual(self.must(200, "POST", path, {"fields": {"title": "x", "sold": 9007199254740993}})["id"],
                         "id:shop:item::one")
        got = self.must(200, "GET", path)
        self.assertEqual(got, {"pathId": path, "id": "id:shop:item::one", "fields": {"title": "x", "sold": 9007199254740993}})
        self.must(200, "PUT", path, {"fields": {"sold": {"increment": 2}}})
        self.assertEqual(self.must(200, "GET", path + "?fieldSet=item:sold")["fields"], {"sold": 9007199254740995})
        self.must(200, "DELETE", path)
        self.assertNotIn("fields", self.must(404, "GET", path))
        self.must(200, "DELETE", path)

    def test_fields_without_content_are_absent(self):
        self.must(200, "POST", ROOT + "empty", {"fields": {"title": "", "sold": 1, "tags": []}})
        self.assertEqual(self.must(200, "GET", ROOT + "empty")["fields"], {"sold": 1})

    def test_missing_documents(self):
        self.must(200, "PUT", ROOT + "missing", {"fields": {"sold": {"assign": 1}}})
        self.must(404, "GET", ROOT + "missing")
        self.must(412, "PUT", ROOT + "missing?condition=item.sold%3D%3D1", {"fields": {"sold": {"assign": 1}}})
        self.must(412, "POST", ROOT + "missing?condition=item.sold%3D%3D1", {"fields": {"sold": 1}})
        self.must(412, "DELETE", ROOT + "missing?condition=item.sold%3D%3D1")
        self.must(404, "GET", ROOT + "missing")
        self.must(200, "PUT", ROOT + "made?create=true&condition=item.sold%3D%3D7", {"fields": {"sold": {"assign": 1}}})
        self.assertEqual(self.must(200, "GET", ROOT + "made")["fields"], {"sold": 1})
        self.must(200, "POST", ROOT + "put", {"fields": {"sold": 3}, "create": True, "condition": "item.sold==7"})
        self.must(412, "POST", ROOT + "put", {"fields": {"sold": 4}, "condition": "item.sold==7"})
        self.assertEqual(self.must(200, "GET", ROOT + "put")["fields"], {"sold": 3})

    def test_the_query_wins_over_the_body(self):
        path = ROOT + "both"
        self.must(200, "POST", path, {"fields": {"sold": 3}})
        right, wrong = "?condition=item.sold==3", "?condition=item.sold==99"
        for method, new in (("PUT", {"sold": {"assign": 4}}), ("POST", {"sold": 4})):
            answer = self.must(412, method, path + wrong, {"condition": "item.sold==3", "fields": new})
            self.assertEqual(answer["code"], "TEST_AND_SET_FAILED")
        self.must(200, "PUT", path + right, {"condition": "item.sold==99", "fields": {"sold": {"assign": 5}}})
        self.assertEqual(self.must(200, "GET", path)["fields"], {"sold": 5})
        absent, new = ROOT + "both-absent", {"sold": {"assign": 1}}
        self.must(200, "PUT", absent + "?create=false", {"create": True, "fields": new})
        self.must(404, "GET", absent)
        self.must(200, "PUT", absent + "?create=true", {"create": False, "fields": new})
        self.assertEqual(self.must(200, "GET", absent)["fields"], {"sold": 1})

    def test_every_error_has_a_code(self):
        gzip_headers = {"Content-Encoding": "gzip"}
        for code, status, method, target, body, headers in (
                ("INVALID_ARGUMENT", 400, "POST", ROOT + "code", b"no gzip", gzip_headers),
                ("INVALID_ARGUMENT", 400, "GET", ROOT + "code?dryRun=true", None, None),
                ("UNAUTHORIZED", 403, "POST", ROOT + "code", "{}", {"Origin": "http://example.org"}),
                ("NOT_FOUND", 404, "GET", "/nosuch", None, None), ("NOT_FOUND", 404, "GET", "/console/nosuch", None, None),
                ("NOT_FOUND", 404, "GET", "/document/v1/shop/item", None, None),
                ("NOT_IMPLEMENTED", 405, "PATCH", ROOT + "code", None, None),
                ("NOT_IMPLEMENTED", 405, "POST", "/cluster/v1/status", "{}", None),
                ("TOO_LARGE", 413, "POST", ROOT + "code", gzip.compress(b"0" * (101 << 20)), gzip_headers),
                ("INVALID_ARGUMENT", 415, "POST", ROOT + "code", "{}", {"Content-Encoding": "br"}),
                ("INVALID_ARGUMENT", 421, "GET", ROOT + "code", None, {"Host": "example.org"})):
            answer = self.must(status, method, target, body, headers)
            self.assertEqual((answer["code"], bool(answer["message"])), (code, True), f"{method} {target}")
        line = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
        self.assertIn(b'"code":"TOO_LARGE"', raw_exchange(self.port, line + b"X: " + b"y" * (300 << 10) + b"\r\n\r\n"))

    def test_documents_of_fjords_own_types_are_read_only(self):
        for name in ("fjord_job", "fjord_tuples", "fjord_result", "fjord_affinity", "fjord_queries", "fjord_synonyms"):
            one = f"/document/v1/fjord/{name}/docid/mine"
            for method, body in (("POST", {"fields": {}}), ("PUT", {"fields": {}}), ("DELETE", None)):
                refused = self.must(403, method, one, body)
                self.assertEqual(refused["code"], "UNAUTHORIZED")
                self.assertIn(f"documents of type {name} are Fjord's own", refused["message"])
            self.must(404, "GET", one)
            every = f"/document/v1/fjord/{name}/docid/?cluster=fjord&selection=true"
            self.must(200, "GET", every)
            self.must(403, "PUT", every, {"fields": {}})
            # Results and recorded queries are there for users, who also remove them.
            self.must(200 if name in ("fjord_result", "fjord_queries") else 403, "DELETE", every + "&confirm=all")

    def test_large_documents(self):
        """The message to the distributor bounds a document, before the body does."""
        for megabytes in (3, 40, 60):
            title = "x" * (megabytes << 20)
            self.must(200, "POST", ROOT + "large", {"fields": {"title": title}})
            self.assertEqual(self.must(200, "GET", ROOT + "large")["fields"]["title"], title)
        refused = self.must(413, "POST", ROOT + "large", {"fields": {"title": "x" * (70 << 20)}})
        self.assertEqual(refused["code"], "TOO_LARGE")
        self.assertIn(str(64 << 20), refused["message"])
        self.must(200, "DELETE", ROOT + "large")

    def test_ids_in_paths(self):
        for path, document_id in (("/document/v1/shop/item/number/7/a", "id:shop:item:n=7:a"),
                                  ("/document/v1/shop/item/number/007/a", "id:shop:item:n=7:a"),
                                  ("/document/v1/shop/item/number/18446744073709551615/a", "id:shop:item:n=18446744073709551615:a"),
                                  ("/document/v1/shop/item/group/g/a", "id:shop:item:g=g:a"),
                                  (ROOT + "a%2Fb+c%2Bd", "id:shop:item::a/b c+d"), (ROOT + "a/b+c%2Bd", "id:shop:item::a/b c+d")):
            self.assertEqual(self.must(200, "POST", path, {"fields": {"title": path}})["id"], document_id)
        self.assertEqual(self.must(200, "GET", ROOT + "a%2Fb+c%2Bd")["fields"], {"title": ROOT + "a/b+c%2Bd"})

    def test_bad_requests_change_nothing(self):
        path = ROOT + "kept"
        self.must(200, "POST", path, {"fields": {"title": "kept"}})
        for method, suffix, body in (
                ("POST", "", "{"), ("POST", "", ""), ("POST", "", "{}"), ("POST", "", "[]"), ("POST", "", '{"fields":3}'),
                ("POST", "", '{"fields":{"title":"a"},"fields":{"title":"b"}}'), ("POST", "", '{"fields":{}} x'), ("POST", "", '{"fields":{"absent":1}}'),
                ("POST", "", '{"fields":{"sold":"x"}}'), ("POST", "", '{"fields":{"sold":1.5}}'),
                ("POST", "", '{"fields":{"tags":' + "[" * 100000 + "}}"),
                ("PUT", "", '{"fields":{"title":{"assign":"new"},"absent":{"assign":1}}}'),
                ("POST", "?condition=((", '{"fields":{}}'), ("POST", "?create=yes", '{"fields":{}}'),
                ("POST", "?timeout=soon", '{"fields":{}}'), ("POST", "?condition=", '{"fields":{}}'),
                ("DELETE", "?condition=absent.x%3D%3D1", None), ("GET", "?dryRun=true", None),
                ("GET", "?cluster=other", None)):
            self.assertTrue(self.must(400, method, path + suffix, body)["message"], suffix)
        self.assertEqual(self.must(200, "GET", path)["fields"], {"title": "kept"})
        self.must(400, "GET", "/document/v1/shop/absent/docid/1")
        self.must(400, "GET", "/document/v1/shop/item/number/x/1")
        for kind in ("a%3Aitem%3A/x/docid", "shop/item%3A/docid", "shop/item/group/g%3Ax"):
            self.assertIn("contains ':'", self.must(400, "GET", f"/document/v1/{kind}/1")["message"])
        self.must(200, "GET", path + "?unknown=&other")
        self.must(404, "GET", "/document/v1/shop/item")
        self.must(405, "PATCH", path)
        self.must(204, "OPTIONS", path)
        self.assertEqual(self.http.headers["Allow"], "GET,HEAD,POST,PUT,DELETE")

    def test_compressed_bodies(self):
        headers = {"Content-Encoding": "gzip"}
        body = gzip.compress(json.dumps({"fields": {"title": "z" * 5000}}).encode())
        self.must(200, "POST", ROOT + "zip", body, headers)
        self.assertEqual(self.must(200, "GET", ROOT + "zip")["fields"]["title"], "z" * 5000)
        self.must(400, "POST", ROOT + "zip", body[:-9], headers)
        self.must(400, "POST", ROOT + "zip", b"no gzip", headers)
        self.must(413, "POST", ROOT + "zip", gzip.compress(b"0" * (101 << 20)), headers)
        self.assertEqual(self.must(200, "GET", ROOT + "zip")["fields"]["title"], "z" * 5000)

    def test_dry_run_and_handshake(self):
        self.must(200, "POST", "/document/v1/feeder/handshake/docid/dummy?dryRun=true&timeout=5s")
        self.must(200, "DELETE", ROOT + "kept-by-dry-run?dryRun=true")

    def test_pages_beside_it(self):
        for path in ("/ApplicationStatus", "/status.html", "/state/v1/health"):
            self.must(200, "GET", path)
        self.assertRegex(self.must(200, "GET", "/state/v1/version")["version"], r"^\d+\.\d+\.\d+$")
        handlers = self.must(200, "GET", "/")["handlers"]
        self.assertTrue(any(one["class"].endswith("DocumentV1ApiHandler") and
                            any("/document/v1/" in binding for binding in one["serverBindings"]) for one in handlers))
        self.assertIn("/document/v1/", self.must(404, "GET", "/absent")["message"])
        self.assertIn("no content cluster '*', only 'fjord'", self.must(400, "GET", "/document/v1/?cluster=*")["message"])
        page = raw_exchange(self.port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertIn(b'fjord_http_requests_total{api="state",code="200"}', page)

    def test_malformed_http(self):
        line = b"POST " + ROOT.encode() + b"raw HTTP/1.1\r\nHost: localhost\r\n"
        for sent, status in ((b"no http\r\n\r\n", 400), (line + b"Content-Length: x\r\n\r\n", 400),
                             (line + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
                             (line + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
                             (line + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
                             (line + b"Content-Length: 999999999999\r\n\r\n", 413),
                             (line + b"X: " + b"y" * (300 << 10) + b"\r\n\r\n", 431)):
            self.assertIn(b"HTTP/1.1 %d " % status, raw_exchange(self.port, sent)[:20], sent[:200])
        self.must(404, "GET", ROOT + "raw")

    def test_a_refusal_arrives_while_the_body_is_sent(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as one:
            one.sendall(b"POST " + ROOT.encode() + b"big HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000000\r\n\r\n")
            for _ in range(16):
                one.sendall(b"x" * (1 << 20))
            received = b""
            while part := one.recv(65536):
                received += part
        self.assertTrue(received.startswith(b"HTTP/1.1 413 "), received[:100])

    def test_bodies_that_are_arriving_are_bounded(self):
        head = b"POST " + ROOT.encode() + b"big HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
        answered = b""
        with contextlib.ExitStack() as open_sockets:
            for _ in range(3):  # 99 MB each, of at most 256 MiB together, and none is whole.
                one = open_sockets.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=5))
                one.sendall(head)
                for _ in range(99):
                    one.sendall(b"x" * 1000000)
            one.settimeout(30)
            answered = one.recv(65536)
        self.assertTrue(answered.startswith(b"HTTP/1.1 429 "), answered[:100])
        self.assertIn(b"Retry-After: 1", answered)

    def test_the_access_log_is_one_escaped_line(self):
        page = raw_exchange(self.port, b"GET /log\xff\"\xc2\x85 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        request_id = re.search(b"X-Request-Id: (.*)\r", page)[1].decode()
        log = self.cluster.directory / "logs" / "gateway.0.log"
        lines = wait_until(lambda: [line for line in log.read_bytes().decode().splitlines() if request_id in line], "logged")
        self.assertIn("GET /log%FF%22%C2%85 404 ", lines[0])

    def test_a_body_is_asked_for(self):
        body = b'{"fields":{"sold":5}}'
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as one:
            one.sendall(b"POST " + ROOT.encode() + b"asked HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                        b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body))
            self.assertTrue(one.recv(1000).startswith(b"HTTP/1.1 100 "))
            one.sendall(body)
            self.assertTrue(one.recv(1000).startswith(b"HTTP/1.1 200 "))
        self.assertEqual(self.must(200, "GET", ROOT + "asked")["fields"], {"sold": 5})

    def test_updates_at_once_are_all_applied(self):
        self.must(200, "POST", ROOT + "counter", {"fields": {"sold": 0}})
        failures = []

        def count():
            connection = Http(self.port)
            for _ in range(15):
                answer = connection.send("PUT", ROOT + "counter", {"fields": {"sold": {"increment": 1}}})
                if answer[0] != 200:
                    failures.append(answer)
            connection.connection.close()

        threads = [threading.Thread(target=count) for _ in range(10)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.must(200, "GET", ROOT + "counter")["fields"], {"sold": 150})

    def visit(self, target):
        """Returns ids and number of chunks of a whole visit."""
        ids, chunks, token = [], 0, ""
        while token is not None:
            answer = self.must(200, "GET", target + (f"&continuation={token}" if token else ""))
            self.assertEqual(answer["documentCount"], len(answer["documents"]))
            ids += [one["id"] for one in answer["documents"]]
            chunks += 1
            token = answer.get("continuation")
            self.assertRegex(token or "", "^[A-Za-z0-9_=-]*$")
        return ids, chunks

    def test_visits(self):
        wanted = [f"id:visits:item:n=3:{i}" for i in range(60)] + [f"id:visits:item::{i}" for i in range(240)]
        for one in wanted:
            location, user = one.split(":")[3:]
            kind = "number/3" if location else "docid"
            self.must(200, "POST", f"/document/v1/visits/item/{kind}/{user}", {"fields": {"sold": int(user)}})
        below = "/document/v1/visits/item/docid/"
        ids, chunks = self.visit(below + "?wantedDocumentCount=50")
        self.assertEqual(sorted(ids), sorted(wanted))
        self.assertGreater(chunks, 5)
        self.assertEqual(sorted(self.visit("/document/v1/visits/item/number/3/?wantedDocumentCount=1000")[0]), sorted(wanted[:60]))
        slices = [one for i in range(3) for one in self.visit(below + f"?wantedDocumentCount=500&slices=3&sliceId={i}")[0]]
        self.assertEqual(sorted(slices), sorted(wanted))
        selection = urllib.parse.quote_plus("item.sold >= 200 and id.namespace == 'visits'")
        ids, _ = self.visit(f"/document/v1/?cluster=fjord&wantedDocumentCount=1000&selection={selection}")
        self.assertEqual(sorted(ids), sorted(f"id:visits:item::{i}" for i in range(200, 240)))
        self.assertEqual(self.must(200, "GET", "/document/v1/?cluster=fjord&bucketSpace=global")["documents"], [])

    def test_bad_visits(self):
        below = ROOT + "?"
        for target in (below + "wantedDocumentCount=0", below + "slices=2", below + "slices=2&sliceId=2",
                       below + "selection=((", below + "continuation=AAAA", below + "continuation=.", "/document/v1/",
                       below + "bucketSpace=default", below + "fromTimestamp=5&toTimestamp=3",
                       below + "fromTimestamp=5&toTimestamp=0", "/document/v1/?cluster=fjord&bucketSpace=other",
                       "/document/v1/shop/absent/docid/"):
            self.assertTrue(self.must(400, "GET", target)["message"], target)
        self.must(200, "GET", below + "fromTimestamp=3&toTimestamp=3&concurrency=17&wantedDocumentCount=9999")


if __name__ == "__main__":
    unittest.main()
