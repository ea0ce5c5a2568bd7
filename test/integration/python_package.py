"""The Python package `fjord`, as the command line finds it for Parquet files: python3 on the PATH imports it.

If this build has the package, it is made to be the one that is found, with the interpreter that it was built for.
"""

import os
import pathlib
import shutil
import subprocess

import harness

_PACKAGES = harness.BIN.resolve().parent / "python"
_ENVIRONMENT = pathlib.Path(__file__).resolve().parents[2] / "build" / "test-python" / "bin"
if any((_PACKAGES / "fjord").glob("_core*.so")) and (_ENVIRONMENT / "python3").exists():
    os.environ["PATH"] = f"{_ENVIRONMENT}{os.pathsep}{os.environ['PATH']}"
    os.environ["PYTHONPATH"] = str(_PACKAGES)
PYTHON = shutil.which("python3")


def has_module(*names):
    """Returns whether PYTHON imports all these modules."""
    return PYTHON is not None and subprocess.run([PYTHON, "-c", f"import {', '.join(names)}"], capture_output=True).returncode == 0
