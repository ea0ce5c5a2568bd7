"""The same mistake gives the same exit code in every command."""

import pathlib
import shlex
import socket
import tempfile
import unittest

import command_line_page
import harness
from harness import CONDITION_FALSE, FAILED, NOT_FOUND, OK, USAGE

SCHEMA = "document music {\n  field title type string { header }\n  field year type int { header }\n}\n"
FILES = {"table.csv": "vin,title\n1,a\n", "document.json": '{"title": "x"}', "changes.json": '{"title": {"assign": "y"}}',
         "synonyms.txt": "tea, chai\n", "broken.json": "{broken", "other-field.json": '{"nosuch": 1}', "broken.sd": "document {"}
JOB = "job-0123456789abcdef"

# Valid arguments of each command that needs a cluster; they change nothing in a running cluster.
CALLS = {
    "schema deploy": "music.sd", "schema list": "", "feed": "feed.jsonl", "import": "feed.jsonl",
    "put": "id:a:music::1 document.json", "update": "id:a:music::1 changes.json", "get": "id:a:music::1",
    "remove": "id:a:music::1", "search": "hotel",
    "search affinity train": "queries.tsv --replicas 2 --from-index", "search affinity show": "", "search affinity deploy": "t.ftbl",
    "search affinity simulate": "queries.tsv --replicas 2 --from-index", "search synonyms deploy": "synonyms.txt --yes",
    "search synonyms show": "", "visit": "", "export": "new.jsonl", "subscribe": "--once",
    "job run": "noop --type music", "job list": "", "job show": JOB, "job watch": JOB, "job cancel": JOB, "job pause": JOB,
    "job resume": JOB, "job set": f"{JOB} throttle=1MB", "job dead-letters": JOB, "job results": JOB, "job remove": JOB,
    "aggregate": "--type music 'count()'", "status": "", "plugin list": "", "bucket list": "",
    "bucket show": "id:a:music::1", "bucket accept-loss": "--all", "node list": "", "node stop-check": "storage.0",
    "node accept-loss": "storage.0 --dry-run", "node maintenance": "storage.0", "node up": "storage.0", "node retire": "storage.0", "node remove": "storage.0",
    "node add": "storage --address 127.0.0.1:1", "node replace": "storage.0 --address 127.0.0.1:1",
    "node capacity": "storage.0 --to 1", "node balance": "", "balance plan": "", "balance apply": "", "balance status": "", "balance slices": "",
    "balance history": "", "balance revert": "1", "balance record": "new.txt --rounds 1", "state show": "", "state log": "",
    "state recover": "--from-nodes", "config list": "", "config history": "", "config get": "cluster.redundancy",
    "config explain": "cluster.redundancy", "config unset": "cluster.redundancy", "config set": "cluster.redundancy=2",
    "config revert": "", "pause": "", "resume": "", "tune advise": "", "tune plan": "", "tune apply": "--reason x",
    "tune history": "", "tune revert": "tune-00000000",
}
# Commands without a request to the cluster of --cluster. `tune run` waits for a cluster.
OTHERS = {"dev", "local create", "local start", "local stop", "local status", "local kill", "local restart", "local add-node",
          "placement compare", "balance simulate", "balance compare", "completion", "help", "man", "tune example", "tune calibrate", "tune run"}

SELECTIONS = ["visit --selection {}", "visit --type music --selection {}", "export new.jsonl --selection {}",
              "subscribe --once --selection {}", "job run noop --type music --selection {}",
              "job run noop --type music --wait --selection {}", "aggregate --type music 'count()' --selection {}",
              "remove --selection {} --type music", "update --selection {} --type music '{{}}'",
              "put id:a:music::1 document.json --condition {}", "update id:a:music::1 changes.json --condition {}",
              "remove id:a:music::1 --condition {}"]
FIELD_SETS = ["get id:a:music::1 --fields {}", "visit --fields {}", "visit --type music --fields {}",
              "export new.jsonl --fields {}", "subscribe --once --fields {}"]
IDS = ["get {}", "put {} document.json", "update {} changes.json", "remove {}", "bucket show {}"]
NODES = ["node stop-check {}", "node maintenance {}", "node up {}", "node retire {}", "node remove {}",
         "node replace {} --address 127.0.0.1:1", "node capacity {} --to 2", "get id:a:music::1 --node {}"]
LIMITS = ["visit --limit {}", "visit --limit={}", "aggregate --type music 'count()' --limit {}",
          "aggregate --type music 'count()' --limit={}"]
COUNTS = LIMITS + ["search hotel --limit {}", "feed feed.jsonl --in-flight {}", "import feed.jsonl --in-flight {}", "bucket list -n {}",
                   "remove --selection true --type music --in-flight {}", "job run noop --type music --output-buckets {}",
                   "job run noop --type music --visitors-per-node {}", "visit --visitors-per-node {}", "config revert {}"]


def each(templates, *values):
    return [template.format(shlex.quote(value)) for template in templates for value in values]


# The mistake, the exit code, and the calls with that mistake.
MISTAKES = [
    ("a selection", USAGE, each(SELECTIONS, "music.year >", "nosuch.x == 1")),
    ("a field set", USAGE, each(FIELD_SETS, "[x]", "nosuch", "music:nosuch")),
    ("an expression", USAGE, each(["aggregate --type music {}"], "sum(nosuch)", "sum(", "count() --having 'x >'")
     + ["aggregate --type music 'count()' --group-by nosuch", "aggregate --type music 'count()' --order-by nosuch",
        "aggregate 'count()'", "aggregate --spec broken.json", "aggregate --type music 'count()' --then '{broken'",
        "job run noop --type music --then '{broken'"]),
    ("an id", USAGE, each(IDS, "id:a", "music:1", "id:a:music:1", "id:a::1", "")),
    ("the name of a node", USAGE, each(NODES, "foo") + ["node add foo --address 127.0.0.1:1",
                                                        "local kill --dir {cluster} foo", "local restart --dir {cluster} foo"]),
    ("an address", USAGE, ["node add storage --address foo --dry-run", "tune plan --metrics foo", "tune run --metrics foo --once"]),
    ("a number", USAGE, each(COUNTS, "0", "-1", "x", "1.5", "99999999999999999999") + [
        "put id:a:music::1 document.json --if-version -1", "state log -n -1", "feed feed.jsonl --errors-shown -1",
        "visit --slices 0", "node capacity storage.0 --to abc --dry-run", "node balance --to abc --dry-run", "balance revert x",
        "node add storage --address 127.0.0.1:1 --capacity abc --dry-run", "config set cluster.redundancy=abc",
        "config set cluster.redundancy=99"]),
    ("a pair", USAGE, ["config set x", "tune apply --reason x --set x", "visit --param x", "job run noop --type music --param x",
                       "job run noop --type music --set x", f"job set {JOB} x", "aggregate --type music 'count()' --set x"]),
    ("a setting of a job", USAGE, ["job run noop --type music --set nosuch=1", "job run noop --type music --set throttle=abc",
                                   "aggregate --type music 'count()' --set nosuch=1"]),
    ("a time or a slice", USAGE, ["visit --from abc", "visit --to abc", "visit --slice 9/4", "export new.jsonl --from abc",
                                  "export new.jsonl --slice 9/4"]),
    ("an ending", USAGE, ["export new.doc", "export new.csv", "import table.doc", "feed new.parquet"]),
    ("a bucket", USAGE, ["bucket show 0xzz", "bucket accept-loss 0xzz", "bucket accept-loss"]),
    ("a name out of a list", USAGE, ["visit --visitor nosuch", "job run nosuch --type music", "visit --priority nosuch",
                                     "job run noop --type music --shuffle nosuch", "tune run --metrics 127.0.0.1:1 --controllers x=y"]),
    ("a file that says what to do", USAGE, ["tune advise --workload broken.json", "tune advise --profile broken.json",
                                            "tune plan --workload broken.json", "tune plan --cluster-config broken.json",
                                            "tune run --cluster-config broken.json", "visit --cursor broken.json",
                                            "tune run --workload broken.json --metrics 127.0.0.1:1"]),
    ("there is no such document type", NOT_FOUND, [
        "import --type nosuch --id-row table.csv", "put id:a:nosuch::1 document.json", "put id:a::1 document.json --type nosuch",
        "update id:a:nosuch::1 changes.json", "get id:a:nosuch::1", "remove id:a:nosuch::1", "remove --selection true --type nosuch",
        "update --selection true --type nosuch '{}'", "visit --type nosuch", "export new.jsonl --type nosuch",
        "export new.csv --type nosuch", "subscribe --type nosuch --once", "job run noop --type nosuch",
        "job run noop --type nosuch --wait", "aggregate --type nosuch 'count()'", "aggregate --type music 'count()' --into nosuch"]),
    ("there is no such job", NOT_FOUND, [f"job {verb} {JOB}" for verb in (
        "show", "watch", "cancel", "pause", "resume", "dead-letters", "results", "remove", "results --remove")]
     + [f"job set {JOB} throttle=1MB"]),
    ("there is no such node", NOT_FOUND, each(NODES, "storage.9") + ["local kill --dir {cluster} storage.9",
                                                                     "local restart --dir {cluster} storage.9"]),
    ("there is no such setting", NOT_FOUND, [
        "config get nosuch", "config explain nosuch", "config set nosuch=1", "config unset nosuch", "tune plan --only nosuch",
        "tune apply --reason x --set nosuch=1", "tune apply --reason x --only nosuch"]),
    ("there is no such document", NOT_FOUND, ["get id:a:music::2", "update id:a:music::2 changes.json"]),
    ("there is no such change", NOT_FOUND, ["config revert 99", "tune revert tune-00000000", "balance revert 99"]),
    ("there is no such bucket", NOT_FOUND, ["bucket accept-loss 0x4000000000000012"]),
    ("there is no such file", NOT_FOUND, [
        "feed nofile.jsonl", "import nofile.jsonl", "import --type music --id-row nofile.csv", "put id:a:music::1 nofile",
        "update id:a:music::1 nofile", "update --selection true --type music nofile", "schema deploy nofile.sd",
        "aggregate --spec nofile", "job run script --type music --script nofile", "visit --resume nofile",
        "remove --selection true --type music --yes --resume nofile", "tune advise --workload nofile", "tune advise --profile nofile",
        "tune plan --workload nofile", "tune plan --profile nofile", "tune plan --cluster-config nofile",
        "tune run --workload nofile --metrics 127.0.0.1:1", "tune run --cluster-config nofile",
        "tune apply --reason x --workload nofile"]),
    ("there is no such command", NOT_FOUND, ["man nosuch", "man node nosuch", "help nosuch", "help node nosuch"]),
    ("there is no such folder", NOT_FOUND, ["local stop --dir nowhere", "local status --dir nowhere", "local add-node --dir nowhere",
                                            "local kill --dir nowhere storage.0", "local restart --dir nowhere storage.0"]),
    ("a text or file with a document, changes or a schema", USAGE, [
        "put id:a:music::1 broken.json", "put id:a:music::1 other-field.json", "update id:a:music::1 broken.json",
        "put id:a:music::1 {broken", "update id:a:music::1 {broken", "update id:a:music::1 other-field.json",
        "update --selection true --type music broken.json", "schema deploy broken.sd"]),
    ("a record of a file", FAILED, ["feed broken.json", "import broken.json"]),
    ("a condition that is false", CONDITION_FALSE, [
        "put id:a:music::1 document.json --condition 'music.year > 9'", "update id:a:music::1 changes.json --if-version 1",
        "remove id:a:music::1 --condition 'music.year > 9'"]),
]


class ExitCodesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for name, content in {**FILES, "music.sd": SCHEMA, "feed.jsonl": ""}.items():
            (cls.folder / name).write_text(content)
        helps = {" ".join(command[1:]): command_line_page.help_of(command) for command in command_line_page.commands_of("fjord")}
        # A command may have others below it and still be one: `fjord search`.
        cls.commands = [command for command, text in helps.items() if not command_line_page.subcommands(text) or "[SUBCOMMAND]" in text]

    def check(self, call, code, *more, env=None):
        with self.subTest(call=call):
            finished = harness.run_program("fjord", *shlex.split(call), *more, cwd=self.folder, env=env, stdin="")
            self.assertEqual(finished.code, code, finished)
            self.assertNotEqual(finished.err, "")

    def test_every_command_is_looked_at(self):
        self.assertEqual(sorted(self.commands), sorted({*CALLS, *OTHERS}))

    def test_options(self):
        for command in self.commands:
            self.check(f"{command} {CALLS.get(command, '')} --wibble", USAGE)
            if command in CALLS:
                self.check(f"{command} {CALLS[command]} -o xml", USAGE)
                self.check(f"{command} {CALLS[command]} --timeout -1", USAGE)
                self.check(f"{command} {CALLS[command]} --cluster", USAGE)
                self.check(f"{command} {CALLS[command]} --cluster nonsense", USAGE)

    def test_a_cluster_that_cannot_be_reached(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            refuses = "127.0.0.1:%d" % unused.getsockname()[1]
            with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
                for address in (refuses, "127.0.0.1:%d" % silent.getsockname()[1]):
                    for command, arguments in CALLS.items():
                        self.check(f"{command} {arguments}", FAILED, "--cluster", address, "--timeout", "0.2")

    def test_mistakes(self):
        with harness.Cluster(storage=2, distributors=1, redundancy=1) as cluster:
            cluster.deploy(SCHEMA)
            cluster.must("put", "id:a:music::1", "-", stdin='{"title": "Help!", "year": 1}')
            for what, code, calls in MISTAKES:
                with self.subTest(what=what):
                    for call in calls:
                        self.check(call.replace("{cluster}", str(cluster.directory)), code, env={"FJORD_CLUSTER": cluster.address})
            # These calls changed nothing, and did not fail for another reason.
            self.assertEqual(cluster.documents(), {"id:a:music::1": {"title": "Help!", "year": 1}})
            self.assertEqual(cluster.must("config", "history").out, "")
            for call in ("visit --limit 1", "aggregate --type music 'count()' --limit 1"):
                self.assertEqual(cluster.fjord(*shlex.split(call)).code, OK)


if __name__ == "__main__":
    harness.main()
