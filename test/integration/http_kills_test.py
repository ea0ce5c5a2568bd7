"""Real clients and visits while processes of each role are killed: nothing is lost, and a write with a condition counts once."""

import contextlib
import http.client
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import unittest
import urllib.parse

from harness import Cluster, free_ports, wait_until
from http_clients import CLIENTS, java_class_path, python_folder
from http_documents import Http, SCHEMA

FEED = 10_000
PATH = "/document/v1/feed/item/docid/"


class Balancer:
    """Passes each connection to the first gateway that takes it, as a load balancer does. Use it in a with statement."""

    def __init__(self, ports):
        self.gateways = ports
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, contextlib.ExitStack() as stack:
            for port in self.gateways:
                with contextlib.suppress(ConnectionRefusedError):
                    gateway = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                    back = threading.Thread(target=self.copy, args=(client, gateway), daemon=True)
                    back.start()
                    self.copy(gateway, client)
                    return back.join()
            return None

    @staticmethod
    def copy(source, target):
        """Copies until one of both ends, which then ends the other, too."""
        with contextlib.suppress(OSError):
            while part := source.recv(1 << 16):
                target.sendall(part)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class KillsTest(unittest.TestCase):
    """Each test has FEED documents in the namespace `feed`, of which number N has sold N times; two gateways and three storage nodes."""

    @classmethod
    def setUpClass(cls):
        cls.ports = free_ports(2)
        listed = "".join(f"  - address: 127.0.0.1:{port}\n" for port in cls.ports)
        cls.cluster = Cluster(storage=3, settings=f"gateways:\n{listed}")
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.cluster.deploy(SCHEMA)
        cls.url = f"http://127.0.0.1:{cls.ports[0]}"

    def setUp(self):
        self.feed_natively("x" * 300)
        self.other = Http(self.ports[1])  # Of the gateway that is not killed.
        self.addCleanup(self.other.connection.close)

    def feed_natively(self, title):
        lines = (json.dumps({"put": f"id:feed:item::{i}", "fields": {"sold": i, "title": title}}) + "\n" for i in range(FEED))
        self.cluster.must("feed", self.cluster.file("native.jsonl", "".join(lines)))

    def kill_a_storage_node_and_the_gateway(self):
        """The gateway comes back at once, and is killed once more."""
        self.cluster.kill("storage.1")
        for _ in range(2):
            self.cluster.kill("gateway.0")
            self.cluster.restart("gateway.0")

    def kill_the_others(self):
        """The distributor, of which there is one, and the fleet controller come back at once."""
        for node in ("distributor.0", "fleetcontroller.0", "distributor.0"):
            self.cluster.kill(node)
            self.cluster.restart(node)

    def restart_the_gateways(self):
        """One after the other, with SIGTERM."""
        for node in ("gateway.0", "gateway.1"):
            self.cluster.restart(node)

    def run_with_kills(self, has_begun, *command, kills=None):
        """Runs a client, and `kills` when it has begun. Returns what the client printed."""
        with subprocess.Popen([str(one) for one in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(self.cluster.folder)}) as client:
            try:
                wait_until(lambda: client.poll() is not None or has_begun(), "the client has begun")
                was_running = client.poll() is None
                (kills or self.kill_a_storage_node_and_the_gateway)()
                out, err = client.communicate(timeout=240)
            finally:
                client.kill()
        self.cluster.restart("storage.1")
        self.cluster.wait_healthy()
        self.assertEqual(client.returncode, 0, out[-2000:] + err[-2000:])
        self.assertTrue(was_running, "the client ended before anything was killed")
        return out, err

    def field(self, number, field):
        status, answer = self.other.send("GET", PATH + str(number))
        return answer["fields"].get(field) if status == 200 else None

    def sold_of(self, number):
        return self.field(number, "sold")

    def check_sold(self, expected, but=frozenset(), or_else=None):
        """Checks what each document has sold. Those in `but` may have another value instead."""
        found = self.cluster.documents("--type", "item", "--selection", "id.namespace == 'feed'")
        self.assertEqual(len(found), FEED)
        for id_, one in found.items():
            number = int(id_.rsplit(":", 1)[1])
            self.assertIn(one["sold"], {expected(number)} | ({or_else(number)} if id_ in but else set()), id_)

    def feed_file(self, operation_of):
        return self.cluster.file("feed.jsonl", "".join(json.dumps(operation_of(i)) + "\n" for i in range(FEED)))

    # --- vespa feed: it tries ten times without a pause, which is shorter than the start of a gateway.

    def vespa_feed(self, url, operation_of, has_begun, kills=None):
        """Returns the ids of the operations that it gave up on, and the command that it was."""
        command = (python_folder() / "vespa", "feed", self.feed_file(operation_of), "-t", url)
        _, err = self.run_with_kills(has_begun, *command, kills=kills)
        return set(re.findall(r"(id:feed:item::\d+).*giving up", err)), command

    def put_of(self, i):
        return {"put": f"id:feed:item::{i}", "fields": {"sold": i + 5, "title": "new"}}

    def raise_of(self, i):
        return {"update": f"id:feed:item::{i}", "condition": f"item.sold == {i}", "fields": {"sold": {"increment": 1}}}

    def test_vespa_feed_with_two_gateways(self):
        """Behind a load balancer nothing is given up. A repeated write with a condition is refused if the first attempt was applied, so
        that each counts once."""
        with Balancer(self.ports) as balancer:
            url = f"http://127.0.0.1:{balancer.port}"
            given_up, _ = self.vespa_feed(url, self.raise_of, lambda: self.sold_of(1000) == 1001)
            self.assertEqual(given_up, set())
            self.check_sold(lambda i: i + 1)
            given_up, _ = self.vespa_feed(url, self.put_of, lambda: self.field(1000, "title") == "new")
            self.assertEqual(given_up, set())
            self.check_sold(lambda i: i + 5)

    def test_vespa_feed_with_a_rolling_restart(self):
        """Of two gateways behind a load balancer that does not know of it."""
        with Balancer(self.ports) as balancer:
            given_up, _ = self.vespa_feed(f"http://127.0.0.1:{balancer.port}", self.raise_of, lambda: self.sold_of(1000) == 1001,
                                          kills=self.restart_the_gateways)
        self.assertEqual(given_up, set())
        self.check_sold(lambda i: i + 1)

    def test_vespa_feed_names_what_it_gave_up(self):
        """Of one gateway: what is not named was done, and what is fed again is not done twice."""
        for operation_of, begun, value in ((self.raise_of, ("sold", 1001), 1), (self.put_of, ("title", "new"), 5)):
            before = 0 if value == 1 else 1
            given_up, command = self.vespa_feed(self.url, operation_of, lambda begun=begun: self.field(1000, begun[0]) == begun[1])
            self.check_sold(lambda i, value=value: i + value, given_up, lambda i, before=before: i + before)
            again = subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=240, check=True,
                                   env={"PATH": "/usr/bin:/bin", "HOME": str(self.cluster.folder)})
            self.assertNotIn("giving up", again.stderr)
            self.check_sold(lambda i, value=value: i + value)

    # --- vespa-feed-client

    def java_feed(self, mode, has_begun, kills=None):
        command = (shutil.which("java"), "-cp", java_class_path(), CLIENTS / "Feed.java", self.url, mode, FEED)
        self.run_with_kills(has_begun, *command, kills=kills)

    def test_vespa_feed_client_puts(self):
        self.java_feed("feed", lambda: self.field(1000, "title") == "x" * 100)
        self.check_sold(lambda i: i)

    def test_vespa_feed_client_raises_once(self):
        self.java_feed("raise", lambda: self.sold_of(1000) == 1001)
        self.check_sold(lambda i: i + 1)

    def test_vespa_feed_client_with_distributor_and_controller_killed(self):
        self.java_feed("raise", lambda: self.sold_of(1000) == 1001, self.kill_the_others)
        self.check_sold(lambda i: i + 1)

    # --- pyvespa

    def pyvespa_feed(self, url, mode, kills=None):
        command = (python_folder() / "python", "-B", CLIENTS / "pyvespa_calls.py", url, mode, FEED)
        self.run_with_kills(lambda: self.field(1000, "title") == "x" * 100, *command, kills=kills)
        self.check_sold(lambda i: i)

    def test_pyvespa_with_its_gateway_killed(self):
        self.pyvespa_feed(self.url, "feed")

    def test_asynchronous_pyvespa_with_two_gateways(self):
        """Its three attempts are shorter than the start of a gateway on a machine that is busy."""
        with Balancer(self.ports) as balancer:
            self.pyvespa_feed(f"http://127.0.0.1:{balancer.port}", "feed-async")

    # --- visits

    def vespa_visit(self, url, kills, *options):
        """Visits all documents, and runs `kills` when the first one has come: all are longer than what a pipe keeps, so that the client
        waits for its reader. Returns the ids, and what the client said about errors."""
        command = (python_folder() / "vespa", "visit", "-t", url, "--json-lines", "--selection", "id.namespace == 'feed'", *options)
        errors = self.cluster.folder / "visit.err"
        with open(errors, "w", encoding="utf-8") as err, subprocess.Popen(
                [str(one) for one in command], stdout=subprocess.PIPE, stderr=err, text=True,
                env={"PATH": "/usr/bin:/bin", "HOME": str(self.cluster.folder)}) as client:
            try:
                first = client.stdout.readline()
                self.assertIsNone(client.poll(), "the client ended before anything was killed")
                kills()
                lines = [first, *client.stdout]
                self.assertEqual(client.wait(timeout=60), 0, errors.read_text())
            finally:
                client.kill()
        self.cluster.restart("storage.1")
        self.cluster.wait_healthy()
        return [json.loads(line)["id"] for line in lines if line.strip()], errors.read_text()

    def kill_all_but_the_gateways(self):
        self.cluster.kill("storage.1")
        self.kill_the_others()

    def test_vespa_visit_while_nodes_are_killed(self):
        ids, _ = self.vespa_visit(self.url, self.kill_all_but_the_gateways)
        self.assertEqual(sorted(set(ids)), sorted(f"id:feed:item::{i}" for i in range(FEED)))

    def test_a_stream_of_vespa_visit_goes_on_at_another_gateway(self):
        self.feed_natively("y" * 3000)  # More than a gateway and the kernel keep for a reader.
        with Balancer(self.ports) as balancer:
            ids, errors = self.vespa_visit(f"http://127.0.0.1:{balancer.port}", lambda: self.cluster.kill("gateway.0"), "--stream")
        self.cluster.restart("gateway.0")
        self.assertIn("warn", errors.lower(), "the stream was not cut")
        self.assertEqual(sorted(set(ids)), sorted(f"id:feed:item::{i}" for i in range(FEED)))

    def test_a_visit_goes_on_at_another_gateway(self):
        """Chunks: with the continuation, every document comes once, whichever gateway is asked, and whatever is killed between chunks."""
        ids, continuation, chunks = [], "", 0
        victims = iter(["gateway.0", "storage.1", "distributor.0", "fleetcontroller.0"])
        connection = Http(self.ports[0])
        while True:
            target = f"{PATH}?wantedDocumentCount=500&fieldSet=[id]" + (continuation and f"&continuation={urllib.parse.quote(continuation)}")
            status, answer = connection.send("GET", target)
            self.assertEqual(status, 200, answer)
            ids += [one["id"] for one in answer["documents"]]
            continuation, chunks = answer.get("continuation", ""), chunks + 1
            if not continuation:
                break
            if chunks in (3, 6, 8, 10):
                victim = next(victims)
                self.cluster.kill(victim)
                if victim in ("distributor.0", "fleetcontroller.0"):
                    self.cluster.restart(victim)
                connection.connection.close()
                connection = self.other
        self.assertEqual(list(victims), [], "the visit was over before all were killed")
        for node in ("gateway.0", "storage.1"):
            self.cluster.restart(node)
        self.cluster.wait_healthy()
        self.assertEqual(sorted(ids), sorted(f"id:feed:item::{i}" for i in range(FEED)))

    def read_stream(self, connection, token, kill_after):
        """Reads a stream until its end, and kills its gateway after some documents. Returns the ids before the last token, that token (None
        at the end of the visit), and the ids behind it."""
        target = PATH + "?stream=true&fieldSet=[document]" + (token and f"&continuation={urllib.parse.quote(token)}")
        connection.request("GET", target, headers={"Accept": "application/jsonl"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        counted, later = [], []
        try:
            while line := answer.readline():
                one = json.loads(line)
                if "put" in one:
                    later.append(one["put"])
                if "continuation" in one:
                    counted, later, token = counted + later, [], one["continuation"].get("token")
                    if kill_after and token and len(counted) > kill_after:
                        self.cluster.kill("gateway.0")
                        kill_after = None
        except (http.client.HTTPException, ConnectionError, json.JSONDecodeError):
            self.assertIsNone(kill_after, "the stream broke off by itself")  # A line may be cut, too.
        return counted, token, later

    def test_a_stream_goes_on_at_another_gateway(self):
        """With the last token of a stream that was cut, no document is lost. A token counts whole buckets, so that documents of others come
        again."""
        self.feed_natively("y" * 3000)  # More than a gateway and the kernel keep for a reader.
        first = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=60)
        self.addCleanup(first.close)
        counted, token, _ = self.read_stream(first, "", FEED // 10)
        self.assertTrue(token, "the stream ended before its gateway was killed")
        self.cluster.kill("storage.1")
        second = http.client.HTTPConnection("127.0.0.1", self.ports[1], timeout=60)
        self.addCleanup(second.close)
        rest, token, _ = self.read_stream(second, token, None)
        for node in ("gateway.0", "storage.1"):
            self.cluster.restart(node)
        self.cluster.wait_healthy()
        self.assertIsNone(token, "the second stream is not whole")
        self.assertEqual(len(rest), len(set(rest)))
        self.assertEqual(sorted({*counted, *rest}), sorted(f"id:feed:item::{i}" for i in range(FEED)))
        self.assertLess(len(counted) + len(rest), FEED + FEED // 2, "the second stream began at the beginning")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
