"""Errors of the cluster as answers over HTTP: nodes that are away, no space, too many visits."""

import concurrent.futures
import http.client
import unittest

from harness import wait_until
from http_documents import HttpCluster, ROOT


class ErrorsTest(HttpCluster):
    def test_no_distributor(self):
        self.must(200, "POST", ROOT + "1", {"fields": {"sold": 1}})
        self.cluster.kill("distributor.0")
        for method, target, body in (("GET", ROOT + "1?timeout=1s", None), ("POST", ROOT + "1?timeout=1s", {"fields": {"sold": 2}}),
                                     ("PUT", ROOT + "1?timeout=1s", {"fields": {"sold": {"increment": 1}}}),
                                     ("DELETE", ROOT + "1?timeout=1s", None), ("GET", ROOT + "?timeout=1s", None),
                                     ("DELETE", ROOT + "?cluster=fjord&selection=true&timeout=1s", None),
                                     ("GET", ROOT + "?stream=true&timeout=1s", None)):
            status, answer = self.http.send(method, target, body)
            self.assertIn(status, (503, 504), f"{method} {target}: {answer}")
            self.assertEqual(answer["pathId"], target.split("?")[0])
            self.assertTrue(answer["message"])
            self.assertEqual("Retry-After" in self.http.headers, status == 503)
        self.assertEqual(self.must(200, "POST", ROOT + "1?dryRun=true&timeout=1s", "not read"), {"pathId": ROOT + "1", "id": "id:shop:item::1"})
        self.cluster.restart("distributor.0")
        self.cluster.wait_healthy()
        # None of the writes was in doubt only: each has either said so or not been made.
        self.assertIn(self.must(200, "GET", ROOT + "1")["fields"]["sold"], (1, 2, 3))

    def test_no_space(self):
        self.must(200, "POST", ROOT + "kept", {"fields": {"sold": 1}})
        limits = ("storage.space_warn_percent=0", "storage.space_throttle_percent=1", "storage.space_refuse_external_percent=1")
        self.cluster.must("config", "set", *limits)
        try:
            wait_until(lambda: self.http.send("POST", ROOT + "new", {"fields": {"sold": 1}})[0] == 507, "writes are refused")
            answer = self.must(507, "PUT", ROOT + "kept", {"fields": {"title": {"assign": "x" * 100}}})
            self.assertEqual(answer["id"], "id:shop:item::kept")
            self.assertTrue(answer["message"])
            self.assertEqual(self.must(200, "GET", ROOT + "kept")["fields"], {"sold": 1})
            self.must(200, "DELETE", ROOT + "kept")
        finally:
            self.cluster.must("config", "unset", *[one.split("=")[0] for one in limits])
        wait_until(lambda: self.http.send("POST", ROOT + "new", {"fields": {"sold": 1}})[0] == 200, "writes come back")

    def test_too_many_visits(self):
        """Streams that nobody reads are bounded, and others get 429 with a time to wait; chunks are served beside them."""
        lines = "".join(f'{{"put":"id:many:item::{i}","fields":{{"title":"{"x" * 5000}"}}}}\n' for i in range(2000))
        self.cluster.must("import", self.cluster.file("many.jsonl", lines))
        path = "/document/v1/many/item/docid/"
        connections = [http.client.HTTPConnection("127.0.0.1", self.port, timeout=60) for _ in range(40)]
        try:
            for one in connections:
                one.request("GET", path + "?stream=true", headers={"Accept": "application/jsonl"})
            answers = [one.getresponse() for one in connections]
            self.assertEqual({one.status for one in answers}, {200, 429})
            self.assertEqual(len([one for one in answers if one.status == 200]), 32)
            self.assertTrue(all(one.headers["Retry-After"] == "1" for one in answers if one.status == 429))
            self.assertEqual(self.must(200, "GET", path + "?wantedDocumentCount=10&fieldSet=[id]")["documentCount"] > 0, True)
        finally:
            for one in connections:
                one.close()
        wait_until(lambda: self.http.send("GET", path + "?stream=true&slices=500&sliceId=0")[0] == 200, "streams are free again")

    def test_many_visits_at_once(self):
        for i in range(30):
            self.must(200, "POST", f"/document/v1/few/item/docid/{i}", {"fields": {"sold": i}})

        def visit(i):
            return self.connect().send("GET", f"/document/v1/few/item/docid/?wantedDocumentCount=100&slices=3&sliceId={i % 3}")

        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            answers = list(pool.map(visit, range(60)))
        self.assertEqual({status for status, _ in answers}, {200})
        self.assertEqual(sum(answer["documentCount"] for _, answer in answers), 20 * 30)


if __name__ == "__main__":
    unittest.main()
