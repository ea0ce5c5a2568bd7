"""Where the programs of Debian's package prometheus are: unpacked by `./run test`, or installed."""

import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNPACKED = ROOT / "build" / "test-tools" / "prometheus" / "usr" / "bin"
SKIPPED = 77  # ctest shows the test as skipped.
MISSING = "there is no prometheus: `./run test` unpacks Debian's package into build/test-tools if it can be had"


def find(program):
    """Returns the path of `prometheus` or `promtool`; None if there is none."""
    return shutil.which(program, path=str(UNPACKED)) or shutil.which(program)
