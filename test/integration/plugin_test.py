"""The installed package, as its users see it: a plugin and a program are built against it and used with a cluster."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = harness.BIN.parent
SCHEMA = "document item { field count type int { header } }"


def run(*command):
    finished = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert finished.returncode == 0, f"{command}\n{finished.stdout[-3000:]}\n{finished.stderr[-3000:]}"
    return finished.stdout


class PluginTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-plugin-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def test_from_install_to_visit(self):
        prefix = self.folder / "installed"
        examples = self.folder / "build"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        run("cmake", "-S", SOURCE / "examples" / "plugin", "-B", examples, f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", examples)
        plugins = self.folder / "plugins"
        plugins.mkdir()
        shutil.copy(examples / "sample.so", plugins)
        (plugins / "broken.so").write_text("this is no library")

        with harness.Cluster(storage=2, settings=f"storage_options:\n  plugin_directory: {plugins}\n") as cluster:
            cluster.deploy(SCHEMA)
            feed = "".join(f'{{"put": "id:test:item::{i}", "fields": {{"count": {i}}}}}\n' for i in range(2000))
            cluster.must("feed", "-", stdin=feed)
            self.check_log(cluster)
            every = self.visit(cluster, 1)
            self.assertEqual(len(every), 2000)
            tenth = self.visit(cluster, 10)
            self.assertTrue(100 < len(tenth) < 300, len(tenth))
            self.assertLessEqual(set(tenth), set(every))
            self.assertEqual(set(self.visit(cluster, 10)), set(tenth))
            self.check_refused(cluster)

            got = run(examples / "put_and_get", cluster.address, "id:test:item::new", '{"count": 7}')
            self.assertIn('"count":7', got.replace(" ", ""))

    def visit(self, cluster, one_in):
        visited = cluster.must("visit", "--type", "item", "--visitor", "sample", "--param", f"one_in={one_in}")
        return [line["put"] for line in visited.json_lines()]

    def check_log(self, cluster):
        logs = "".join(path.read_text() for path in cluster.directory.glob("logs/storage.*.log"))
        self.assertIn("sample.so: 1 visitors", logs)
        self.assertIn("broken.so is not used: cannot be loaded", logs)

    def check_refused(self, cluster):
        for arguments in (["--visitor", "sample"], ["--visitor", "sample", "--param", "one_in=0"]):
            refused = cluster.fjord("visit", *arguments)
            self.assertEqual(refused.code, harness.FAILED, str(refused))
            self.assertIn("sample needs one parameter", refused.err)
        unknown = cluster.fjord("visit", "--visitor", "samples")
        self.assertEqual(unknown.code, harness.FAILED, str(unknown))
        self.assertIn('no visitor "samples"; there are:', unknown.err)
        self.assertIn("sample", unknown.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
