"""Administration over HTTP: changes of nodes with plan and progress, advice of the tuner, the balancer, searches, and which
hosts may ask."""

import http.client
import json
import unittest
import urllib.parse

from harness import wait_until
from http_documents import HttpCluster
from http_jobs_test import Events
from schemas import ADS

NODES = "/cluster/v1/nodes"
TUNER = "/cluster/v1/tuner"
BALANCER = "/cluster/v1/balancer"


class AdminTest(HttpCluster):
    storage_nodes = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lines = "".join(json.dumps({"put": f"id:shop:item::{i}", "fields": {"sold": i}}) + "\n" for i in range(200))
        cls.cluster.must("import", cls.cluster.file("items.jsonl", lines))
        cls.cluster.wait_healthy()

    def state_of(self, node):
        return self.must(200, "GET", f"{NODES}/{node}")["state"]

    def follow(self, action, plan):
        """Returns the events of a change up to its end."""
        query = urllib.parse.urlencode({"action": action, "nodes": ",".join(plan["nodes"]), "state_version": plan["state_version"]})
        events = Events(self.port, f"{NODES}/progress?{query}")
        self.addCleanup(events.connection.close)
        self.assertEqual(events.answer.headers["Content-Type"], "text/event-stream; charset=UTF-8")
        seen = []
        while (event := events.next()) is not None:
            if "data" in event:
                seen.append((event["event"], json.loads(event["data"])))
        return seen

    def test_a_node_is_retired_and_comes_back(self):
        change = {"action": "retire", "nodes": ["storage.2"], "reason": "a test"}
        plan = self.must(200, "POST", NODES, change)
        self.assertEqual((plan["done"], plan["refusals"], plan["nodes"]), (False, [], ["storage.2"]))
        self.assertGreater(plan["buckets_moved"], 0)
        self.assertEqual(self.state_of("storage.2"), "up")
        done = self.must(200, "POST", NODES, {**change, "dry_run": False})
        self.assertTrue(done["done"])
        events = self.follow("retire", done)
        self.assertEqual(events[-1], ("end", {"known": True, "in_force": True, "waits_for": [], "buckets_left": 0, "fraction_done": 1.0,
                                              "seconds_left": None}))
        self.assertTrue(all(name == "progress" for name, _ in events[:-1]))
        self.assertEqual(self.state_of("storage.2"), "retired")
        self.assertEqual(self.must(200, "GET", f"{NODES}/storage.2")["buckets"], 0)
        self.assertIn("a test", [entry["why"] for entry in self.must(200, "GET", "/cluster/v1/state/history")["entries"]])
        back = self.must(200, "POST", NODES, {"action": "up", "nodes": ["storage.2"], "dry_run": False})
        self.assertEqual(self.follow("up", back)[-1][0], "end")
        self.assertEqual(self.state_of("storage.2"), "up")
        self.cluster.wait_healthy()

    def test_unsafe_and_wrong_changes(self):
        down = {"action": "down", "nodes": ["storage.0", "storage.1", "storage.2"], "dry_run": False}
        refused = self.must(200, "POST", NODES, down)
        self.assertFalse(refused["done"])
        self.assertTrue(refused["refusals"])
        self.assertEqual(self.state_of("storage.0"), "up")
        check = self.must(200, "POST", NODES, {"action": "stop_check", "nodes": ["storage.1"]})
        self.assertEqual(check["nodes"], ["storage.1"])
        self.assertIn('"action"', self.must(400, "POST", NODES, {"action": "explode", "nodes": ["storage.1"]})["message"])
        self.assertIn('"action"', self.must(400, "POST", NODES, {"nodes": ["storage.1"]})["message"])
        self.assertIn('"dry_run"', self.must(400, "POST", NODES, {**down, "dry_run": "no"})["message"])
        self.assertIn("storage.9", self.must(404, "POST", NODES, {"action": "retire", "nodes": ["storage.9"]})["message"])
        self.must(400, "GET", f"{NODES}/progress")
        self.must(400, "GET", f"{NODES}/progress?action=explode")
        self.must(400, "GET", f"{NODES}/progress?action=up&state_version=-1")

    def test_the_tuner(self):
        advice = self.must(200, "GET", f"{TUNER}/advice?sample=100ms")
        self.assertTrue(all(one["name"] and one["origin"] for one in advice["inputs"]))
        self.assertIn("measured", " ".join(one["origin"] for one in advice["inputs"]))
        for one in advice["advice"]:
            self.assertIn(one["place"], ("live", "file", "job"))
            self.assertTrue(one["formula"] and one["new_text"])
        self.assertTrue(advice["figures"])
        self.assertGreater(advice["predicted_before"]["operations_per_s"], 0)
        name = "storage.visitors_max"
        unknown = self.must(404, "GET", f"{TUNER}/advice?sample=1ms&only={name},absent")
        self.assertEqual(unknown["setting"], "absent")
        before = self.must(200, "GET", f"/cluster/v1/settings/{name}")["live_value"]
        applied = self.must(200, "POST", f"{TUNER}/apply", {"values": {name: "61"}, "reason": "a test"})
        self.assertEqual(applied["values"], [{"name": name, "before": before, "after": "61"}])
        self.assertEqual(self.must(200, "GET", f"/cluster/v1/settings/{name}")["live_value"], "61")
        self.assertEqual([one["id"] for one in self.must(200, "GET", f"{TUNER}/history")["changes"]][-1], applied["id"])
        reverted = self.must(200, "POST", f"{TUNER}/revert", {"id": applied["id"]})
        self.assertEqual(reverted["values"], [{"name": name, "before": "61", "after": before}])
        self.assertEqual(self.must(200, "GET", f"/cluster/v1/settings/{name}")["live_value"], before)
        self.assertEqual(self.must(404, "POST", f"{TUNER}/revert", {"id": "tune-00000000"})["code"], "NOT_FOUND")
        self.assertEqual(self.must(400, "POST", f"{TUNER}/apply", {"values": {name: "-1"}})["setting"], name)
        self.must(400, "POST", f"{TUNER}/apply", {"values": {}})
        self.must(400, "POST", f"{TUNER}/revert", {})

    def test_the_balancer(self):
        settings = {"balancer.mode": "advise", "balancer.load": "operations", "balancer.round": "1s", "balancer.bytes_part": "1"}
        self.must(200, "POST", "/cluster/v1/settings", {"values": settings})
        # A bucket that a node has not yet counted since its replica was made or moved has no bytes.
        one = wait_until(lambda: next((one for one in self.must(200, "GET", f"{BALANCER}/slices?max=0")["slices"]
                                       if one["bytes"] > 0 and len(one["nodes"]) == 2), None), "loads are known")
        status = self.must(200, "GET", f"{BALANCER}/status")
        self.assertEqual((status["mode"], status["unit"]), ("advise", "operations_per_second"))
        self.assertEqual({node["node"] for node in status["nodes"]}, {"storage.0", "storage.1", "storage.2"})
        self.assertEqual(len(self.must(200, "GET", f"{BALANCER}/slices?max=1")["slices"]), 1)
        other = next(node["node"] for node in status["nodes"] if node["node"] not in one["nodes"])
        move = {"bucket": one["bucket"], "from": one["nodes"][0], "to": other, "read_part": 0, "bytes": one["bytes"], "load": 0.5, "reason": ""}
        version = self.must(200, "GET", "/cluster/v1/status")["state_version"]
        self.assertEqual(self.must(412, "POST", f"{BALANCER}/apply", {"state_version": version + 7, "moves": [move]})["code"],
                         "TEST_AND_SET_FAILED")
        applied = self.must(200, "POST", f"{BALANCER}/apply", {"state_version": version, "moves": [move], "reason": "a test"})
        self.assertEqual(applied, {"done": True, "refusals": []})
        step = wait_until(lambda: self.must(200, "GET", f"{BALANCER}/history")["steps"], "the step is made")[-1]
        self.assertEqual([(done["bucket"], done["from"], done["to"]) for done in step["moves"]],
                         [(move["bucket"], move["from"], move["to"])])
        self.assertEqual(step["why"], "a test")
        wait_until(lambda: self.must(200, "GET", f"{BALANCER}/status")["rows"] == step["rows_added"], "the row is in force")
        self.cluster.wait_healthy()
        self.must(200, "POST", f"{BALANCER}/revert", {"step": step["step"]})
        self.assertEqual(self.must(200, "GET", f"{BALANCER}/history")["steps"][-1], step, "it is a dry run if nothing is said")
        self.assertGreater(self.must(200, "GET", f"{BALANCER}/status")["rows"], 0)
        self.must(200, "POST", f"{BALANCER}/revert", {"step": step["step"], "dry_run": False, "reason": "back"})
        wait_until(lambda: self.must(200, "GET", f"{BALANCER}/status")["rows"] == 0, "the row is gone")
        self.assertEqual(self.must(404, "POST", f"{BALANCER}/revert", {"step": 999})["code"], "NOT_FOUND")
        for change in ({"bucket": "31"}, {"bucket": "0xg"}, {"read_part": 2}, {"from": "x"}, {"absent": 1}):
            self.must(400, "POST", f"{BALANCER}/apply", {"state_version": version, "moves": [{**move, **change}]})
        self.must(400, "POST", f"{BALANCER}/apply", {"state_version": version, "moves": []})
        self.must(400, "GET", f"{BALANCER}/plan?algorithm=absent")
        self.assertIn("moves", self.must(200, "GET", f"{BALANCER}/plan"))
        self.must(200, "POST", "/cluster/v1/settings", {"values": {name: "" for name in settings}})

    def test_searches(self):
        refused = self.must(404, "POST", "/search/v1", {"query": "red boots"})
        self.assertIn("index: keyword", refused["message"])
        self.must(200, "POST", "/schemas/v1", {"schemas": [ADS]})
        for group, bid in ((1, 100), (2, 200)):
            for path, fields in ((f"ad_group/number/{group}/1", {"name": "g", "advertiser": group}),
                                 (f"ad/number/{group}/1", {"title": f"Boots {group}"}),
                                 (f"keyword/number/{group}/1", {"text": "red boots", "match": "phrase", "bid_micros": bid * 1000})):
                self.must(200, "POST", f"/document/v1/ads/{path}", {"fields": fields})
        asked = {"query": "new red boots", "session": True, "context": {"device": "phone"}, "limit": 5, "timeout_seconds": 20.5}
        found = wait_until(lambda: (lambda answer: answer["complete"] and len(answer["places"]) == 2 and answer)(
            self.must(200, "POST", "/search/v1", asked)), "the ads are found")
        self.assertEqual([(one["advertiser"], one["ad"], one["title"]) for one in found["places"]],
                         [(2, "id:ads:ad:n=2:1", "Boots 2"), (1, "id:ads:ad:n=1:1", "Boots 1")])
        self.assertEqual((found["slices"], found["missing"]), (found["slices_searched"], None))
        self.assertNotIn("nodes", found)
        self.assertEqual(self.must(200, "POST", "/search/v1", {"query": "green hats"})["places"], [])
        explained = self.must(200, "POST", "/search/v1", {**asked, "explain": True})
        self.assertTrue({one["node"] for one in explained["nodes"]} <= {"storage.0", "storage.1", "storage.2"})
        self.assertTrue(explained["choice"] and explained["nodes"])
        for change, word in (({"limit": 0}, '"limit"'), ({"limit": 101}, '"limit"'), ({"timeout_seconds": -1}, '"timeout_seconds"'),
                             ({"timeout_seconds": 4000}, '"timeout_seconds"'), ({"context": {"planet": "x"}}, "planet"),
                             ({"context": "x"}, '"context"'), ({"words": "x"}, '"words"')):
            self.assertIn(word, self.must(400, "POST", "/search/v1", {**asked, **change})["message"], change)
        self.assertIn('"query"', self.must(400, "POST", "/search/v1", {})["message"])

    def test_pages_of_others_are_refused(self):
        """A name that leads to this gateway is not enough, and a page of somebody else may change nothing."""
        path = "/document/v1/shop/item/docid/origin"
        host = f"127.0.0.1:{self.port}"
        for headers, status in (({"Host": "evil.example.org"}, 421), ({"Host": f"evil.example.org:{self.port}"}, 421),
                                ({"Host": host, "Origin": "http://evil.example.org"}, 403), ({"Host": host, "Origin": "null"}, 403),
                                ({"Host": host, "Origin": f"http://{host}"}, 200), ({"Host": f"localhost:{self.port}"}, 200)):
            answer = self.must(status, "POST", path, {"fields": {"sold": 1}}, headers)
            self.assertTrue(status == 200 or answer["message"])
            self.assertFalse([name for name in self.http.headers if name.lower().startswith("access-control-")])
        self.must(200, "GET", path, headers={"Host": host, "Origin": "http://evil.example.org"})
        self.assertFalse([name for name in self.http.headers if name.lower().startswith("access-control-")])


if __name__ == "__main__":
    unittest.main()
