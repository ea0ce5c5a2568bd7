"""A client that the stock Thrift compiler generated for Python puts and gets on a real cluster: see python/client_check.py."""

import os
import pathlib
import subprocess
import sys
import unittest

import harness

HERE = pathlib.Path(__file__).parent


class PythonClientTest(unittest.TestCase):
    def test_put_and_get(self):
        with harness.Cluster(storage=2, distributors=1, redundancy=2) as cluster:
            check = subprocess.run([sys.executable, str(HERE / "python" / "client_check.py"), "--gen-dir",
                                    os.environ["FJORD_GENERATED_PYTHON"], cluster.address],
                                   capture_output=True, text=True, timeout=120)
            self.assertEqual(check.returncode, 0, check.stdout + check.stderr + cluster.logs())
            self.assertEqual(cluster.status()["health"], "healthy")


if __name__ == "__main__":
    harness.main()
