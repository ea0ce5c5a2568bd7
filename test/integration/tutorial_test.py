"""README.md, docs/tutorial.md and the tutorials in docs/http work as written: their `sh` blocks are run one after the other, and the `text` block
after one is part of its output. "..." stands for anything; ports and state versions may differ."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def blocks_of(page):
    """Returns (shell commands, expected lines or None) in the order of the page."""
    blocks = []
    for kind, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "sh":
            blocks.append((text, None))
        elif kind == "text" and blocks and blocks[-1][1] is None:
            blocks[-1] = (blocks[-1][0], text.splitlines())
    return blocks


def plain(line):
    return re.sub(r"state version \d+", "state version N", re.sub(r"127\.0\.0\.1:\d+ *", "ADDRESS ", line.rstrip()))


def pattern_of(line):
    return "^" + ".*".join(re.escape(part) for part in plain(line).split("...")) + "$"


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
        # Each block ends with a line that separates it from the next one.
        script = "".join(f"{commands}\necho '<end of block {number}>'\n" for number, (commands, _) in enumerate(blocks))
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, text=True,
                              capture_output=True, timeout=200)
        self.assertEqual(done.returncode, 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
        printed = re.split(r"<end of block \d+>\n", done.stdout)
        for (commands, expected), lines in zip(blocks, (text.splitlines() for text in printed)):
            if expected is None:
                continue
            with self.subTest(page=page.name, commands=commands):
                left = [plain(line) for line in lines]
                for wanted in map(pattern_of, expected):  # Visits print in any order.
                    found = next((line for line in left if re.match(wanted, line)), None)
                    self.assertIsNotNone(found, f"{wanted} is not in {left}")
                    left.remove(found)

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
