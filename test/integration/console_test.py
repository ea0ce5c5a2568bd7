"""The console of a gateway: how its files are served. console_browser_test.py looks at the pages."""

import gzip
import http.client
import json
import re
import unittest

import harness
from harness import Cluster, free_ports

BYTES_MAX = 200_000  # Of all files, compressed.


class ConsoleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port = free_ports(1)[0]
        cls.cluster = Cluster(storage=2, settings=f"gateways:\n  - address: 127.0.0.1:{cls.port}\n    console_edits: false\n")
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()

    def send(self, target, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.addCleanup(connection.close)
        connection.request(method, target, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def page(self):
        """Returns the page; skips the test if the build has no console, after a look at what the gateway says then."""
        status, headers, body = self.send("/console/")
        if status == 404:
            self.assertIn(b"This gateway has no console", body)
            self.assertIn(b"nodejs npm", body)
            self.assertTrue(headers["Content-Type"].startswith("text/html"))
            self.skipTest("the build has no console")
        self.assertEqual(status, 200)
        return headers, body.decode()

    def files(self):
        _, page = self.page()
        return re.findall(r'(?:src|href)="([^"]+)"', page)

    def test_browsers_are_led_to_the_console_and_other_clients_are_not(self):
        status, headers, _ = self.send("/", Accept="text/html,application/xhtml+xml,*/*;q=0.8")
        self.assertEqual((status, headers["Location"]), (302, "/console/"))
        for accept in ("*/*", "application/json"):
            status, headers, body = self.send("/", Accept=accept)
            self.assertEqual(status, 200)
            self.assertIn("handlers", json.loads(body))
        self.assertEqual(self.send("/")[0], 200)
        status, headers, _ = self.send("/console")
        self.assertEqual((status, headers["Location"]), (308, "/console/"))

    def test_files_are_compressed_small_and_kept_by_browsers(self):
        files = self.files()
        self.assertEqual(len(files), 3)
        total = len(self.send("/console/", Accept_Encoding="gzip")[2])
        for name in files:
            with self.subTest(name):
                status, headers, packed = self.send("/console/" + name, Accept_Encoding="gzip, br")
                self.assertEqual((status, headers["Content-Encoding"]), (200, "gzip"))
                self.assertIn("immutable", headers["Cache-Control"])
                self.assertEqual(headers["Vary"], "Accept-Encoding")
                total += len(packed)
                status, plain_headers, plain = self.send("/console/" + name)
                self.assertEqual((status, plain_headers["Content-Encoding"]), (200, None))
                self.assertEqual(gzip.decompress(packed), plain)
                status, again, body = self.send("/console/" + name, If_None_Match=headers["ETag"])
                self.assertEqual((status, body, again["ETag"]), (304, b"", headers["ETag"]))
                self.assertEqual(self.send("/console/" + name, If_None_Match='"another"')[0], 200)
        self.assertLess(total, BYTES_MAX)
        print(f"\nthe console has {total} bytes, compressed")
        self.assertEqual(self.send("/console/absent.js")[0], 404)

    def test_the_page_is_asked_for_again_and_asks_no_other_host(self):
        headers, page = self.page()
        self.assertEqual(headers["Cache-Control"], "no-cache")
        self.assertEqual(self.send("/console/", If_None_Match=headers["ETag"])[0], 304)
        policy = headers["Content-Security-Policy"]
        for part in ("default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"):
            self.assertIn(part, policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        for name in self.files():
            text = self.send("/console/" + name)[2].decode()
            # Names of XML are no addresses that are asked.
            outside = [found for found in re.findall(r"https?://[\w.-]+", text) if found not in ("http://www.w3.org",)]
            self.assertEqual(outside, [], name)

    def test_the_console_learns_whether_it_may_change_documents(self):
        about = json.loads(self.send("/console/about.json")[2])
        self.assertEqual((about["gateway"], about["edits"]), ("gateway.0", False))
        self.assertTrue(about["version"])


class LoadTest(unittest.TestCase):
    def test_load_is_that_of_the_cluster(self):
        port = free_ports(1)[0]
        with Cluster(storage=2, settings=f"gateways:\n  - address: 127.0.0.1:{port}\n") as cluster:
            cluster.deploy("document item { field title type string { } }")

            def load():
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("GET", "/cluster/v1/load")
                body = connection.getresponse().read()
                connection.close()
                return json.loads(body)

            def busy():
                cluster.must("feed", cluster.file("feed.jsonl", "".join(
                    json.dumps({"put": f"id:shop:item::{i}", "fields": {"title": "x"}}) + "\n" for i in range(300))))
                now = load()
                return any(point["writes_per_second"] > 10 and point["p99_seconds"] for point in now["points"]) and now

            now = harness.wait_until(busy, "the load has writes", pause=0.2)
            self.assertEqual({node["node"] for node in now["nodes"]},
                             {"fleetcontroller.0", "distributor.0", "storage.0", "storage.1", "gateway.0"})
            gateway = next(node for node in now["nodes"] if node["node"] == "gateway.0")
            self.assertGreater(gateway["resident_bytes"], 0)
            self.assertIsNotNone(gateway["operations_per_second"])
            self.assertEqual(now["silent"], [])
            storage = next(node for node in now["nodes"] if node["node"] == "storage.0")
            self.assertGreater(storage["used_bytes"], 0)
            self.assertLessEqual(storage["limit_bytes"], storage["used_bytes"] + storage["free_bytes"])
            self.assertIn("put", [operation["operation"] for operation in now["operations"]])
            cluster.kill("storage.1")
            harness.wait_until(lambda: load()["silent"] == ["storage.1"], "storage.1 is silent", pause=0.2)


if __name__ == "__main__":
    harness.main()
