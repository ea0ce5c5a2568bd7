"""Real clients of the document API over HTTP: curl, the command line `vespa`, pyvespa and vespa-feed-client. Each over single
documents, conditions, visits as far as it has them, and a feed of 10,000 documents during which a storage node is killed."""

import json
import os
import shutil
import subprocess
import sys
import unittest

from harness import wait_until
from http_clients import CLIENTS, java_class_path, python_folder
from http_documents import HttpCluster, ROOT

FEED = 10_000


class Clients(HttpCluster):
    storage_nodes = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.url = f"http://127.0.0.1:{cls.port}"

    def run_client(self, *command, code=0, stdin=None, env=None):
        done = subprocess.run([str(one) for one in command], input=stdin, capture_output=True, text=True, timeout=300,
                              env={**os.environ, **(env or {})}, check=False)
        self.assertEqual(done.returncode, code, f"{command}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
        return done

    def feed_with_a_kill(self, *command, env=None, node="storage.1"):
        """Runs a feed of FEED documents, and kills a node when the first thousand are there. A gateway comes back at once."""
        self.must(200, "DELETE", "/document/v1/feed/item/docid/?cluster=fjord&selection=true")
        with subprocess.Popen([str(one) for one in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **(env or {})}) as client:
            try:
                wait_until(lambda: client.poll() is not None or
                           self.http.send("GET", "/document/v1/feed/item/docid/1000")[0] == 200, "documents are fed")
                self.cluster.kill(node)
                if node.startswith("gateway"):
                    self.cluster.restart(node)
                out, err = client.communicate(timeout=240)
            finally:
                client.kill()
        if not node.startswith("gateway"):
            self.cluster.restart(node)
        self.assertEqual(client.returncode, 0, out[-2000:] + err[-2000:])
        self.cluster.wait_healthy()
        found = self.cluster.documents("--type", "item", "--selection", "id.namespace == 'feed'")
        self.assertEqual(len(found), FEED, out[-2000:] + err[-2000:])
        self.assertEqual(sum(one["sold"] for one in found.values()), FEED * (FEED - 1) // 2)
        return out


class CurlTest(Clients):
    def curl(self, *arguments, status=200):
        done = self.run_client("curl", "-sS", "-w", "\n%{http_code}", *arguments)
        body, code = done.stdout.rsplit("\n", 1)
        self.assertEqual(int(code), status, done.stdout)
        return json.loads(body)

    def test_documents(self):
        path = self.url + ROOT + "1"
        self.curl("-X", "POST", "-H", "Content-Type: application/json", "-d", '{"fields":{"sold":1}}', path)
        self.curl("-X", "PUT", "-d", '{"fields":{"sold":{"increment":1}}}', path)
        self.assertEqual(self.curl(path)["fields"], {"sold": 2})
        self.curl("-X", "PUT", "-d", '{"fields":{"sold":{"assign":9}}}', path + "?condition=item.sold%3D%3D1", status=412)
        self.curl("-X", "DELETE", path)
        self.curl(path, status=404)
        long = self.cluster.file("long.json", json.dumps({"fields": {"title": "y" * (3 << 20)}}))
        self.curl("-X", "POST", "-T", str(long), path)  # Asks with Expect: 100-continue.
        self.curl("-X", "POST", "-H", "Transfer-Encoding: chunked", "-T", str(long), path)
        self.assertEqual(len(self.curl(path)["fields"]["title"]), 3 << 20)
        self.curl("--compressed", path)

    def test_visits(self):
        for i in range(20):
            self.must(200, "POST", f"/document/v1/curl/item/docid/{i}", {"fields": {"sold": i}})
        found = self.curl(f"{self.url}/document/v1/curl/item/docid/?wantedDocumentCount=1000&selection=item.sold+<+5")
        self.assertEqual(found["documentCount"], 5)
        self.assertNotIn("continuation", found)
        self.curl("-X", "DELETE", f"{self.url}/document/v1/curl/item/docid/?cluster=fjord&selection=true")
        self.assertEqual(self.curl(f"{self.url}/document/v1/curl/item/docid/")["documentCount"], 0)

    def feed(self, node):
        config = "".join(f'next\nurl="{self.url}/document/v1/feed/item/docid/{i}"\nrequest=POST\nretry=20\nretry-connrefused\nretry-all-errors\n'
                         f'output="/dev/null"\nfail-early\ndata="{{\\"fields\\":{{\\"sold\\":{i}}}}}"\n' for i in range(FEED))
        feed = self.cluster.file("curl.config", config.removeprefix("next\n"))
        self.feed_with_a_kill("curl", "-sS", "--config", feed, node=node)

    def test_a_feed_with_a_kill(self):
        self.feed("storage.1")

    def test_a_feed_with_the_gateway_killed(self):
        self.feed("gateway.0")


class PythonClients(Clients):
    @classmethod
    def setUpClass(cls):
        cls.programs = python_folder()
        super().setUpClass()


class VespaCliTest(PythonClients):
    def setUp(self):
        super().setUp()
        self.env = {"HOME": str(self.cluster.folder), "VESPA_CLI_HOME": str(self.cluster.folder / "vespa")}

    def vespa(self, *arguments, code=0):
        """Runs the command line, which ends with 0 also if an operation was refused."""
        return self.run_client(self.programs / "vespa", *arguments, "-t", self.url, code=code, env=self.env)

    def test_documents(self):
        self.vespa("status", "--wait", "10")
        put = self.cluster.file("put.json", '{"put":"id:cli:item::a b","fields":{"sold":1,"title":"ø"}}')
        self.vespa("document", "put", put)
        update = self.cluster.file("update.json", '{"update":"id:cli:item::a b","fields":{"sold":{"increment":2}}}')
        self.vespa("document", "update", update)
        got = json.loads(self.vespa("document", "get", "id:cli:item::a b").stdout)
        self.assertEqual(got["fields"], {"sold": 3, "title": "ø"})
        wrong = '{"put":"id:cli:item::a b","condition":"item.sold == 1","fields":{"sold":9}}'
        self.assertIn("412", self.vespa("document", "put", self.cluster.file("wrong.json", wrong)).stderr)
        self.assertEqual(json.loads(self.vespa("document", "get", "id:cli:item::a b").stdout)["fields"]["sold"], 3)
        absent = self.cluster.file("absent.json", '{"put":"id:cli:item::x","fields":{"absent":1}}')
        self.assertIn('has no field \\"absent\\"', self.vespa("document", "put", absent).stderr)
        self.vespa("document", "remove", "id:cli:item::a b")
        self.assertNotIn('"fields"', self.vespa("document", "get", "id:cli:item::a b").stdout)

    def test_visits(self):
        wanted = {f"id:visit:item::{i}": {"sold": i} for i in range(2500)}
        for i in range(2500):
            self.must(200, "POST", f"/document/v1/visit/item/docid/{i}", {"fields": {"sold": i}})
        mine = ("--selection", "id.namespace == 'visit'")
        for options in ((), ("--content-cluster", "fjord"), ("--chunk-count", "100"), ("--stream",)):
            lines = self.vespa("visit", *mine, "--json-lines", *options).stdout.splitlines()
            found = [json.loads(line) for line in lines if line]
            self.assertEqual({one["id"]: one["fields"] for one in found}, wanted, options)
            self.assertEqual(len(found), len(wanted), options)
        feed = self.vespa("visit", *mine, "--make-feed", "--field-set", "[id]").stdout
        self.assertEqual(len(json.loads(feed)), len(wanted))
        some = self.vespa("visit", "--json-lines", "--selection", "id.namespace=='visit' and item.sold % 100 == 7").stdout
        self.assertEqual(len(some.splitlines()), 25)

    def test_a_feed_with_a_kill(self):
        lines = "".join(json.dumps({"put": f"id:feed:item::{i}", "fields": {"sold": i, "title": "x" * 600}}) + "\n"
                        for i in range(FEED))
        out = self.feed_with_a_kill(self.programs / "vespa", "feed", self.cluster.file("feed.jsonl", lines), "-t", self.url,
                                    env=self.env)
        summary = json.loads(out)
        self.assertEqual(summary["feeder.ok.count"], FEED)


class PyvespaTest(PythonClients):
    def calls(self, *arguments):
        return (self.programs / "python", "-B", CLIENTS / "pyvespa_calls.py", self.url, *arguments)

    def test_synchronous_calls(self):
        self.run_client(*self.calls("calls"))

    def test_asynchronous_calls(self):
        self.run_client(*self.calls("async"))

    def test_a_feed_with_a_kill(self):
        self.feed_with_a_kill(*self.calls("feed", str(FEED)))

    def test_an_asynchronous_feed_with_a_kill(self):
        self.feed_with_a_kill(*self.calls("feed-async", str(FEED)))


class JavaClientTest(Clients):
    @classmethod
    def setUpClass(cls):
        cls.class_path = java_class_path()
        super().setUpClass()

    def java(self, *arguments):
        return (shutil.which("java"), "-cp", self.class_path, CLIENTS / "Feed.java", self.url, *arguments)

    def test_calls(self):
        self.run_client(*self.java("calls"))

    def test_a_feed_with_a_kill(self):
        self.feed_with_a_kill(*self.java("feed", str(FEED)))

    def test_a_feed_with_the_gateway_killed(self):
        self.feed_with_a_kill(*self.java("feed", str(FEED)), node="gateway.0")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
