"""The tuner on a real cluster: what it measures, the loops that it drives, and what it takes back.

Where a verdict is tested, the metrics come from a server of this test, whose figures follow from how often it was asked
and from what the cluster is set to: nothing depends on how fast the machine is.
"""

import http.server
import json
import signal
import subprocess
import threading
import time
import unittest

import harness

SCHEMA = "document item { field number type int { header } field text type string { body } }"
REFUSED = 8
VISITORS = "storage.visitors_max"
HELD = "storage.held_bytes_max"
SPLIT = "distributor.bucket_bytes_max"
ENTRIES = "storage.entries_max"
INDEX = "storage.index_bytes_max"


class Metrics:
    """A node that shows given metrics: each reading is a thousand operations later than the one before."""

    def __init__(self, latency, visitors_queued=0):
        self.latency = latency  # Seconds per operation, as a function of the number of the reading.
        self.visitors_queued = visitors_queued
        self.readings = 0
        self.operations = 0
        self.seconds = 0.0
        self.fast = 0  # Operations of at most 1 ms.
        self.lock = threading.Lock()
        node = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                text = node.page().encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def page(self):
        latency = self.latency(self.readings + 1)
        with self.lock:
            self.readings += 1
            self.operations += 1000
            self.seconds += 1000 * latency
            self.fast += 1000 if latency <= 0.001 else 0
            name, count = "fjord_distributor_operation_seconds", self.operations
            return (f'fjord_distributor_operations_total{{operation="get",outcome="applied"}} {count}\n'
                    f"fjord_distributor_pending_operations 0\n"
                    f'{name}_bucket{{operation="get",le="0.001"}} {self.fast}\n'
                    f'{name}_bucket{{operation="get",le="0.1"}} {count}\n'
                    f'{name}_bucket{{operation="get",le="+Inf"}} {count}\n'
                    f'{name}_sum{{operation="get"}} {self.seconds}\n'
                    f'{name}_count{{operation="get"}} {count}\n'
                    f"fjord_visitor_running 0\nfjord_visitor_queued {self.visitors_queued}\n"
                    f'fjord_setting_value{{setting="{VISITORS}"}} 5\n')

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class TuneRun:
    """A running `fjord tune run`, with its output so far."""

    def __init__(self, cluster, *arguments):
        self.process = cluster.begin("tune", "run", "-o", "json", "--show-periods", *arguments,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.events = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def all(self, event):
        return [one for one in list(self.events) if one["event"] == event]

    def wait(self, event, count=1, seconds=120):
        def said():
            assert self.process.poll() is None or len(self.all(event)) >= count, self.process.stderr.read()
            return len(self.all(event)) >= count
        try:
            harness.wait_until(said, f"{count} times \"{event}\"", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; said {self.events[-20:]}") from None
        return self.all(event)[count - 1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()


class Repeat:
    """Repeats an action until the end of the with statement."""

    def __init__(self, what, at_once=1):
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.go, args=(what,)) for _ in range(at_once)]

    def go(self, what):
        while not self.over.is_set():
            what()

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def documents(count):
    return "".join(json.dumps({"put": f"id:tune:item::{i}", "fields": {"number": i, "text": "x" * 500}}) + "\n"
                   for i in range(count))


class TuneRunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(storage=2, redundancy=2)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.deploy(SCHEMA)
        cls.cluster.must("feed", "-", stdin=documents(500))
        cls.config = cls.cluster.directory / "cluster.yaml"

    def setUp(self):
        for name in (VISITORS, HELD, SPLIT, ENTRIES, INDEX):
            self.cluster.fjord("config", "unset", name)
        self.cluster.wait_healthy()

    def value(self, name):
        return self.cluster.must("config", "get", name).out.split()[0]

    def feed(self):
        self.cluster.must("feed", "-", stdin=documents(500))

    def history(self):
        return self.cluster.must("config", "history", "-o", "json").json_lines()

    def test_rates_are_measured(self):
        with Repeat(self.feed):
            def measured():
                advice = self.cluster.must("tune", "advise", "--live", "--cluster-config", self.config, "--sample", 1,
                                           "-o", "json").json()
                inputs = {one["name"]: one for one in advice["inputs"]}
                return inputs if inputs["writes_per_s"]["origin"].startswith("measured") else None
            inputs = harness.wait_until(measured, "writes were measured")
        self.assertGreater(inputs["writes_per_s"]["value"], 0)
        self.assertGreater(inputs["p99_s"]["value"], 0)
        self.assertEqual(inputs["latency_target_s"]["origin"], "assumed")
        self.assertEqual(inputs["scan_share"]["origin"], "assumed")  # No visit ran.
        without = self.cluster.must("tune", "advise", "--live").out
        self.assertIn("writes_per_s: 500 1/s (assumed)", without)
        silent = self.cluster.fjord("tune", "plan", "--metrics", f"127.0.0.1:{harness.free_ports(1)[0]}", "--sample", 0.1)
        self.assertEqual(silent.code, harness.FAILED, silent)
        self.assertIn("no node answers with metrics", silent.err)

    def test_visitors_give_way_and_come_back(self):
        run = ["--cluster-config", self.config, "--period", 0.5, "--controllers", "visitors=on,maintenance=off,split=off"]
        self.cluster.must("config", "set", f"{VISITORS}=8")
        with Repeat(self.feed), TuneRun(self.cluster, "--target-ms", 0.001, *run) as tuner:
            changed = tuner.wait("changed")
            self.assertEqual((changed["loop"], changed["knob"], changed["old"]), ("visitors", VISITORS, 8))
            self.assertIn("p99", changed["reason"])
            harness.wait_until(lambda: self.value(VISITORS) == "1", "the floor")
        self.assertIn(changed["id"], self.cluster.must("tune", "history").out)

        def visit():
            self.cluster.must("visit", "--visitors-per-node", 16)
        # On a busy machine the loop above may have seen a period without writes, and given a visitor back.
        floor = int(self.value(VISITORS))
        with Repeat(visit, at_once=4), TuneRun(self.cluster, "--target-ms", 3_600_000, *run) as tuner:
            changed = tuner.wait("changed")
            self.assertEqual((changed["old"], changed["new"]), (floor, floor + 1))
            harness.wait_until(lambda: int(self.value(VISITORS)) >= floor + 2, "more visitors")

    def test_searching_nodes_are_found_and_indexes_get_memory(self):
        """No figure of this test comes from a server of its own: the engines of the nodes measure."""
        def located(count, text):
            # Three locations, whose buckets belong to one stripe.
            return "".join(json.dumps({"put": f"id:tune:item:n={1 + 16 * (i % 3)}:{i}", "fields": {"text": text}}) + "\n"
                           for i in range(count))
        self.cluster.must("config", "set", f"{ENTRIES}=1000000")
        self.cluster.must("feed", "-", stdin=located(90_000, "first"))
        # Memory for one index; each batch goes to its slotfile before the next one.
        self.cluster.must("config", "set", f"{INDEX}=1B", f"{HELD}=1B")

        def write():
            self.cluster.must("feed", "-", stdin=located(150, "again"))
        run = ["--cluster-config", self.config, "--period", 2.5, "--entries-share", 0.1, "--cache-share", 0.0002,
               "--controllers"]
        off = "visitors=off,maintenance=off,split=off,"
        with Repeat(write):
            with TuneRun(self.cluster, *run, off + "entries=advise,cache=advise") as tuner:
                def advice():
                    return {event["loop"]: event for event in tuner.all("advice")}
                try:
                    harness.wait_until(lambda: set(advice()) == {"entries", "cache"}, "advice of both loops", 120)
                except AssertionError as error:
                    raise AssertionError(f"{error}; said {tuner.events[-20:]}") from None
                said = advice()
                self.assertEqual((said["entries"]["knob"], said["entries"]["old"]), (ENTRIES, 1_000_000))
                self.assertLess(said["entries"]["new"], 30_000)  # Fewer than in each of the three.
                self.assertIn("2 nodes found puts bound", said["entries"]["reason"])
                self.assertEqual((said["cache"]["knob"], said["cache"]["old"]), (INDEX, 1))
                self.assertGreater(said["cache"]["new"], 1 << 20)
                self.assertEqual(self.value(ENTRIES), "1000000")
            with TuneRun(self.cluster, *run, off + "entries=off,cache=on") as tuner:
                changed = tuner.wait("changed")
                self.assertEqual((changed["loop"], changed["knob"], changed["old"]), ("cache", INDEX, 1))
                self.assertNotEqual(self.value(INDEX), "1B")
                # With the indexes in memory no operation waits for them, and searches no longer limit puts.
                harness.wait_until(lambda: tuner.all("period")[-1]["index_wait_share"] < 0.0002, "no more waits", 60)
                waited = max(period["index_wait_share"] for period in tuner.all("period"))
                self.assertGreater(waited, 0.0002)

    def test_advice_alone_changes_nothing(self):
        before = self.cluster.must("config", "history").out
        with Metrics(lambda _: 0.05) as node:
            finished = self.cluster.must("tune", "run", "--metrics", node.address, "--period", 0.1, "--periods", 8, "-o", "json")
        events = finished.json_lines()
        advice = [event for event in events if event["event"] == "advice" and event["loop"] == "visitors"]
        self.assertEqual(len(advice), 1, events)  # Not once per period.
        self.assertLess(advice[0]["new"], advice[0]["old"])
        self.assertEqual(self.cluster.must("config", "history").out, before)
        for bad in (["--metrics", "127.0.0.1:1", "--controllers", "caches=on"], ["--controllers", "visitors=on"]):
            self.assertEqual(self.cluster.fjord("tune", "run", "--once", *bad).code, harness.USAGE)

    def test_what_a_person_sets_is_left_alone(self):
        with Metrics(lambda _: 0.05) as node, TuneRun(self.cluster, "--metrics", node.address, "--period", 0.2,
                                                      "--controllers", "visitors=on") as tuner:
            tuner.wait("changed")
            harness.wait_until(lambda: self.value(VISITORS) == "1", "the floor")
            self.cluster.must("config", "set", f"{VISITORS}=7")
            adopted = tuner.wait("adopted")
            self.assertEqual((adopted["old"], adopted["new"]), (1, 7))
            changes = len(tuner.all("changed"))
            tuner.wait("period", len(tuner.all("period")) + 15)
            self.assertEqual(self.value(VISITORS), "7")
            self.assertEqual(len(tuner.all("changed")), changes)
            begin = time.monotonic()
            tuner.process.send_signal(signal.SIGTERM)
            self.assertEqual(tuner.process.wait(timeout=60), 0)
            self.assertLess(time.monotonic() - begin, 30)

    def test_a_bad_change_of_a_person_is_taken_back(self):
        # One initial reading and four periods, then the change, then three bad periods.
        with Metrics(lambda reading: 0.0005 if reading <= 5 else 0.0009) as node:
            finished = self.cluster.fjord("tune", "apply", "--set", f"{HELD}=1MiB", "--watch", "--metrics", node.address,
                                          "--period", 0.1, "--reason", "a bad idea", "-o", "json")
        self.assertEqual(finished.code, REFUSED, finished)
        changed, back = finished.json_lines()
        self.assertEqual((changed["event"], back["event"]), ("changed", "taken back"))
        self.assertEqual(back["id"], changed["id"])
        self.assertIn("0.56, 0.56, 0.56", back["reason"])
        self.assertEqual(node.readings, 8)
        self.assertEqual(self.value(HELD), "64MiB")
        change, revert = self.history()[-2:]
        self.assertEqual(change["why"], "a bad idea")
        self.assertTrue(revert["who"].startswith(f"revert of {changed['id']}"), revert)
        self.assertIn("a bad idea", self.cluster.must("tune", "history").out)

    def test_a_good_change_of_a_person_stays(self):
        with Metrics(lambda reading: 0.0005) as node:
            finished = self.cluster.fjord("tune", "apply", "--set", f"{HELD}=32MiB", "--watch", "--metrics", node.address,
                                          "--period", 0.1, "--reason", "a try", "-o", "json")
        self.assertEqual(finished.code, harness.OK, finished)
        self.assertEqual([line["event"] for line in finished.json_lines()], ["changed", "kept"])
        self.assertEqual(self.value(HELD), "32MiB")

    def test_a_change_that_cannot_be_judged_is_not_made(self):
        with Metrics(lambda _: 0.0005) as node:
            node.page = lambda: "fjord_distributor_pending_operations 0\n"
            finished = self.cluster.fjord("tune", "apply", "--set", f"{HELD}=32MiB", "--watch", "--metrics", node.address,
                                          "--period", 0.1, "--reason", "a try")
        self.assertEqual(finished.code, REFUSED, finished)
        self.assertEqual(self.value(HELD), "64MiB")

    def test_a_change_of_a_loop_that_is_bad_is_taken_back(self):
        before = self.value(SPLIT)
        # Slower from the moment in which the cluster has other buckets.
        with Metrics(lambda _: 0.0005 if self.value(SPLIT) == before else 0.0009) as node:
            with TuneRun(self.cluster, "--metrics", node.address, "--period", 0.3, "--controllers",
                         "split=on,visitors=off,maintenance=off") as tuner:
                changed = tuner.wait("changed")
                back = tuner.wait("taken back")
                self.assertEqual(changed["knob"], SPLIT)
                self.assertEqual(back["id"], changed["id"])
                self.assertEqual((back["old"], back["new"]), (changed["new"], changed["old"]))
                self.assertEqual(self.value(SPLIT), before)
                tuner.wait("period", len(tuner.all("period")) + 5)
                self.assertEqual(len(tuner.all("changed")), 1)
        self.assertTrue(self.history()[-1]["who"].startswith(f"revert of {changed['id']}"))


if __name__ == "__main__":
    harness.main()
