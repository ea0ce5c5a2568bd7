"""What tests of the document API over HTTP share: a cluster with a gateway, and a connection."""

import http.client
import json
import time
import unittest

from harness import Cluster, free_ports, wait_until

SCHEMA = """document item {
  field title type string { }
  field sold type long { header }
  field tags type array<string> { }
}"""
ROOT = "/document/v1/shop/item/docid/"


class Http:
    """One keep-alive connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, method, target, body=None, headers=None):
        if isinstance(body, dict):
            body = json.dumps(body)
        self.connection.request(method, target, body=body, headers=headers or {})
        answer = self.connection.getresponse()
        text = answer.read()
        self.headers = answer.headers
        return answer.status, json.loads(text) if text else None


class HttpCluster(unittest.TestCase):
    """A cluster with one gateway at `port` for the tests of a class, and a connection for each test."""

    storage_nodes = 2
    schema = SCHEMA
    confirm_removals = False  # As for clients of other systems.

    @classmethod
    def setUpClass(cls):
        cls.port = free_ports(1)[0]
        cls.cluster = Cluster(storage=cls.storage_nodes, settings=f"gateways:\n  - address: 127.0.0.1:{cls.port}\n"
                              f"    confirm_removals: {str(cls.confirm_removals).lower()}\n")
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.cluster.deploy(cls.schema)

    def setUp(self):
        self.http = self.connect()

    def connect(self):
        connection = Http(self.port)
        self.addCleanup(connection.connection.close)
        return connection

    def must(self, expected, method, target, body=None, headers=None):
        status, answer = self.http.send(method, target, body, headers)
        self.assertEqual(status, expected, f"{method} {target} {str(body)[:300]}: {answer}")
        if status != 204:
            self.assertEqual(answer.get("pathId", target.split("?")[0]), target.split("?")[0])
        return answer

    def documents(self, target):
        """Returns the documents of a whole visit."""
        found, token = [], ""
        target += ("&" if "?" in target else "?") + "wantedDocumentCount=1000"
        while token is not None:
            answer = self.must(200, "GET", target + (f"&continuation={token}" if token else ""))
            self.assertEqual(answer["documentCount"], len(answer["documents"]))
            found += answer["documents"]
            token = answer.get("continuation")
        return found

    def newest_version(self, ids):
        """Returns the newest version of documents, when later writes get later ones. After a change of the cluster, versions
        begin at a time that may be ahead of the clock, and until then many documents have the same."""
        lines = self.cluster.must("get", "--versions", *ids).json_lines()
        newest = max(int(one["version"]) for one in lines)
        wait_until(lambda: time.time_ns() // 1000 > newest, "the clock has passed the newest version")
        return newest
