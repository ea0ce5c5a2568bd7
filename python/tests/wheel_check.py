#!/usr/bin/env python3
"""Installs the wheels of a folder into empty virtual environments, one for each interpreter, and uses a cluster from there.

    wheel_check.py --wheels build/python --programs build/release/bin INTERPRETER...

The environment has neither this checkout nor its build folders on any path; only the programs of the cluster come from there.
`./run python --check` calls this.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

USE = pathlib.Path(__file__).resolve().with_name("wheel_use.py")


def run(command, folder, **variables):
    """Runs a command with an environment that says nothing of Python and Fjord."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FJORD", "LD_", "VIRTUAL_ENV"))}
    subprocess.run([str(word) for word in command], cwd=folder, env={**kept, **variables}, check=True)


def check(interpreter, wheels, programs):
    with tempfile.TemporaryDirectory(prefix="fjord-wheel-") as name:
        folder = pathlib.Path(name)
        run([interpreter, "-m", "venv", "environment"], folder)
        python = folder / "environment" / "bin" / "python"
        run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--find-links", wheels, "fjord"], folder)
        # Not from the checkout: Python puts the folder of a program on its path.
        program = shutil.copy(USE, folder)
        run([python, "-I", "-B", program], folder, FJORD_BIN=str(programs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=pathlib.Path, required=True, help="folder of the wheels")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of fjordd and fjord")
    parser.add_argument("interpreters", metavar="INTERPRETER", nargs="+")
    options = parser.parse_args()
    for interpreter in options.interpreters:
        try:
            check(interpreter, options.wheels.resolve(), options.programs.resolve())
        except subprocess.CalledProcessError as error:
            sys.exit(f"wheel_check: {interpreter}: {error}")


if __name__ == "__main__":
    main()
