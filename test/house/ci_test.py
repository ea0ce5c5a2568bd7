#!/usr/bin/env python3
"""What `.ci/run` runs, leaves out and returns, with a `run` that only notes how it was called."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAKE_RUN = """#!/bin/sh
echo "ran $*"
case "$*" in
  $FAILS) exit 3 ;;
esac
"""


class CiTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        folder = pathlib.Path(self.directory.name)
        (folder / ".ci").mkdir()
        shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
        (folder / "run").write_text(FAKE_RUN)
        (folder / "run").chmod(0o755)

    def ci(self, seconds, fails="nothing"):
        done = subprocess.run([pathlib.Path(self.directory.name) / ".ci/run"], capture_output=True, text=True, check=False,
                              env={**os.environ, "FJORD_CI_SECONDS": str(seconds), "FAILS": fails})
        lines = done.stdout.splitlines()
        ran = [line.removeprefix("ran ") for line in lines if line.startswith("ran ")]
        skipped = [line for line in lines if "SKIPPED" in line]
        return done.returncode, ran, skipped

    def test_all_parts_run_while_there_is_time(self):
        code, ran, skipped = self.ci(2400)
        self.assertEqual(code, 0)
        self.assertEqual(ran[:2], ["test", "test --asan --quick"])
        self.assertEqual([part.split()[0] for part in ran[2:]], ["check"])
        self.assertEqual(skipped, [])

    def test_a_part_that_does_not_fit_is_left_out_with_the_reason(self):
        code, ran, skipped = self.ci(10)
        self.assertEqual((code, ran), (0, ["test"]))
        self.assertEqual(len(skipped), 2)
        self.assertRegex(skipped[0], r"SKIPPED ./run test --asan --quick: it takes up to \d+ s, and \d+ s of 10 s are left")

    def test_a_part_that_fails_fails_the_whole(self):
        for part in ("test", "test --asan --quick", "check*"):
            with self.subTest(part=part):
                code, ran, _ = self.ci(2400, fails=f'{part}')
                self.assertEqual(code, 3)
                self.assertTrue(ran[-1].startswith(part.rstrip("*")))


if __name__ == "__main__":
    unittest.main()
