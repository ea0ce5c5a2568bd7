"""Bad input gives a message that names it and its place, the right exit code, and no side effects."""

import gzip
import json
import socket
import struct
import unittest

import harness
from harness import FAILED, NOT_FOUND, OK, PARTIAL, USAGE

SCHEMA = """document thing {
  field name type string { header }
  field size type int { header }
  field price type double { header }
  field tags type array<string> { body }
}
"""


def line(number, **fields):
    return json.dumps({"put": f"id:t:thing::{number}", "fields": fields})


class BadInputTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(storage=2, distributors=1, redundancy=1)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.deploy(SCHEMA)

    def setUp(self):
        removes = "".join(json.dumps({"remove": id_}) + "\n" for id_ in self.cluster.documents("--type", "thing"))
        self.cluster.must("feed", "-", stdin=removes)

    def check(self, finished, code, *mentioned):
        self.assertEqual(finished.code, code, finished)
        for text in mentioned:
            self.assertIn(text, finished.err, finished)
        self.assertNotIn("terminate", finished.err)
        return finished

    def stored(self):
        return set(self.cluster.documents("--type", "thing"))

    # --- Single documents

    def test_malformed_id(self):
        for bad in ["nonsense", "id:t:thing", "id:t:thing:x=1:a", "id:t::a:1", "doc::1", ""]:
            self.check(self.cluster.fjord("put", bad, "-", stdin="{}"), USAGE, "INVALID_ID")
            self.check(self.cluster.fjord("get", bad), USAGE, "INVALID_ID")
            self.check(self.cluster.fjord("remove", bad), USAGE, "INVALID_ID")
        self.assertEqual(self.stored(), set())

    def test_unknown_type(self):
        self.check(self.cluster.fjord("put", "id:t:nothing::1", "-", stdin="{}"), NOT_FOUND, "UNKNOWN_TYPE", "nothing")

    def test_unknown_field_and_wrong_values(self):
        for fields, mentioned in [({"colour": "red"}, "colour"), ({"size": "big"}, "size"), ({"size": 3000000000}, "size"),
                                  ({"price": [1]}, "price"), ({"tags": ["a", 1]}, "tags"), ({"name": 7}, "name")]:
            self.check(self.cluster.fjord("put", "id:t:thing::1", "-", stdin=json.dumps(fields)), USAGE, "INVALID_FIELD", mentioned)
        self.assertEqual(self.stored(), set())

    def test_broken_json(self):
        self.check(self.cluster.fjord("put", "id:t:thing::1", "-", stdin='{"name": "x"'), USAGE, "INVALID_ARGUMENT", "<stdin>")
        self.check(self.cluster.fjord("put", "id:t:thing::1", "/nowhere/x.json"), NOT_FOUND, "/nowhere/x.json")
        self.assertEqual(self.stored(), set())

    def test_documents_of_fjords_own_types_are_read_only(self):
        for name in ("fjord_job", "fjord_tuples", "fjord_result", "fjord_affinity", "fjord_queries", "fjord_synonyms"):
            one, said = f"id:fjord:{name}::mine", f"documents of type {name} are Fjord's own"
            self.check(self.cluster.fjord("put", one, "-", stdin="{}"), FAILED, "UNAUTHORIZED", said)
            self.check(self.cluster.fjord("update", one, "-", stdin="{}"), FAILED, "UNAUTHORIZED", said)
            self.check(self.cluster.fjord("remove", one), FAILED, "UNAUTHORIZED", said)
            lines = [{"put": one, "fields": {}}, {"update": one, "fields": {}}, {"remove": one}]
            fed = self.cluster.fjord("feed", "-", stdin="".join(json.dumps(each) + "\n" for each in lines))
            self.check(fed, FAILED, "UNAUTHORIZED")
            # An id of an old scheme names no type.
            old = json.dumps({"put": "userdoc:fjord:1:mine", "type": name, "fields": {}})
            self.check(self.cluster.fjord("feed", "-", stdin=old), FAILED, "UNAUTHORIZED")
            self.assertEqual(self.cluster.documents("--type", name), {})

    def test_visitors_of_jobs_are_not_for_users(self):
        unknown = self.cluster.fjord("visit", "--type", "thing", "--visitor", "nothing")
        self.check(unknown, USAGE, 'no visitor "nothing"; there are: dump')
        self.assertNotIn("mapreduce", unknown.err)
        self.cluster.must("put", "id:t:thing::1", "-", stdin='{"name": "x"}')
        for name in ("mapreduce.map", "mapreduce.reduce", "mapreduce.put", "mapreduce.remove"):
            self.check(self.cluster.fjord("visit", "--type", "thing", "--visitor", name), USAGE, "for jobs only")
        self.assertEqual(self.stored(), {"id:t:thing::1"})

    def test_document_that_is_not_there(self):
        self.cluster.must("put", "id:t:thing::1", "-", stdin='{"name": "x"}')
        finished = self.check(self.cluster.fjord("get", "id:t:thing::2", "id:t:thing::1"), NOT_FOUND, "id:t:thing::2", "NOT_FOUND")
        self.assertEqual(finished.json(), {"put": "id:t:thing::1", "fields": {"name": "x"}})

    def test_what_get_prints_can_be_put(self):
        self.cluster.must("put", "id:t:thing::1", "-", stdin='{"name": "x", "size": 3, "tags": ["a", "b"]}')
        printed = self.cluster.must("get", "id:t:thing::1").out
        self.cluster.must("remove", "id:t:thing::1")
        self.cluster.must("put", "id:t:thing::1", "-", stdin=printed)
        self.assertEqual(self.cluster.must("get", "id:t:thing::1").out, printed)
        self.check(self.cluster.fjord("put", "id:t:thing::2", "-", stdin=printed), USAGE, "id:t:thing::1")

    def test_ids_of_the_old_schemes_take_the_type_from_an_option(self):
        for name in ("doc:ns:1", "userdoc:ns:7:1", "groupdoc:ns:g:1"):
            self.check(self.cluster.fjord("put", name, '{"size": 1}'), USAGE, "--type TYPE")
            self.cluster.must("put", name, '{"size": 1}', "--type", "thing")
            self.cluster.must("update", name, '{"size": {"increment": 2}}', "--type", "thing")
            self.assertEqual(self.cluster.must("get", name).json()["fields"], {"size": 3})
            self.cluster.must("remove", name, "--type", "thing")
            self.check(self.cluster.fjord("get", name), NOT_FOUND, "NOT_FOUND")
            self.check(self.cluster.fjord("put", name, '{"size": 1}', "--type", "nothing"), NOT_FOUND, "UNKNOWN_TYPE")

    def test_a_type_that_is_not_there_is_told_by_every_command(self):
        for command in (["get", "id:t:nothing::1"], ["remove", "id:t:nothing::1"], ["put", "id:t:nothing::1", "{}"],
                        ["update", "id:t:nothing::1", "{}"], ["visit", "--type", "nothing"]):
            self.check(self.cluster.fjord(*command), NOT_FOUND, "UNKNOWN_TYPE", '"nothing"')

    # --- Feeds

    def test_every_output_is_an_input(self):
        self.assertEqual(self.feed("\n".join(line(i, name=f"n{i}", size=i) for i in range(5))).code, OK)
        outputs = {"get": self.cluster.must("get", *(f"id:t:thing::{i}" for i in range(5))).out,
                   "versions": self.cluster.must("get", "--versions", *(f"id:t:thing::{i}" for i in range(5))).out,
                   "visit": self.cluster.must("visit", "--type", "thing", "--removes").out,
                   "subscribe": self.cluster.must("subscribe", "--type", "thing", "--once").out}
        outputs["http"] = outputs["visit"].replace('{"put":', '{"pathId":"/document/v1/t/thing/docid/1","id":')
        before = self.cluster.documents("--type", "thing")
        for name, lines in outputs.items():
            for command in (["feed"], ["import"]):
                self.setUp()
                self.cluster.must(*command, self.cluster.file(f"{name}.jsonl", lines))
                self.assertEqual(self.cluster.documents("--type", "thing"), before, (name, command))
        self.cluster.must("put", "id:t:thing::1", "-", stdin='{"id":"id:t:thing::1","fields":{"size":9}}')
        self.assertEqual(self.cluster.documents("--type", "thing")["id:t:thing::1"], {"size": 9})

    def test_an_operation_over_several_lines_is_one_error(self):
        pretty = json.dumps(json.loads(line(2, name="two", tags=["a"])), indent=2)
        finished = self.check(self.feed("\n".join([line(1, name="one"), pretty, line(3, name="three")])), PARTIAL,
                              "feed.jsonl:2: INVALID_ARGUMENT", "goes on for")
        self.assertEqual((finished.json()["ok"], finished.json()["failed"]), (2, 1))
        self.assertEqual(self.feed(f"[{pretty}]").code, OK)
        self.assertEqual(self.stored(), {f"id:t:thing::{i}" for i in (1, 2, 3)})

    def feed(self, content, *arguments, name="feed.jsonl"):
        return self.cluster.fjord("feed", self.cluster.file(name, content), *arguments)

    def test_a_bad_line_does_not_stop_the_feed(self):
        finished = self.check(self.feed("\n".join([
            line(1, name="one"), line(2, size="two"), '{"put": "id:t:thing::3", "fields": {"name": ', line(4, colour="red"),
            '{"put": "id:t:nothing::5", "fields": {}}', '{"put": "five", "fields": {}}', '{"update": "id:t:thing::7"}',
            line(8, name="eight")])), PARTIAL, *[f"feed.jsonl:{number}: " for number in (2, 3, 4, 5, 6, 7)])
        summary = finished.json()
        self.assertEqual(summary["ok"], 2)
        self.assertEqual(summary["failed"], 6)
        self.assertEqual(summary["failed_by_code"]["INVALID_FIELD"], 2)
        self.assertEqual(self.stored(), {"id:t:thing::1", "id:t:thing::8"})

    def test_a_feed_of_bad_lines_only(self):
        finished = self.check(self.feed("nonsense\n"), FAILED, "feed.jsonl:1")
        self.assertEqual(finished.json()["ok"], 0)

    def test_truncated_array(self):
        self.check(self.feed("[" + line(1, name="one") + ", " + line(2, name="two")[:-5]), PARTIAL, "feed.jsonl:1: INVALID_ARGUMENT")
        self.assertEqual(self.stored(), {"id:t:thing::1"})

    def test_truncated_gzip(self):
        whole = gzip.compress("\n".join(line(n, name="x" * 50 + str(n * 7919)) for n in range(20000)).encode())
        finished = self.check(self.feed(whole[:len(whole) // 2], name="feed.jsonl.gz"), PARTIAL, "feed.jsonl.gz", "cut off")
        self.assertEqual(len(self.stored()), finished.json()["ok"])

    def test_gzip_and_standard_input_and_arrays(self):
        self.assertEqual(self.feed(gzip.compress(line(1, name="a").encode()), name="feed.jsonl.gz").code, OK)
        self.cluster.must("feed", "-", stdin="[" + line(2, name="b") + ",\n" + line(3, name="c") + "]")
        self.cluster.must("feed", "-", stdin='{"remove": "id:t:thing::2"}\n')
        self.assertEqual(self.stored(), {"id:t:thing::1", "id:t:thing::3"})

    def test_a_file_that_is_missing(self):
        good = self.cluster.file("good.jsonl", line(1, name="a"))
        self.check(self.cluster.fjord("feed", "/nowhere/feed.jsonl", good), PARTIAL, "/nowhere/feed.jsonl")
        self.assertEqual(self.stored(), {"id:t:thing::1"})

    def test_no_error_is_lost_without_its_message(self):
        finished = self.feed("\n".join("bad" for _ in range(30)), "--errors-shown", 10)
        self.assertEqual(finished.json()["failed"], 30)
        self.assertEqual(sum("feed.jsonl:" in text for text in finished.err.splitlines()), 10)

    # --- Tables

    def import_csv(self, content, *arguments, name="things.csv"):
        return self.cluster.fjord("import", "--type", "thing", *arguments, self.cluster.file(name, content))

    def test_csv(self):
        finished = self.import_csv('\ufeffId,NAME,size,Price\r\n1,"a ""quoted"", name",3,1.5\r\n2,,,\r\n3,"two\r\nlines",-1,2\r\n4,"",1,1\r\n',
                                   "--id-field", "id", "--namespace", "t")
        self.assertEqual(finished.code, OK, finished)
        self.assertEqual(self.cluster.documents("--type", "thing"), {
            "id:t:thing::1": {"name": 'a "quoted", name', "size": 3, "price": 1.5}, "id:t:thing::2": {},
            "id:t:thing::3": {"name": "two\r\nlines", "size": -1, "price": 2.0},
            "id:t:thing::4": {"name": "", "size": 1, "price": 1.0}})

    def test_bad_rows_of_csv(self):
        finished = self.check(self.import_csv('id,name,size\n1,a,1\n2,b,big\n3,c\n4,"x"y,4\n,e,5\n6,f,6\n7,"never closed,7\n',
                                              "--id-field", "id"),
                              PARTIAL, "things.csv:3: INVALID_FIELD", '"big"', "things.csv:4: ", "things.csv:5: ",
                              "things.csv:6: INVALID_ID", "things.csv:8: ")
        self.assertEqual(finished.json()["ok"], 2)
        self.assertEqual(self.stored(), {"id:thing:thing::1", "id:thing:thing::6"})

    def test_bad_headers_of_csv(self):
        self.check(self.import_csv("id,name\n1,a\n", "--id-field", "key"), FAILED, "things.csv", '"key"', "id, name")
        self.check(self.import_csv("id,name,Name\n1,a,b\n", "--id-field", "id"), FAILED, '"Name"', "--ignore-unknown")
        self.check(self.import_csv("id,name,name\n1,a,b\n", "--id-field", "id"), FAILED, "name", "twice")
        self.check(self.import_csv("", "--id-field", "id"), FAILED, "empty")
        self.check(self.import_csv("id,tags\n1,a\n", "--id-field", "id"), FAILED, "tags")
        self.check(self.cluster.fjord("import", "--type", "nothing", "--id-row", self.cluster.file("a.csv", "a\n1\n")), NOT_FOUND, "nothing")
        self.check(self.import_csv("id,name\n1,a\n"), USAGE, "--id-field")
        self.assertEqual(self.stored(), set())

    def test_rows_of_jsonl(self):
        finished = self.check(self.import_csv('{"key": "a", "size": 1}\n{"size": 2}\n{"key": 3, "size": 3}\nnonsense\n',
                                              "--id-field", "key", "--namespace", "t", name="things.jsonl"),
                              PARTIAL, "things.jsonl:2", "things.jsonl:4")
        self.assertEqual(finished.json()["ok"], 2)
        self.assertEqual(self.stored(), {"id:t:thing::a", "id:t:thing::3"})

    def test_an_import_that_only_creates(self):
        self.feed("\n".join(line(i, name="old") for i in range(2)))
        rows = "id,name\n" + "".join(f"{i},new\n" for i in range(4))
        summary = self.import_csv(rows, "--id-field", "id", "--namespace", "t", "--create-only").json()
        self.assertEqual([summary[name] for name in ("ok", "existing", "replaced", "failed")], [2, 2, 0, 0])
        self.assertEqual({name: one["name"] for name, one in self.cluster.documents("--type", "thing").items()},
                         {"id:t:thing::0": "old", "id:t:thing::1": "old", "id:t:thing::2": "new", "id:t:thing::3": "new"})
        summary = self.import_csv(rows, "--id-field", "id", "--namespace", "t").json()
        self.assertEqual([summary[name] for name in ("ok", "existing", "replaced", "failed")], [4, 0, 4, 0])
        lines = line(3, name="newer") + "\n" + line(4, name="newer") + '\n{"remove": "id:t:thing::0"}\n'
        finished = self.cluster.fjord("import", "--create-only", self.cluster.file("lines.jsonl", lines))
        self.assertEqual([finished.json()[name] for name in ("ok", "existing", "failed")], [1, 1, 1])
        self.check(finished, PARTIAL, "lines.jsonl:3: INVALID_ARGUMENT", "create_only takes puts")
        self.assertEqual(len(self.stored()), 5)

    def test_texts_for_numbers_where_they_are_asked_for(self):
        rows = '{"key": "a", "size": "7", "name": 5, "tags": [1]}\n{"key": "b", "size": "x"}\n'
        command = ["--id-field", "key", "--namespace", "t"]
        self.check(self.import_csv(rows, *command, name="texts.jsonl"), FAILED, "texts.jsonl:1: INVALID_FIELD")
        finished = self.check(self.import_csv(rows, *command, "--convert-values", name="texts.jsonl"), PARTIAL, "texts.jsonl:2: INVALID_FIELD")
        self.assertEqual(finished.json()["ok"], 1)
        self.assertEqual(self.cluster.documents("--type", "thing"), {"id:t:thing::a": {"size": 7, "name": "5", "tags": ["1"]}})

    # --- Schemas, visits, jobs

    def test_bad_schema(self):
        path = self.cluster.file("bad.sd", "document broken {\n  field x type wibble { header }\n}\n")
        self.check(self.cluster.fjord("schema", "deploy", path), USAGE, "bad.sd", "wibble", "2")
        self.assertNotIn("broken", self.cluster.must("schema", "list").out)

    def test_bad_visits(self):
        self.check(self.cluster.fjord("visit", "--type", "nothing"), NOT_FOUND, "UNKNOWN_TYPE", "nothing")
        self.check(self.cluster.fjord("visit", "--selection", "thing.size >"), USAGE, "INVALID_SELECTION")
        self.check(self.cluster.fjord("visit", "--type", "thing", "--fields", "colour"), USAGE, "INVALID_FIELD", "colour")

    def test_fields_of_a_visit(self):
        self.cluster.must("put", "id:t:thing::1", "-", stdin='{"name": "x", "size": 3}')
        self.assertEqual(self.cluster.documents("--type", "thing", "--fields", "size"), {"id:t:thing::1": {"size": 3}})
        self.assertEqual(self.cluster.documents("--selection", "thing.size > 3"), {})

    def test_bad_jobs(self):
        self.check(self.cluster.fjord("job", "run", "wibble", "--type", "thing"), USAGE, "wibble")
        self.check(self.cluster.fjord("job", "run", "noop", "--type", "nothing"), NOT_FOUND, "nothing")
        self.check(self.cluster.fjord("job", "run", "noop", "--type", "thing", "--param", "speed=9"), USAGE, "speed")
        self.check(self.cluster.fjord("job", "run", "noop", "--type", "thing", "--param", "speed"), USAGE, "speed")
        self.check(self.cluster.fjord("job", "run", "citycount", "--type", "thing", "--param", "field=colour"), USAGE, "colour")
        self.check(self.cluster.fjord("job", "run", "fieldstats", "--type", "thing", "--param", "group=name"), USAGE, "value")
        self.check(self.cluster.fjord("job", "run", "noop", "--type", "thing", "--selection", "thing.size >"), USAGE, "INVALID_SELECTION")
        for command in ("show", "watch", "cancel", "results"):
            self.check(self.cluster.fjord("job", command, "job-of-nobody"), NOT_FOUND, "job-of-nobody")

    # --- Connections

    def test_dead_cluster_address(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % unused.getsockname()[1]
            for command in (["get", "id:t:thing::1"], ["visit"], ["feed", "-"], ["job", "list"], ["schema", "list"]):
                finished = harness.run_program("fjord", *command, "--cluster", address, "--timeout", 2, stdin="")
                self.assertEqual(finished.code, FAILED, finished)
                self.assertIn(address, finished.err, finished)
            self.assertEqual(harness.run_program("fjord", "status", "--cluster", address, "--timeout", 2).code, FAILED)
        self.check(harness.run_program("fjord", "status", "--cluster", "nonsense"), USAGE, "nonsense")

    def connections(self):
        host, port = self.cluster.address.split(":")
        return socket.create_connection((host, int(port)), timeout=20)

    def test_what_is_no_call_closes_that_connection_only(self):
        bystander = self.connections()
        self.addCleanup(bystander.close)
        for garbage in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", struct.pack(">i", 0x7FFFFFFF) + b"x", struct.pack(">i", -1),
                        struct.pack(">i", 8) + b"garbage!", struct.pack(">i", 0), bytes(range(256)) * 300):
            with self.connections() as connection:
                connection.sendall(garbage)
                try:
                    answer = connection.recv(100)
                except ConnectionResetError:
                    answer = b""
                self.assertEqual(answer, b"", garbage[:20])
            self.cluster.must("put", "id:t:thing::1", "-", stdin='{"name": "x"}')
        bystander.settimeout(0.1)
        with self.assertRaises(TimeoutError):  # The connection is still open.
            bystander.recv(1)
        self.cluster.wait_healthy()


class ConfigurationTest(unittest.TestCase):
    GOOD = """cluster:
  redundancy: 1
fleetcontroller:
  address: 127.0.0.1:1
  directory: fc
distributors:
  - address: 127.0.0.1:2
storage:
  - address: 127.0.0.1:3
    directory: s0
"""

    def setUp(self):
        import pathlib
        import tempfile
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, text, node="storage.0"):
        path = self.folder / "cluster.yaml"
        path.write_text(text)
        return harness.run_program("fjordd", "--config", path, "--node", node, timeout=20)

    def check(self, text, *mentioned, node="storage.0"):
        finished = self.start(text, node)
        self.assertEqual(finished.code, USAGE, finished)
        for part in mentioned:
            self.assertIn(part, finished.err)

    def test_unknown_keys(self):
        self.check(self.GOOD + "storage_option:\n  stripes: 1\n", "cluster.yaml:11", "storage_option", "storage_options")
        self.check(self.GOOD.replace("redundancy", "redundance"), "cluster.yaml:2", "cluster.redundance", "did you mean cluster.redundancy")

    def test_bad_values(self):
        self.check(self.GOOD.replace("redundancy: 1", "redundancy: 17"), "cluster.yaml:2", "cluster.redundancy", '"17"', "1 to 16")
        self.check(self.GOOD.replace("redundancy: 1", "redundancy: two"), "cluster.redundancy", '"two"')
        self.check(self.GOOD.replace("127.0.0.1:3", "127.0.0.1"), "cluster.yaml:9", "storage[0].address", "host:port")
        self.check(self.GOOD + "storage_options:\n  stripes: 3\n", "storage_options.stripes", "power of two")
        self.check(self.GOOD + "log:\n  level: loud\n", "log.level", '"loud"', "warning")

    def test_structure(self):
        self.check("", "cluster.yaml")
        self.check("cluster: [", "cluster.yaml:", "not YAML")
        self.check(self.GOOD.replace("  directory: fc\n", ""), "fleetcontroller.directory", "missing")
        self.check(self.GOOD.replace("    directory: s0\n", ""), "storage[0].directory", "missing")
        self.check(self.GOOD + "cluster:\n  redundancy: 1\n", "cluster", "twice")
        self.check(self.GOOD.replace("127.0.0.1:3", "127.0.0.1:2"), "127.0.0.1:2", "twice")
        self.check(self.GOOD.replace("  redundancy: 1", "  groups: (root 0 1)"), "cluster.groups")

    def test_nodes(self):
        self.check(self.GOOD, "storage.7", node="storage.7")
        self.check(self.GOOD, "wibble", node="wibble")

    def test_only_loopback_unless_allowed(self):
        self.check(self.GOOD.replace("127.0.0.1:3", "0.0.0.0:3"), "storage.0", "0.0.0.0:3", "allow_remote")

    def test_a_folder_in_use_and_a_taken_address(self):
        with harness.Cluster(storage=1, redundancy=1) as cluster:
            config = (cluster.directory / "cluster.yaml").read_text()
            second = harness.run_program("fjordd", "--config", cluster.directory / "cluster.yaml", "--node", "storage.0", timeout=20)
            self.assertEqual(second.code, FAILED, second)
            self.assertIn("in use by storage.0", second.err)
            (self.folder / "cluster.yaml").write_text(config)  # The same addresses, other folders.
            third = harness.run_program("fjordd", "--config", self.folder / "cluster.yaml", "--node", "storage.0", timeout=20)
            self.assertEqual(third.code, FAILED, third)
            self.assertIn("127.0.0.1:", third.err)
            self.assertEqual(cluster.status()["health"], "healthy")


if __name__ == "__main__":
    harness.main()
