"""Mistakes on the command line are named with a remedy; help by topic; former names of options."""

import json
import unittest

import harness
from harness import CONDITION_FALSE, FAILED, NOT_FOUND, OK, USAGE

SCHEMA = "document item { field number type int { header } field seen type int { } }"
NOWHERE = "127.0.0.1:1"


def fjord(*words, **options):
    return harness.run_program("fjord", *words, **options)


class MessagesTest(unittest.TestCase):
    """Each message names the wrong word and what to write in its place."""

    def check(self, line, code, *parts):
        finished = fjord(*line.split(" "))
        with self.subTest(line=line):
            self.assertEqual(finished.code, code, finished)
            self.assertEqual(finished.out, "")
            for part in parts:
                self.assertIn(part, finished.err)
        return finished.err

    def test_a_wrong_command(self):
        self.check("gett X", USAGE, "fjord: there is no command gett; did you mean get?")
        self.check("aggr", USAGE, "there is no command aggr; did you mean aggregate?")
        self.check("version", USAGE, "there is no command version; there is fjord --version")
        self.check("jbo list", USAGE, "there is no command jbo; did you mean job?")
        for far in ("top", "sql", "shell"):
            self.assertNotIn("did you mean", self.check(far, USAGE, f"there is no command {far}; "))
        self.check("retire storage.2", USAGE, "there is no command retire; there is fjord node retire")
        self.check("job status X", USAGE, "there is no command job status; there is fjord local status, fjord status",
                   "fjord job has run, list, show")
        self.check("node foo", USAGE, "there is no command node foo; fjord node has list,", "fjord node --help")
        self.check("job", USAGE, "fjord job needs a command: run, list")
        self.check("-o json", USAGE, "fjord needs a command: dev, local")

    def test_a_wrong_option_or_argument(self):
        self.check("visit --selektion music", USAGE, "fjord visit has no option --selektion; did you mean --selection?")
        self.check("get --timout 3", USAGE, "fjord get has no option --timout; did you mean --timeout?")
        self.check("--wibble status", USAGE, "fjord has no option --wibble")
        self.check("status now", USAGE, 'fjord status does not take the argument "now"')
        self.check("get", USAGE, "fjord get: ID is required", "fjord get --help")
        self.check("job list --timeout 0.5ms", USAGE, '"0.5ms": expected a duration')
        self.check("job list --timeout 1w", USAGE, '"1w": expected a duration of 0.001 to 86400 seconds, such as 1.5, 500ms')

    def test_no_cluster(self):
        error = self.check(f"status --cluster {NOWHERE}", FAILED, NOWHERE, "refused", "--cluster", "FJORD_CLUSTER")
        self.assertEqual(error.count(NOWHERE), 1, error)
        # Options of all commands may stand before the command, or between its words.
        self.check(f"--cluster {NOWHERE} status", FAILED, NOWHERE)
        self.check(f"--timeout=500ms job --cluster {NOWHERE} list -o json", FAILED, NOWHERE)
        self.check(f"--cluster {NOWHERE} placement compare", USAGE, "fjord placement compare has no option --cluster")

    def test_a_simulation_that_ends_before_its_event(self):
        for trace, rounds in (("flash", 50), ("node-loss", 60)):
            self.check(f"balance simulate --trace {trace} --nodes 5 --buckets 1024 --rounds {rounds}", USAGE,
                       f"--rounds {rounds}: the event of the trace {trace} is in round 60; expected more than 60 rounds")

    def test_a_simulation_says_that_it_was_never_balanced(self):
        simulation = ["balance", "simulate", "--trace", "flash", "--nodes", "5", "--buckets", "1024", "--rounds", "80"]
        none = {row["algorithm"]: row for row in fjord(*simulation, "-o", "json").json()}["none"]
        self.assertIsNone(none["rounds_to_balance"])
        self.assertRegex(fjord(*simulation).out, r"(?m)^none .* never ")
        self.assertRegex(fjord(*simulation, "-o", "yaml").out, r"(?s)^---\n-\n  algorithm: none\n.*\n  rounds_to_balance: null\n")
        self.assertIn("balanced: rounds from the event", " ".join(fjord("help", "balance", "simulate").out.split()))

    def test_few_words_cannot_be_parted(self):
        words = "".join(f"word{i % 4}\n" for i in range(40))
        refused = fjord("search", "affinity", "simulate", "-", "--replicas", "3", stdin=words)
        self.assertEqual(refused.code, USAGE, refused)
        self.assertIn("--method rnd", refused.err)
        self.assertEqual(fjord("search", "affinity", "simulate", "-", "--replicas", "3", "--method", "rnd", stdin=words).code, OK)


class HelpTest(unittest.TestCase):
    def test_commands(self):
        for command in ([], ["get"], ["node", "retire"], ["job"]):
            shown = fjord("help", *command)
            self.assertEqual((shown.code, shown.err), (OK, ""))
            self.assertEqual(shown.out, fjord(*command, "--help").out)
        wrong = fjord("help", "node", "retir")
        self.assertEqual(wrong.code, NOT_FOUND)
        self.assertIn("did you mean retire?", wrong.err)

    def test_topics(self):
        topics = fjord("help").out.strip().split("topics: ")[1].split(", ")
        self.assertIn("selections", topics)
        for topic in topics:
            shown = fjord("help", topic)
            self.assertEqual((shown.code, shown.err), (OK, ""))
            self.assertGreater(len(shown.out.splitlines()), 3)
        codes = fjord("help", "exit-codes").out
        for number, _ in enumerate(("ok", "failed", "usage", "not found", "condition", "partly", "timeout", "doubt", "refused")):
            self.assertRegex(codes, rf"(?m)^  {number}  ")


class ClusterTest(unittest.TestCase):
    """Messages of commands that a cluster refuses; former names of options do what they did."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(storage=1, redundancy=1)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.deploy(SCHEMA)

    def setUp(self):
        lines = [json.dumps({"put": f"id:t:item::{i}", "fields": {"number": i}}) for i in range(30)]
        self.cluster.must("feed", "-", stdin="\n".join(lines))

    def test_help_does_not_show_them(self):
        for command, former in (("visit", "--resume"), ("visit", "--show-progress"), ("remove", "--where"), ("update", "--token"),
                                ("import", "--resume"), ("subscribe", "--print-tokens"), ("subscribe", "--token")):
            self.assertNotIn(former, fjord(command, "--help").out)

    def test_a_visit(self):
        file = self.cluster.folder / "former-visit"
        some = self.cluster.must("visit", "--limit", "10", "--progress", file)
        self.assertIn(f"--cursor {file}", some.err)
        rest = self.cluster.must("visit", "--resume", file, "--show-progress", "never")
        self.assertEqual(len(some.json_lines() + rest.json_lines()), 30)
        # The former --progress FILE begins again; --cursor goes on.
        self.assertEqual(len(self.cluster.must("visit", "--progress", file).json_lines()), 30)
        self.assertEqual(self.cluster.must("visit", "--cursor", file).out, "")
        self.assertEqual(self.cluster.fjord("visit", "--resume", file.with_name("nofile")).code, NOT_FOUND)
        self.assertEqual(len(self.cluster.must("visit", "--progress", "never").json_lines()), 30)

    def test_changes_of_many_documents(self):
        file = self.cluster.folder / "former-bulk"
        update = ["update", "--where", "item.number < 9", "--type", "item", '{"seen": {"increment": 1}}', "--yes"]
        self.assertEqual(self.cluster.must(*update, "--progress", file).json()["applied"], 9)
        self.assertEqual(self.cluster.must(*update, "--resume", file).json()["applied"], 0)
        for word in ("--where", "--selection"):
            self.assertEqual(self.cluster.must("remove", word, "item.number >= 20", "--type", "item", "--dry-run", "-o", "json").json(),
                             {"matched": 10})
        self.assertIn("--type", self.cluster.fjord("remove", "--selection", "true").err)

    def test_keys_of_writes(self):
        for word in ("--token", "--idempotency-key"):
            one = ["update", "id:t:item::1", '{"seen": {"assign": 7}}', word, f"key{word}", "-o", "json"]
            self.assertEqual(*(self.cluster.must(*one).json()["version"] for _ in range(2)))

    def test_an_import(self):
        lines = self.cluster.folder / "lines.jsonl"
        lines.write_text('{"put": "id:t:item::5", "fields": {"number": 5}}\n')
        for word in ("--resume", "--cursor"):
            position = self.cluster.folder / f"import{word}"
            self.assertEqual(self.cluster.must("import", lines, word, position).json()["ok"], 1)
            position.write_text("nonsense")
            self.assertNotEqual(self.cluster.fjord("import", lines, word, position).code, OK)

    def test_a_subscription(self):
        for cursor, prints, member in (("--token", "--print-tokens", "token"), ("--cursor", "--print-cursors", "cursor")):
            file = self.cluster.folder / f"changes{cursor}"
            lines = self.cluster.must("subscribe", "--once", cursor, file, prints).json_lines()
            self.assertEqual(sum("put" in line for line in lines), 30)
            self.assertEqual([line[member] for line in lines if member in line][-1], file.read_text().strip())
            self.assertEqual(self.cluster.must("subscribe", "--once", cursor, file).out, "")

    def test_an_error_names_the_document_once(self):
        for call in (["get", "id:t:item::none"], ["update", "id:t:item::none", '{"seen": {"assign": 1}}']):
            refused = self.cluster.fjord(*call)
            self.assertEqual((refused.code, refused.err.count("id:t:item::none")), (NOT_FOUND, 1), refused)

    def test_an_unknown_job(self):
        for call in ("cancel nope", "pause nope", "resume nope", "set nope cpu_max=2", "remove nope", "results nope --remove"):
            refused = self.cluster.fjord("job", *call.split(" "))
            self.assertEqual((refused.code, refused.err), (NOT_FOUND, "fjord: NOT_FOUND: there is no job nope\n"))

    def test_a_selection_that_ends_too_early(self):
        refused = self.cluster.fjord("visit", "--selection", "item.number >")
        self.assertEqual(refused.code, USAGE)
        self.assertIn("column 14: unexpected end of the text: expected a document type, a field", refused.err)

    def test_a_field_that_is_dropped(self):
        refused = self.cluster.fjord("schema", "deploy", self.cluster.file("other.sd", "document item { field number type int { header } }"))
        self.assertIn("fjord schema deploy --allow-drop item.seen", refused.err)

    def test_a_false_condition(self):
        for options in (["--condition", "item.number > 5"], ["--if-version", "1"]):
            self.assertEqual(self.cluster.fjord("remove", "id:t:item::1", *options).code, CONDITION_FALSE)
        self.assertEqual(len(self.cluster.documents()), 30)


if __name__ == "__main__":
    harness.main()
