"""A real Prometheus scrapes a cluster: all processes answer it, every metric of the boards is there after some work, every query
of boards and alert rules can be computed, and a process that is killed is noticed. Needs Debian's package prometheus."""

import contextlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

import yaml

import harness
import prometheus_tools
from harness import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "monitoring"))

import boards  # noqa: E402
import queries  # noqa: E402

SCHEMA = """document item {
  field number type int { header }
  field text type string { }
}
"""


class Prometheus:
    """A Prometheus of this test, with its files in a folder. Use it in a with statement."""

    def __init__(self, program, folder, cluster_yaml):
        self.folder = folder / "prometheus"
        self.folder.mkdir()
        self.port = harness.free_ports(1)[0]
        files = ROOT / "monitoring" / "prometheus"
        shutil.copy(files / "alerts.yml", self.folder)
        config = (files / "prometheus.yml").read_text()
        (self.folder / "prometheus.yml").write_text(re.sub(r"_interval: \d+s", "_interval: 1s", config))
        targets = subprocess.run([sys.executable, "-B", ROOT / "monitoring" / "targets.py", cluster_yaml], capture_output=True, text=True, check=True)
        (self.folder / "targets.json").write_text(targets.stdout)
        self.processes = {target["labels"]["process"] for target in json.loads(targets.stdout)}
        self.command = [program, f"--config.file={self.folder / 'prometheus.yml'}", f"--storage.tsdb.path={self.folder / 'data'}",
                        f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"]

    def __enter__(self):
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def ask(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def query(self, query):
        return self.ask("query", query=query)["result"]

    def is_ready(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=30):
            return True
        return False

    def up(self):
        """Returns the processes that have answered the last scrape."""
        return {one["metric"]["process"] for one in self.query('up{role!=""} == 1')}


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = prometheus_tools.find("prometheus")
        if program is None:
            raise unittest.SkipTest(prometheus_tools.MISSING)
        cls.cluster = harness.Cluster(storage=3, distributors=2, gateways=1)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.prometheus = cls.enterClassContext(Prometheus(program, cls.cluster.folder, cls.cluster.directory / "cluster.yaml"))
        wait_until(cls.prometheus.is_ready, "Prometheus answers")
        wait_until(lambda: cls.prometheus.up() == cls.prometheus.processes, "all processes answer Prometheus")

    def work(self):
        cluster = self.cluster
        cluster.deploy(SCHEMA)
        lines = [json.dumps({"put": f"id:m:item::{i}", "fields": {"number": i, "text": "x" * 100}}) for i in range(2000)]
        cluster.must("feed", cluster.file("feed.jsonl", "\n".join(lines) + "\n"))
        cluster.must("get", "id:m:item::3")
        cluster.fjord("put", "id:m:item::8", "-", "--condition", "item.number == 1", stdin="{}")
        self.assertEqual(len(cluster.documents("--type", "item")), 2000)
        cluster.must("job", "run", "citycount", "--type", "item", "--param", "field=number", "--shuffle", "store", "--wait")
        gateway = next(one["http"] for one in cluster.local("status", "-o", "json").json() if one["node"] == "gateway.0")
        document = f"http://{gateway}/document/v1/m/item/docid/3"
        with urllib.request.urlopen(document, timeout=30) as answer:
            self.assertEqual(json.loads(answer.read())["fields"]["number"], 3)
        false = urllib.request.Request(f"{document}?condition=item.number==1", b'{"fields":{}}', method="PUT")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(false, timeout=30)
        self.assertEqual(refused.exception.code, 412)
        with socket.create_connection(tuple(gateway.split(":")), timeout=30) as malformed:
            malformed.sendall(b"GET / HTTP/1.1\r\n\r\n")
            self.assertIn(b" 400 ", malformed.recv(1000))

    def test_boards_and_alerts(self):
        described, known, prometheus = boards.description(), queries.series(), self.prometheus
        self.work()
        panels = list(boards.panels_of(described))
        lines = [(place, query, legend) for place, panel in panels for query, legend in boards.queries_of(panel)]
        wanted = {name for _, query, _ in lines for name, _ in queries.selectors(query) if name != "up"}
        wanted = {name for name in wanted if known[name][0] not in described["appears_only"]}

        def missing():
            there = {one["metric"]["__name__"] for one in prometheus.query('count by (__name__) ({role!=""})')}
            return sorted(wanted - there)
        try:
            wait_until(lambda: not missing(), "all metrics of the boards are there", 20)
        except AssertionError as error:
            raise AssertionError(f"{error}; there are not: {missing()}") from None
        for place, query, legend in lines:
            with self.subTest(panel=place):
                found = prometheus.query(query.replace("$process", ".*").replace("$__rate_interval", "1m"))
                for one in found:
                    self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", legend)), set(one["metric"]), query)
        marks = {mark["title"]: mark["expr"] for mark in described["annotations"]}
        for query in marks.values():
            prometheus.query(query)
        self.check_rules()
        # The end of a process: the alert waits for its minute.
        self.cluster.kill("storage.1")

        def alerts():
            return {(one["labels"]["alertname"], one["labels"].get("process")) for one in prometheus.ask("alerts")["alerts"]}
        wait_until(lambda: ("FjordProcessDown", "storage.1") in alerts(), "the alert is pending")
        wait_until(lambda: prometheus.query(marks["New cluster state"]), "the boards mark the new cluster state")
        self.cluster.restart("storage.1")
        self.cluster.wait_healthy()
        wait_until(lambda: not {one for one in alerts() if one[0] == "FjordProcessDown"}, "the alert has ended")

    def check_rules(self):
        """Every rule can be computed, and none has fired."""
        def computed():
            rules = [rule for group in self.prometheus.ask("rules")["groups"] for rule in group["rules"]]
            return rules if all(rule["health"] != "unknown" for rule in rules) else None
        rules = wait_until(computed, "all rules are computed")
        declared = yaml.safe_load((ROOT / "monitoring" / "prometheus" / "alerts.yml").read_text())["groups"]
        self.assertEqual(len(rules), sum(len(group["rules"]) for group in declared))
        self.assertEqual([], [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"])
        self.assertEqual([], [rule["name"] for rule in rules if rule["state"] == "firing"])


if __name__ == "__main__":
    # Without Prometheus nothing of this file can be tested.
    if prometheus_tools.find("prometheus") is None:
        print(f"SKIPPED: {prometheus_tools.MISSING}", file=sys.stderr)
        sys.exit(harness.SKIPPED)
    harness.main()
