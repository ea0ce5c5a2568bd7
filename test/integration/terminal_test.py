"""What a person sees on a terminal: the end of a progress line, an import that Ctrl-C ends, names of buckets and of nodes."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
import unittest

import harness
from harness import BIN, Cluster, PARTIAL, wait_until

SCHEMA = "document visit { field city type string { header } field cost type int { header } }"
DOCUMENTS = 200


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, cluster, *arguments):
        self.text = ""
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.execve(BIN / "fjord", ["fjord", *(str(one) for one in arguments)],
                      {**os.environ, "FJORD_CLUSTER": cluster.address, "TERM": "xterm"})

    def read(self):
        """Reads what is there. Returns False at the end."""
        while select.select([self.terminal], [], [], 0.05)[0]:
            try:
                data = os.read(self.terminal, 65536)
            except OSError:  # The command has ended.
                return False
            if not data:
                return False
            self.text += data.decode()
        return True

    def wait_for(self, what):
        wait_until(lambda: (self.read(), what in self.text)[1], f"{what!r} in {self.text!r}")

    def end(self):
        """Reads to the end. Returns the exit code."""
        deadline = time.monotonic() + 60
        while self.read():
            assert time.monotonic() < deadline, self.text
        _, status = os.waitpid(self.child, 0)
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(status)

    def lines(self):
        """Returns the lines as a terminal shows them: what follows a carriage return replaces what was there."""
        shown = [line.split("\r")[-1] for line in self.text.replace("\r\n", "\n").split("\n")]
        return [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line) for line in shown]


class TerminalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(storage=2)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.cluster.deploy(SCHEMA)
        cls.cluster.must("feed", "-", stdin="".join(json.dumps({"put": f"id:v:visit::{i}", "fields": {"city": "Oslo", "cost": i}}) + "\n"
                                                    for i in range(DOCUMENTS)))

    def throttled_job(self):
        return self.cluster.must("job", "run", "fieldstats", "--type", "visit", "--param", "group=city", "--param", "value=cost",
                                 "--shuffle", "store", "--set", "throttle=100").out.split()[0]

    def test_what_follows_a_progress_line_begins_a_line(self):
        job = self.throttled_job()
        watching = Terminal(self.cluster, "job", "watch", job)
        watching.wait_for("docs,")  # The progress line is drawn.
        self.cluster.must("job", "cancel", job)
        watching.end()
        lines = watching.lines()
        self.assertTrue(any(re.match(rf"job +{job}$", line) for line in lines), watching.text)
        self.assertEqual([line for line in lines if "docs," in line and job in line], [], watching.text)

    def test_a_message_takes_the_place_of_the_progress_line(self):
        job = self.throttled_job()
        running = Terminal(self.cluster, "job", "watch", job, "--progress", "always")
        running.wait_for("docs,")
        self.cluster.must("job", "cancel", job)
        running.end()
        self.assertTrue(any(re.match(rf"fjord: job {job} cancelled", line) for line in running.lines()), running.text)

    def test_an_end_of_an_import_from_a_pipe_is_said(self):
        process = subprocess.Popen([BIN / "fjord", "feed", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, "FJORD_CLUSTER": self.cluster.address})
        self.addCleanup(process.kill)
        process.stdin.write("".join(json.dumps({"put": f"id:pipe:visit::{i}", "fields": {"cost": i}}) + "\n" for i in range(50_000)))
        process.stdin.flush()
        wait_until(lambda: self.cluster.fjord("get", "id:pipe:visit::0").code == 0, "the first document is stored")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, PARTIAL, err)
        self.assertRegex(err, r"a signal after \d+ documents were stored; with --cursor FILE")

    def test_an_import_of_a_file_is_ended_and_goes_on(self):
        rows = 20000
        text = "key,cost\n" + "".join(f"{i},{i}\n" for i in range(rows))
        file, cursor = self.cluster.file("rows.csv", text), self.cluster.folder / "cursor"
        command = [BIN / "fjord", "import", "--type", "visit", "--id-field", "key", "--cursor", cursor, "--in-flight", "1", file]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "FJORD_CLUSTER": self.cluster.address})
        self.addCleanup(process.kill)
        wait_until(lambda: self.cluster.fjord("get", "id:visit:visit::0").code == 0, "the first row is stored")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        if process.returncode == 0:
            self.skipTest("the import was faster than the signal")
        self.assertEqual(process.returncode, PARTIAL, err)
        stored = json.loads(out)["ok"]
        self.assertIn(f"SIGINT after {stored} documents were stored; --cursor {cursor} goes on behind them", err)
        self.assertLess(stored, rows)
        self.cluster.must("import", "--type", "visit", "--id-field", "key", "--cursor", cursor, file)
        self.assertEqual(self.cluster.must("visit", "--type", "visit", "--selection", "id.namespace == 'visit'", "--count").out.strip(), str(rows))

    def test_a_bucket_has_the_name_that_balancing_shows(self):
        self.cluster.must("config", "set", "balancer.mode=advise", "balancer.load=operations", "balancer.round=1s", "balancer.operations_min=1")
        self.addCleanup(self.cluster.must, "config", "unset", "balancer.mode", "balancer.load", "balancer.round", "balancer.operations_min")

        def slices():
            self.cluster.must("get", "id:v:visit::7")
            return self.cluster.must("balance", "slices", "--limit", "3").out.splitlines()[1:]
        shown = wait_until(slices, "loads of buckets")
        self.assertLessEqual(len(shown), 3)
        name = shown[0].split()[0]
        self.assertRegex(name, r"^0x[0-9a-f]+$")
        found = self.cluster.must("bucket", "show", name, "-o", "json").json()
        self.assertEqual(int(found["bucket"], 16) & ((1 << found["bits"]) - 1), int(name, 16))
        self.assertEqual(self.cluster.must("bucket", "show", name.removeprefix("0x"), "-o", "json").json()["bucket"], found["bucket"])
        refused = self.cluster.fjord("bucket", "show", "0xfffffff")
        self.assertIn("distribution bits", refused.err)

    def test_nodes_may_be_joined_with_commas(self):
        plan = self.cluster.fjord("node", "retire", "storage.0,storage.1", "--dry-run", "-o", "json")
        self.assertEqual(json.loads(plan.out)["nodes"], ["storage.0", "storage.1"], plan)

    def test_a_reason_of_a_setting_is_in_the_history(self):
        self.cluster.must("config", "set", "storage.visitors_max=50", "--reason", "more jobs: two")
        self.cluster.must("config", "unset", "storage.visitors_max", "--reason", "back")
        versions = self.cluster.must("config", "history", "-o", "json").json_lines()[-2:]
        self.assertEqual([one["why"] for one in versions], ["more jobs: two", "back"])
        self.assertTrue(all("two" not in one["who"] for one in versions), versions)
        entries = self.cluster.must("state", "log", "-o", "json").json_lines()
        self.assertEqual([one["why"] for one in entries if one["what"].startswith("configuration")][-2:], ["more jobs: two", "back"])


if __name__ == "__main__":
    harness.main()
