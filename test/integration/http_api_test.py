"""Fjord's own HTTP paths on real processes: the cluster, its buckets and settings, and document types."""

import http.client
import json
import unittest

import harness
from harness import Cluster, free_ports, wait_until

SCHEMA = "document item { field title type string { } field sold type long { header } }"


class HttpApiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port, other = free_ports(2)
        cls.cluster = Cluster(storage=2, settings=f"gateways:\n  - address: 127.0.0.1:{cls.port}\n  - address: 127.0.0.1:{other}\n")
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()

    def setUp(self):
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.addCleanup(self.connection.close)

    def send(self, method, target, body=None):
        self.connection.request(method, target, body=None if body is None else json.dumps(body))
        answer = self.connection.getresponse()
        self.headers = answer.headers
        return answer.status, answer.read()

    def must(self, expected, method, target, body=None):
        status, text = self.send(method, target, body)
        self.assertEqual(status, expected, f"{method} {target}: {text}")
        return json.loads(text)

    def test_status_nodes_and_state(self):
        self.cluster.wait_healthy()
        status = self.must(200, "GET", "/cluster/v1/status")
        self.assertEqual((status["health"], status["reasons"]), ("healthy", []))
        self.assertEqual(status["state"], self.cluster.status()["state"])
        nodes = {node["name"]: node for node in self.must(200, "GET", "/cluster/v1/nodes")["nodes"]}
        self.assertEqual(set(nodes), {"distributor.0", "storage.0", "storage.1", "fleetcontroller.0", "gateway.0", "gateway.1"})
        one = self.must(200, "GET", "/cluster/v1/nodes/storage.1")
        self.assertEqual((one["role"], one["state"], one["address"]), ("storage", "up", nodes["storage.1"]["address"]))
        missing = self.must(404, "GET", "/cluster/v1/nodes/storage.7")
        self.assertEqual((missing["code"], missing["pathId"]), ("NOT_FOUND", "/cluster/v1/nodes/storage.7"))
        self.assertIn("storage:2", self.must(200, "GET", "/cluster/v1/state")["state"])
        entries = self.must(200, "GET", "/cluster/v1/state/history?max=1")["entries"]
        self.assertEqual(entries[-1], self.must(200, "GET", "/cluster/v1/state/history?max=0")["entries"][-1])

    def test_head_is_there_wherever_get_is(self):
        """RFC 9110, 9.1: GET and HEAD are there in general. The header is that of GET, without a body."""
        self.cluster.deploy(SCHEMA)
        self.must(200, "POST", "/document/v1/a/item/docid/1", {"fields": {"title": "x"}})
        for path in ("/document/v1/a/item/docid/1", "/document/v1/a/item/docid/?selection=true", "/cluster/v1/status", "/openapi.yaml",
                     "/console/", "/", "/jobs/v1", "/metrics", "/document/v1/a/item/docid/absent"):
            with self.subTest(path=path):
                got, body = self.send("GET", path)
                kind = self.headers["Content-Type"]
                self.assertEqual(self.send("HEAD", path), (got, b""))
                self.assertEqual(self.headers["Content-Type"], kind)
                self.assertTrue(body)
        self.assertEqual(self.send("HEAD", "/changes/v1")[0], 405)  # It has no end.
        links = self.must(200, "GET", "/")["links"]
        for name, path in links.items():
            self.assertIn(self.send("GET", path)[0], (200, 404) if name == "console" else (200,), path)

    def test_processes_that_are_not_in_the_cluster_state(self):
        def seen(name):
            return self.must(200, "GET", f"/cluster/v1/nodes/{name}")
        up = {name: "up" for name in ("distributor.0", "storage.0", "storage.1", "fleetcontroller.0", "gateway.0", "gateway.1")}
        # The first look may have come before the other processes ran.
        wait_until(lambda: {node["name"]: node["state"] for node in self.must(200, "GET", "/cluster/v1/status")["nodes"]} == up,
                   "all processes are up")
        wait_until(lambda: seen("fleetcontroller.0")["reason"] == "leads", "it is seen that the fleet controller leads")
        gateway, controller = seen("gateway.0"), seen("fleetcontroller.0")
        self.assertEqual((gateway["role"], gateway["state"], gateway["address"]), ("gateway", "up", f"127.0.0.1:{self.port}"))
        self.assertEqual((controller["role"], controller["state"], controller["reason"]), ("fleetcontroller", "up", "leads"))
        self.assertTrue(controller["address"])
        self.cluster.kill("gateway.1")
        wait_until(lambda: seen("gateway.1")["state"] == "down", "gateway.1 is down")
        self.assertIn("cannot be read", seen("gateway.1")["reason"])
        self.assertIsNone(seen("gateway.1")["answered_seconds_ago"])
        self.cluster.restart("gateway.1")
        wait_until(lambda: seen("gateway.1")["state"] == "up", "gateway.1 is up again")

    def test_schemas_and_the_replicas_of_a_document(self):
        deployed = self.must(200, "POST", "/schemas/v1", {"schemas": [SCHEMA]})
        self.assertGreater(deployed["schema_version"], 0)
        fields = self.must(200, "GET", "/schemas/v1/item")["fields"]
        self.assertEqual(fields, [{"name": "title", "type": "string", "header": False},
                                  {"name": "sold", "type": "long", "header": True}])
        self.assertIn(SCHEMA, self.must(200, "GET", "/schemas/v1")["schemas"])
        self.assertEqual(self.must(404, "GET", "/schemas/v1/absent")["code"], "NOT_FOUND")
        self.must(400, "POST", "/schemas/v1", {"schemas": ["document {"]})
        self.must(200, "POST", "/document/v1/shop/item/docid/1", {"fields": {"title": "x"}})
        bucket = self.must(200, "GET", "/cluster/v1/replicas?id=id:shop:item::1")["buckets"][0]
        self.assertEqual({replica["node"] for replica in bucket["replicas"]}, {"storage.0", "storage.1"})
        self.assertEqual(len({replica["document"]["version_unix_us"] for replica in bucket["replicas"]}), 1)
        self.assertEqual(self.must(200, "GET", f"/cluster/v1/buckets/{bucket['bucket']}")["buckets"][0]["bucket"],
                         bucket["bucket"])
        self.assertEqual(self.must(400, "GET", "/cluster/v1/replicas?id=x")["code"], "INVALID_ID")
        self.must(400, "GET", "/cluster/v1/replicas")
        self.assertEqual(self.must(200, "GET", "/cluster/v1/buckets")["more"], False)

    def test_settings(self):
        name = "storage.visitors_max"
        before = self.must(200, "GET", f"/cluster/v1/settings/{name}")
        path = "/cluster/v1/settings"
        self.must(200, "POST", path, {"values": {name: "63"}, "dry_run": True})
        self.assertEqual(self.must(200, "GET", f"{path}/{name}")["live_value"], before["live_value"])
        made = self.must(200, "POST", path, {"values": {name: "63"}, "reason": "a test"})
        self.assertEqual(self.must(200, "GET", f"{path}/{name}")["live_value"], "63")
        self.assertEqual(self.must(412, "POST", path, {"values": {name: "62"}, "if_version": made["version"] + 1})["code"],
                         "TEST_AND_SET_FAILED")
        refused = self.must(400, "POST", path, {"values": {name: "-1"}})
        self.assertEqual(refused["setting"], name)
        self.assertTrue(refused["limit"])
        self.must(400, "POST", path, {"values": {}})
        self.must(400, "POST", path, {"value": {name: "1"}})
        self.must(404, "GET", f"{path}/absent")
        self.must(200, "POST", f"{path}/revert", {})
        self.assertEqual(self.must(200, "GET", f"{path}/{name}")["live_value"], before["live_value"])
        versions = self.must(200, "GET", f"{path}/history")["versions"]
        self.assertIn({name: "63"}, [version["values"] for version in versions])

    def test_the_gateway_describes_itself(self):
        status, text = self.send("GET", "/openapi.yaml")
        self.assertEqual((status, self.headers["Content-Type"]), (200, "application/yaml"))
        self.assertIn(b"/cluster/v1/state/history:", text)
        self.must(404, "GET", "/cluster/v1/absent")
        self.must(405, "POST", "/cluster/v1/status", {})
        self.assertEqual(self.headers["Allow"], "GET,HEAD")
        self.must(400, "GET", "/cluster/v1/status?verbose=1")


if __name__ == "__main__":
    harness.main()
