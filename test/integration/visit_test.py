"""Visits, bulk operations and subscriptions of real processes that are killed in the middle and resumed."""

import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import harness
from python_package import PYTHON, has_module

SCHEMA = """document item {
  field number type int { header }
  field seen type int { header }
  field text type string { }
}"""
DOCUMENTS = 6000


def identity(i):
    place = f"n={i % 40}" if i % 2 else ""
    return f"id:v:item:{place}:{i}"


def documents(count=DOCUMENTS):
    return {identity(i): {"number": i, "seen": 0, "text": f"{i} " + "x" * 400} for i in range(count)}


def feed(cluster, content):
    lines = "".join(json.dumps({"put": name, "fields": fields}) + "\n" for name, fields in content.items())
    cluster.must("feed", "-", stdin=lines)


def visited(cluster, *arguments):
    return {document["put"]: document["fields"] for document in cluster.must("visit", *arguments).json_lines()}


class Process:
    """A command that runs beside the test."""

    def __init__(self, cluster, *arguments, stdout=subprocess.DEVNULL):
        self.process = subprocess.Popen([str(harness.BIN / "fjord"), *map(str, arguments)], stdout=stdout,
                                        stderr=subprocess.PIPE, env={**os.environ, "FJORD_CLUSTER": cluster.address})

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.end()

    def end(self):
        self.process.communicate()
        return self.process.returncode


def read_export(path):
    """Returns the documents of a file, each of which has to occur once."""
    opener = gzip.open if path.suffix == ".gz" else open
    found = {}
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            assert document["put"] not in found, f"{document['put']} is there twice"
            found[document["put"]] = document["fields"]
    return found


class VisitTest(unittest.TestCase):
    def test_slices_and_resumed_visits_give_every_document_once(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            content = documents(2000)
            feed(cluster, content)
            given = []
            for k in range(1, 4):
                given += [line["put"] for line in cluster.must("visit", "--slice", f"{k}/3", "--fields", "number").json_lines()]
            self.assertEqual(sorted(given), sorted(content))
            self.assertEqual(len(cluster.must("visit", "--slices", "7").json_lines()), len(content))

            cursor = cluster.folder / "cursor"
            cluster.must("visit", "--cursor", cursor)
            again = cluster.must("visit", "--cursor", cursor)
            self.assertEqual(again.out, "")
            self.assertIn("remove the file", again.err)
            for options in ([], ["--snapshot"], ["--slices", "3"], ["--buckets-at-once", "16"]):
                with self.subTest(options=options):
                    cursor.unlink()
                    some = cluster.must("visit", "--limit", "1000", "--cursor", cursor, *options).json_lines()
                    self.assertEqual(len(some), 1000)
                    rest = cluster.must("visit", "--cursor", cursor, *options).json_lines()
                    self.assertEqual({line["put"] for line in some + rest}, set(content))
                    self.assertLess(len(rest), len(content))
            refused = cluster.fjord("visit", "--cursor", cursor, "--selection", "item.number > 3")
            self.assertEqual(refused.code, harness.USAGE)
            self.assertIn("another selection", refused.err)
            self.assertEqual(cluster.fjord("visit", "--slice", "4/3").code, harness.USAGE)

            explained = cluster.must("visit", "--selection", "id.user == 7", "--explain", "-o", "json")
            why = json.loads(explained.err)
            self.assertEqual(len(explained.json_lines()), 50)
            self.assertEqual((why["buckets_read"], why["documents_matched"], why["buckets_located"]), (1, 50, True))
            self.assertGreater(why["buckets_skipped"]["selection"], 100)

            since = time.time()
            time.sleep(1.1)
            cluster.must("remove", identity(3))
            cluster.must("put", identity(4), "-", stdin='{"number": 4}')
            late = cluster.must("visit", "--removes", "--from", str(int(since) + 1)).json_lines()
            self.assertEqual(late, [{"remove": identity(3)}, {"put": identity(4), "fields": {"number": 4}}]
                             if "remove" in late[0] else [{"put": identity(4), "fields": {"number": 4}}, {"remove": identity(3)}])

    def interrupted_visit(self, cluster, cursor, number, *options):
        """Returns the lines of a visit that a signal ends while its reader is slow, and whether the visit was complete.
        """
        visit = Process(cluster, "visit", "--cursor", cursor, *options, stdout=subprocess.PIPE)
        first = [visit.process.stdout.readline() for _ in range(200)]
        visit.process.send_signal(number)
        # Not communicate(), which would miss the data that readline() has read ahead.
        rest = visit.process.stdout.read()
        err = visit.process.stderr.read()
        visit.process.wait(timeout=60)
        out = b"".join(first) + rest
        self.assertTrue(not out or out.endswith(b"\n"), "the last line is torn")
        if visit.process.returncode != harness.OK:
            self.assertEqual(visit.process.returncode, harness.PARTIAL, err)
            self.assertIn(signal.Signals(number).name.encode(), err)
            self.assertIn(f"--cursor {cursor} goes on".encode(), err)
        return [json.loads(line)["put"] for line in out.splitlines()], visit.process.returncode == harness.OK

    def test_a_visit_that_a_signal_ends_goes_on_without_doubles_or_torn_lines(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            content = documents(12000)
            feed(cluster, content)
            for options in ([], ["--slices", "3"], ["--snapshot"], ["--buckets-at-once", "16"]):
                with self.subTest(options=options):
                    cursor = cluster.folder / ("cursor" + "".join(options))
                    given, interrupted, is_done = [], 0, False
                    for round_ in range(40):
                        number = signal.SIGINT if round_ % 2 else signal.SIGTERM
                        some, is_done = self.interrupted_visit(cluster, cursor, number, *options)
                        given += some
                        if is_done:
                            break
                        interrupted += 1
                    if not is_done:
                        given += [line["put"] for line in cluster.must("visit", "--cursor", cursor, *options).json_lines()]
                    self.assertGreater(interrupted, 0)
                    self.assertEqual(sorted(given), sorted(content))

    def test_a_visit_with_a_limit_goes_on_exactly_behind_it(self):
        with harness.Cluster(storage=2, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            content = documents(2000)
            feed(cluster, content)
            for options in ([], ["--snapshot"], ["--slices", "2"]):
                cursor = cluster.folder / ("page" + "".join(options))
                given = []
                for _ in range(20):
                    page = cluster.must("visit", "--limit", "333", "--cursor", cursor, *options).json_lines()
                    given += [line["put"] for line in page]
                    if len(page) < 333:
                        break
                self.assertEqual(sorted(given), sorted(content))

    def test_an_export_goes_on_after_kills_without_doubles_or_holes(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            content = documents()
            feed(cluster, content)
            for name in ("out.jsonl", "out.jsonl.gz"):
                path = cluster.folder / name
                progress = cluster.folder / (name + ".progress")
                export = ["export", path, "--type", "item", "--visitors-per-node", 1, "--buckets-per-visitor", 1]
                kills = 0

                def is_complete():  # A visit killed at its very end is complete.
                    return path.exists() and path.stat().st_size > 0 and not progress.exists()

                for round_ in range(200):
                    if is_complete():
                        break
                    running = Process(cluster, *export, *(["--resume"] if round_ else []))
                    time.sleep(0.03 + 0.01 * (round_ % 7))
                    if round_ == 2:
                        cluster.kill("storage.1")
                    if running.process.poll() is None:
                        running.kill()
                        kills += 1
                    elif running.end() == harness.OK:
                        break
                    if round_ == 5:
                        cluster.restart("storage.1")
                    if kills == 12:
                        break
                if not is_complete():
                    cluster.must(*export, "--resume", timeout=120)
                cluster.restart("storage.1")
                self.assertGreater(kills, 0)
                self.assertFalse(progress.exists())
                self.assertEqual(read_export(path), content)
                # The file is not overwritten, and it can be fed again.
                self.assertEqual(cluster.fjord(*export).code, harness.FAILED)
                again = cluster.must("feed", path).json()
                self.assertEqual(again["ok"], len(content))

    @unittest.skipUnless(has_module("fjord", "pyarrow"), "SKIPPED: no Python package, or no pyarrow")
    def test_parquet_holds_every_value_as_it_was(self):
        schema = """document thing {
          field name type string { header }
          field whole type long { header }
          field part type double { header }
          field yes type bool { header }
          field tags type array<string> { }
        }
        document other { field whole type double { header } field name type string { header } }"""
        content = {
            "id:p:thing::1": {"name": "[1, 2]", "whole": 2**62 + 1, "part": 1.0, "yes": True, "tags": ["a", "{}"]},
            "id:p:thing::2": {"name": 'line\nbreak "é" \u0007', "whole": -5, "part": -1e-300, "yes": False, "tags": []},
            "id:p:thing::3": {"name": "null"},
            "id:p:other::1": {"whole": 3.0, "name": "{"},
        }
        content.update({f"id:p:thing::many{i}": {"name": f"{i}", "whole": i} for i in range(25000)})
        with harness.Cluster(storage=2) as cluster:
            cluster.deploy(schema)
            feed(cluster, content)
            path = cluster.folder / "all.parquet"
            cluster.must("export", path)
            before = visited(cluster)
            for name in ("thing", "other"):
                cluster.must("remove", "--selection", "true", "--type", name, "--yes")
            self.assertEqual(visited(cluster), {})
            self.assertEqual(cluster.fjord("feed", path).code, harness.USAGE)
            cluster.must("import", path)
            self.assertEqual(visited(cluster), before)
            self.assertEqual(len(before), len(content))
            self.assertEqual({name: before[name] for name in list(content)[:4]}, {name: content[name] for name in list(content)[:4]})
            table = cluster.folder / "table.parquet"
            subprocess.run([PYTHON, "-c", """
import datetime, sys, pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"_id": ["x", "y"], "name": [datetime.datetime(2026, 11, 22), None], "whole": [1, 2],
                         "tags": [["a"], None]}), sys.argv[1])""", str(table)], check=True)
            cluster.must("import", "--type", "thing", "--id-field", "_id", "--namespace", "t", table)
            imported = visited(cluster, "--selection", 'id.namespace == "t"')
            self.assertEqual(imported, {"id:t:thing::x": {"name": "2026-11-22T00:00:00", "whole": 1, "tags": ["a"]},
                                        "id:t:thing::y": {"whole": 2}})

    def test_bulk_changes_happen_once_to_each_document_although_they_are_killed(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            content = documents()
            feed(cluster, content)
            where = ["--selection", "item.number < 4000", "--type", "item"]
            counted = cluster.fjord("update", *where, '{"seen": {"increment": 1}}')
            self.assertEqual(counted.code, 8)
            self.assertIn("4000", counted.out)
            cursor = cluster.folder / "bulk"
            update = ["update", *where, '{"seen": {"increment": 1}}', "--yes", "--cursor", cursor, "--in-flight", 16]
            for round_ in range(8):
                running = Process(cluster, *update)
                harness.wait_until(cursor.exists, "there is a file with the cursor", 20)
                time.sleep(0.05 * round_)
                if round_ == 1:
                    cluster.kill("storage.2")
                if round_ == 3:
                    cluster.restart("storage.2")
                running.kill()
            done = cluster.must(*update).json()
            self.assertEqual((done["in_doubt"], done["failed"]), (0, {}))
            for name, fields in content.items():
                fields["seen"] = 1 if fields["number"] < 4000 else 0
            self.assertEqual(cluster.documents(), content)
            # Another operation does not resume from it.
            other = cluster.fjord("update", *where, '{"seen": {"increment": 2}}', "--yes", "--cursor", cursor)
            self.assertEqual(other.code, harness.USAGE)

            self.assertIn("4000", cluster.must("remove", *where, "--dry-run").out)
            removed = cluster.must("remove", *where, "--yes").json()
            self.assertEqual(removed["applied"], 4000)
            self.assertEqual(cluster.documents(), {n: f for n, f in content.items() if f["number"] >= 4000})

    def test_a_subscriber_keeps_a_copy_in_step(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            content = documents(500)
            feed(cluster, content)
            cursor = cluster.folder / "cursor"
            subscribe = ["subscribe", "--type", "item", "--selection", "item.number < 450", "--cursor", cursor, "--once"]
            copy = {}
            newest = {}

            def take(lines):
                for line in lines:
                    name = line.get("put") or line["remove"]
                    self.assertGreaterEqual(line["timestamp_us"], newest.get(name, 0))
                    newest[name] = line["timestamp_us"]
                    copy.pop(name, None)
                    if "put" in line:
                        copy[name] = line["fields"]

            take(cluster.must(*subscribe).json_lines())
            self.assertEqual(copy, {n: f for n, f in content.items() if f["number"] < 450})
            self.assertEqual(cluster.must(*subscribe).out, "")

            for round_ in range(3):
                changed = {identity(i): {"number": 1000 + i if i % 3 == 0 else i, "seen": round_} for i in range(0, 60)}
                feed(cluster, changed)
                content.update(changed)
                cluster.must("remove", identity(100 + round_))
                del content[identity(100 + round_)]
                if round_ == 0:
                    cluster.kill("storage.0")
                if round_ == 1:
                    cluster.restart("storage.0")
                take(cluster.must(*subscribe, timeout=120).json_lines())
                self.assertEqual(copy, {n: f for n, f in content.items() if f["number"] < 450})

    def test_the_example_keeps_a_search_index(self):
        example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "search-index" / "search_index.py"
        with harness.Cluster(storage=1, redundancy=1) as cluster:
            cluster.deploy(SCHEMA)
            feed(cluster, {identity(i): {"number": i, "text": f"word{i % 10} common"} for i in range(300)})
            index = cluster.folder / "index.db"

            def run(*arguments):
                done = subprocess.run([sys.executable, str(example), *map(str, arguments)], capture_output=True, text=True,
                                      timeout=60, env={**os.environ, "FJORD_CLUSTER": cluster.address})
                self.assertEqual(done.returncode, 0, done.stderr)
                return done

            follow = ["follow", index, "--type", "item", "--fields", "text", "--once", "--fjord", harness.BIN / "fjord"]
            run(*follow)
            self.assertEqual(len(run("search", index, "word3", "--limit", 100).stdout.splitlines()), 30)
            cluster.must("remove", identity(3))
            feed(cluster, {identity(13): {"number": 13, "text": "another"}})
            self.assertIn("2 changes", run(*follow).stderr)
            self.assertEqual(len(run("search", index, "word3", "--limit", 100).stdout.splitlines()), 28)
            self.assertTrue(run("search", index, "another").stdout.startswith(identity(13)))
            self.assertIn("0 changes", run(*follow).stderr)


if __name__ == "__main__":
    harness.main()
