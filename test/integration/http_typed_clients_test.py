"""Clients that public generators make of openapi.yaml: the description passes a public validator, and the clients in Python and in
TypeScript, which a strict compiler has checked, write and read documents. Skipped with a message where PyPI or npm cannot be reached."""

import pathlib
import shutil
import subprocess
import sys
import unittest

from http_clients import CLIENTS, PYTHON_GENERATOR, SPEC_VALIDATOR, node_folder, python_folder
from http_documents import HttpCluster

DESCRIPTION = pathlib.Path(__file__).resolve().parents[2] / "gateway" / "http" / "openapi.yaml"
# What is not JSON: lines of changes, the description itself and the files of the console.
NOT_IN_PYTHON = {"GET /changes/v1", "POST /changes/v1", "GET /openapi.yaml", "GET /console/{file}"}


def run(case, *command, cwd=None):
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=300, cwd=cwd, check=False)
    case.assertEqual(done.returncode, 0, f"{command}: {done.stdout[-4000:]} {done.stderr[-2000:]}")
    return done.stdout + done.stderr


class DescriptionTest(unittest.TestCase):
    def test_a_public_validator_accepts_the_description(self):
        run(self, python_folder(SPEC_VALIDATOR) / "openapi-spec-validator", DESCRIPTION)


class GeneratedClientsTest(HttpCluster):
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def test_python(self):
        programs = python_folder(PYTHON_GENERATOR)
        folder = self.cluster.folder / "python-client"
        folder.mkdir()
        said = run(self, programs / "openapi-python-client", "generate", "--url", self.url() + "/openapi.yaml", "--meta", "none",
                   "--output-path", folder / "fjord_http", cwd=folder)
        warned = {line.split("parsing ")[1].split(" within")[0] for line in said.splitlines() if line.startswith("WARNING parsing")}
        self.assertEqual(warned, NOT_IN_PYTHON, said)
        shutil.copy(CLIENTS / "generated_calls.py", folder)
        run(self, programs / "python", "-B", "generated_calls.py", self.url(), cwd=folder)

    def test_typescript(self):
        modules = node_folder()
        folder = self.cluster.folder / "typescript-client"
        folder.mkdir()
        (folder / "node_modules").symlink_to(modules)
        shutil.copy(CLIENTS / "generated_calls.mts", folder)
        node = shutil.which("node")
        run(self, node, modules / "openapi-typescript" / "bin" / "cli.js", DESCRIPTION, "-o", "fjord_http.d.ts", cwd=folder)
        run(self, node, modules / "typescript" / "bin" / "tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module",
            "nodenext", "--moduleResolution", "nodenext", "--lib", "es2022,dom,dom.iterable", "--skipLibCheck", "--types", "node",
            "--pretty", "false", "generated_calls.mts", cwd=folder)
        run(self, node, "generated_calls.mjs", self.url(), cwd=folder)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
