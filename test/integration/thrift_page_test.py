"""The Python samples of docs/clients/thrift.md work, one after the other, on a cluster."""

import os
import pathlib
import re
import unittest

import harness

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "clients" / "thrift.md"
SCHEMA = """document item {
  field name type string { header }
  field price type int { header }
}"""


class ThriftPageTest(unittest.TestCase):
    def test_every_sample(self):
        samples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        self.assertGreater(len(samples), 6)
        with harness.Cluster(storage=2) as cluster:
            cluster.deploy(SCHEMA)
            host, port = cluster.address.rsplit(":", 1)
            program = "\n".join(samples)
            self.assertEqual(program.count('"gen-py"'), 1)
            program = program.replace('"gen-py"', repr(os.environ["FJORD_GENERATED_PYTHON"]))
            self.assertEqual(program.count('connect("127.0.0.1", 19100)'), 1)
            program = program.replace('connect("127.0.0.1", 19100)', f"connect({host!r}, {port})")
            exec(compile(program, str(PAGE), "exec"), {})


if __name__ == "__main__":
    harness.main()
