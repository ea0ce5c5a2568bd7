"""README.md, docs/tutorial.md and the tutorials in docs/http work as written: their `sh` blocks are run one after the other, and the `text` and
`console` blocks after one are part of its output. Lines of a `text` block may come in any order, those of a `console` block follow each
other. If a `console` block begins with `$ command`, that command is run until it prints the rest of the block and nothing else. "..." stands for
anything; ports, state versions, numbers of five and more digits and the width of gaps may differ."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"\$ (.*)\n")


def blocks_of(page):
    """Returns [kind, commands, [(kind, expected lines)]] for each block to run, in the order of the page."""
    blocks = []
    for kind, text in FENCE.findall(page.read_text(encoding="utf-8")):
        again = COMMAND.match(text) if kind == "console" else None
        if kind == "sh" or again:
            blocks.append((kind, again.group(1) if again else text, []))
        if kind in ("text", "console") and blocks:
            blocks[-1][2].append((kind, COMMAND.sub("", text, count=1).splitlines()))
    return blocks


def plain(line):
    line = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", line.rstrip())
    line = re.sub(r"\b\d{5,}\b", "NUMBER", re.sub(r"state version \d+", "state version N", line))
    return re.sub(r" {2,}", "  ", line)


def matches(wanted, line):
    return re.match("^" + ".*".join(re.escape(part) for part in plain(wanted).split("...")) + "$", line) is not None


def without(lines, kind, wanted):
    """Returns `lines` without the wanted ones. Raises AssertionError if they are not there."""
    left = list(lines)
    if kind == "console":
        for start in range(len(left) - len(wanted) + 1):
            if all(map(matches, wanted, left[start:])):
                return left[:start] + left[start + len(wanted):]
        raise AssertionError("\n".join(["these lines do not follow each other:", *wanted, "in:", *left]))
    for line in wanted:  # Visits print in any order.
        found = next((one for one in left if matches(line, one)), None)
        assert found is not None, f"{line} is not in {left}"
        left.remove(found)
    return left


class Shell:
    """A shell that is given one block after the other."""

    END = "<end of block>"

    def __init__(self, folder, environment):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(["bash", "-euo", "pipefail"], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        self.timer = threading.Timer(200, self.process.kill)
        self.timer.start()

    def run(self, commands):
        """Returns the lines that the commands print. Raises AssertionError if one of them fails."""
        self.process.stdin.write(f"{{ {commands}\n}} </dev/null\necho; echo '{self.END}'\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.rstrip("\n") == self.END:
                return [plain(one) for one in lines if one.strip()]
            lines.append(line)
        self.errors.seek(0)
        raise AssertionError(f"failed: {commands}\n{''.join(lines)[-2000:]}\n{self.errors.read()[-3000:]}")

    def close(self):
        self.timer.cancel()
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


class PagesTest(unittest.TestCase):
    def run_page(self, page, clusters, least):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-page-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        environment = {**os.environ, "PATH": f"{harness.BIN}{os.pathsep}{os.environ['PATH']}"}
        environment.pop("FJORD_CLUSTER", None)
        for cluster in clusters:
            self.addCleanup(lambda cluster=cluster: (folder / cluster).exists() and subprocess.run(
                [harness.BIN / "fjord", "local", "stop", "--dir", folder / cluster], check=True, capture_output=True))
        blocks = blocks_of(page)
        self.assertGreaterEqual(len(blocks), least, "the page has changed its form")
        shell = Shell(folder, environment)
        self.addCleanup(shell.close)
        for kind, commands, expected in blocks:
            self.check(shell, commands, expected, seconds=60 if kind == "console" else 0)

    @staticmethod
    def check(shell, commands, expected, seconds):
        """Runs the commands, again for up to `seconds` seconds while they print something else."""
        found = []

        def is_as_on_the_page():
            left = shell.run(f"{commands} || true" if seconds else commands)
            try:
                for kind, lines in expected:
                    left = without(left, kind, [line for line in lines if line.strip()])
                assert not (seconds and left), f"the page does not have {left}"
            except AssertionError as error:
                if seconds == 0:
                    raise
                found.append(error)
                return False
            return True
        harness.wait_until(is_as_on_the_page, lambda: found[-1], seconds=seconds, pause=0.3)

    def test_the_tutorial(self):
        self.run_page(ROOT / "docs" / "tutorial.md", ["fjord-tutorial/shop"], 10)

    def test_the_http_tutorial(self):
        self.run_page(ROOT / "docs" / "http" / "tutorial.md", ["fjord-http/shop"], 6)

    def test_analysis_over_http(self):
        self.run_page(ROOT / "docs" / "http" / "analysis.md", ["fjord-analysis/shop"], 5)

    def test_the_quick_start(self):
        self.run_page(ROOT / "README.md", ["my-cluster"], 1)


if __name__ == "__main__":
    harness.main()
