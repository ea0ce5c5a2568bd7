"""The installed package as its users see it: plugins and a program are built with it and used with a cluster."""

import collections
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import harness
from python_package import PYTHON, has_module

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = harness.BIN.parent
SCHEMA = "document item { field count type int { header } }"


def run(*command):
    finished = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert finished.returncode == 0, f"{command}\n{finished.stdout[-3000:]}\n{finished.stderr[-3000:]}"
    return finished.stdout


def word_counts(texts):
    """Returns the expected result of word_count on these texts."""
    words, documents = collections.Counter(), collections.Counter()
    for text in texts:
        words.update(text.split())
        documents.update(set(text.split()))
    return {word: {"words": words[word], "documents": documents[word]} for word in words}


class PluginTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-plugin-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.prefix = cls.folder / "installed"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.examples = cls.build(SOURCE / "examples" / "plugin", "build")

    @classmethod
    def build(cls, source, name):
        built = cls.folder / name
        run("cmake", "-S", source, "-B", built, f"-DCMAKE_PREFIX_PATH={cls.prefix}")
        run("cmake", "--build", built)
        return built

    def plugins(self, name, *libraries):
        """Makes a plugin directory with these plugins."""
        plugins = self.folder / name
        plugins.mkdir()
        for library in libraries:
            shutil.copy(library, plugins)
        return plugins

    def test_from_install_to_visit(self):
        examples = self.examples
        plugins = self.plugins("visitors", examples / "sample.so")
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

    def test_from_install_to_job(self):
        plugins = self.plugins("applications", self.examples / "word_count.so")
        texts = [f"all {i % 7} of {i * i % 101} words  and {i % 7} more" for i in range(3000)]
        expected = word_counts(texts)
        with harness.Cluster(storage=3, settings=f"storage_options:\n  plugin_directory: {plugins}\n") as cluster:
            cluster.deploy("document page { field text type string { body } }")
            feed = [json.dumps({"put": f"id:test:page::{i}", "fields": {"text": text}}) for i, text in enumerate(texts)]
            cluster.must("feed", "-", stdin="\n".join(feed))
            for shuffle in ("store", "direct"):
                job = cluster.must("job", "run", "word_count", "--type", "page", "--shuffle", shuffle, "--wait", "-o", "json")
                self.assertEqual(job.json()["documents_read"], 3000)
                self.assertEqual(cluster.results(job.json()["job"]), expected, shuffle)
            longer = cluster.must("job", "run", "word_count", "--type", "page", "--param", "min_length=4", "--wait", "-o", "json")
            self.assertEqual(set(cluster.results(longer.json()["job"])), {"words", "more"})
            wrong = cluster.fjord("job", "run", "word_count", "--type", "page", "--param", "field=title")
            self.assertIn("the type page has no field title of text", wrong.err)
            self.check_chain(cluster, expected)
            self.check_python(cluster, expected)
            self.check_killed(cluster, expected)
            self.check_versions(cluster, plugins, expected)

    def check_chain(self, cluster, expected):
        """The application reads its own results again, and an aggregation reads them."""
        letters = json.dumps({"application": "word_count", "parameters": {"field": "key", "min_length": "4"}})
        by_value = json.dumps({"group_by": "value", "aggregates": "count() AS words"})
        for shuffle in ("store", "direct"):
            run = ["job", "run", "word_count", "--type", "page", "--shuffle", shuffle, "--wait", "-o", "json"]
            twice = cluster.must(*run, "--then", letters).json()
            self.assertEqual(cluster.results(twice["job"]),
                             {word: {"words": 1, "documents": 1} for word in expected if len(word) >= 4}, shuffle)
            counted = cluster.must(*run, "--then", by_value).json()
            self.assertEqual([one["application"] for one in counted["passes"]], ["word_count", "aggregate"])
            rows = cluster.must("job", "results", counted["job"], "-o", "json").json_lines()
            self.assertEqual(sum(row["value"][1] for row in rows), len(expected), shuffle)
        wrong = cluster.fjord("job", "run", "word_count", "--type", "page", "--then", '{"application": "words"}')
        self.assertIn('pass 2: there is no application "words"', wrong.err)

    def check_python(self, cluster, expected):
        """The Python package, if there is one, sees the plugin, runs it with parameters, and names what is wrong."""
        if not has_module("fjord"):
            return
        done = subprocess.run([PYTHON, "-c", """
import json, sys, fjord
from fjord.jobs import aggregation, application
with fjord.Client(sys.argv[1]) as client:
    plugins = client.admin.plugins()
    every = client.jobs.run(application("word_count", "page"))
    longer = client.jobs.run(application("word_count", "page", "page.text != ''", parameters={"min_length": 4}))
    counted = client.jobs.run([application("word_count", "page"), aggregation(group_by=["value"], aggregates=["count() as words"])])
    try:
        client.jobs.submit(application("word_count", "page", parameters={"field": "title"}))
        error = None
    except fjord.InvalidRequest as refused:
        error = str(refused)
    print(json.dumps([[one._asdict() for one in plugins.functions], plugins.problems, plugins.storage_nodes,
                      {row.key: row.value for row in every.results()}, sorted(row.key for row in longer.results()),
                      sum(row.value[1] for row in counted.results()), error]))""", cluster.address],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        functions, problems, nodes, every, longer, words, error = json.loads(done.stdout)
        self.assertEqual([(one["name"], one["kind"]) for one in functions], [("word_count", "application")])
        self.assertEqual(len(functions[0]["nodes"]), 4)  # Three storage nodes and the distributor.
        self.assertEqual((problems, nodes), ([], 3))
        self.assertEqual(every, expected)
        self.assertEqual(longer, ["more", "words"])
        self.assertEqual(words, len(expected))
        self.assertIn("the type page has no field title of text", error)

    def check_killed(self, cluster, expected):
        """Kills a node in the middle of the job."""
        job = cluster.must("job", "run", "word_count", "--type", "page", "--set", "throttle=3000").out.strip()

        def has_begun():
            shown = cluster.must("job", "show", job, "-o", "json").json()
            return 0 < shown["map_tasks_done"] < shown["map_tasks"]
        harness.wait_until(has_begun, "some of the tasks are done")
        cluster.kill("storage.1")
        cluster.must("job", "set", job, "throttle=0")
        ended = cluster.wait_for_job(job, ("done", "failed"))
        self.assertEqual((ended["phase"], ended["documents_read"]), ("done", 3000), ended)
        self.assertEqual(cluster.results(job), expected)
        cluster.restart("storage.1")
        cluster.wait_healthy()

    def check_versions(self, cluster, plugins, expected):
        """Installs another version on one node, and later on all."""
        newer = self.folder / "newer"
        shutil.copytree(SOURCE / "examples" / "plugin", newer)
        source = (newer / "word_count.cpp").read_text()
        self.assertEqual(source.count('{"1",'), 1)
        (newer / "word_count.cpp").write_text(source.replace('{"1",', '{"2",'))
        library = plugins / "word_count.so"
        library.unlink()  # Processes may still have it open.
        shutil.copy(self.build(newer, "newer-build") / "word_count.so", library)
        cluster.restart("storage.1")
        cluster.wait_healthy()
        refused = cluster.fjord("job", "run", "word_count", "--type", "page")
        self.assertEqual(refused.code, harness.USAGE, str(refused))
        self.assertIn("word_count was replaced by one with version 2; this node was started with version 1", refused.err)
        cluster.restart("distributor.0")
        harness.wait_until(lambda: "storage.0 has version 1; storage.2 has version 1" in
                           cluster.fjord("job", "run", "word_count", "--type", "page").err, "the others are named")
        offered = [line for line in cluster.must("plugin", "list", "-o", "json").json_lines()]
        self.assertEqual([(line["name"], line["kind"], line["version"], line["nodes"]) for line in offered],
                         [("word_count", "application", "1", ["storage.0", "storage.2"]),
                          ("word_count", "application", "2", ["storage.1", "distributor.0"])])
        for node in ("storage.0", "storage.2"):
            cluster.restart(node)
            cluster.wait_healthy()
        self.assertRegex(cluster.must("plugin", "list").out, "word_count +application +2 +3 of 3 +1 of 1")
        job = cluster.must("job", "run", "word_count", "--type", "page", "--wait", "-o", "json").json()["job"]
        self.assertEqual(cluster.results(job), expected)
        unknown = cluster.fjord("job", "run", "word_counts", "--type", "page")
        self.assertIn('distributor.0: there is no application "word_counts"; there are:', unknown.err)

    def test_bad_applications_do_not_harm(self):
        plugins = self.plugins("bad", BUILD / "test" / "plugins" / "plugins" / "test_applications.so")
        settings = f"storage_options:\n  plugin_directory: {plugins}\n  plugin_call_timeout_ms: 2000\n"
        with harness.Cluster(storage=2, settings=settings) as cluster:
            cluster.deploy(SCHEMA)
            feed = "".join(f'{{"put": "id:test:item::{i}", "fields": {{"count": {i}}}}}\n' for i in range(2000))
            cluster.must("feed", "-", stdin=feed)
            pids = [path.read_text() for path in sorted(cluster.directory.glob("run/*.pid"))]
            sums = {str(digit): sum(i for i in range(2000) if i % 10 == digit and i != 77) for digit in range(10)}
            for how, why in {"throws": "a bad day", "crashes": "signal 6", "loops": "did not return", "leaks": "bad_alloc"}.items():
                arguments = ["sums", "--type", "item", "--param", f"how={how}", "--param", "at=77", "--wait", "-o", "json"]
                partly = cluster.fjord("job", "run", *arguments)
                self.assertEqual(partly.code, harness.PARTIAL, partly)
                job = partly.json()
                self.assertEqual((job["dead_letters"], job["documents_read"]), (1, 2000), how)
                self.assertEqual(cluster.results(job["job"]), sums, how)
                letters = cluster.must("job", "dead-letters", job["job"], "-o", "json").json_lines()
                self.assertEqual(letters[0]["document"], "id:test:item::77")
                self.assertIn(why, letters[0]["error"])
                failed = cluster.fjord("job", "run", *arguments, "--set", "dead_letters_max=0")
                self.assertEqual(failed.code, harness.FAILED, str(failed))
                self.assertIn("id:test:item::77", failed.json()["error"])
            reduced = cluster.fjord("job", "run", "sums", "--type", "item", "--param", "how=reduce throws", "--wait", "-o", "json")
            self.assertIn('key "5": reduce() threw an exception: a bad key', reduced.json()["error"])
            self.check_hostile_results(cluster)
            self.assertEqual([path.read_text() for path in sorted(cluster.directory.glob("run/*.pid"))], pids)
            cluster.wait_healthy()

    def check_hostile_results(self, cluster):
        """What reduce() returns is read in the node itself, in storage nodes or in the distributor."""
        for shuffle in ("store", "direct"):
            for how, why in {"brackets": "more than 64", "nested lists": "more than 64", "zeros": "JSON, byte 0", "no UTF-8": "not UTF-8"}.items():
                failed = cluster.fjord("job", "run", "sums", "--type", "item", "--param", f"how={how}", "--shuffle", shuffle, "--wait", "-o", "json")
                self.assertEqual(failed.code, harness.FAILED, str(failed))
                self.assertIn(why, failed.json()["error"])
        for file in cluster.directory.glob("run/*.pid"):
            self.assertTrue(pathlib.Path("/proc", file.read_text().split()[0], "exe").exists(), f"{file.name}: its process has ended")

    def visit(self, cluster, one_in):
        visited = cluster.must("visit", "--type", "item", "--visitor", "sample", "--param", f"one_in={one_in}")
        return [line["put"] for line in visited.json_lines()]

    def check_log(self, cluster):
        logs = "".join(path.read_text() for path in cluster.directory.glob("logs/storage.*.log"))
        self.assertIn("sample.so: 1 visitors, 0 applications", logs)
        self.assertIn("broken.so is not used: cannot be loaded", logs)

    def check_refused(self, cluster):
        for arguments in (["--visitor", "sample"], ["--visitor", "sample", "--param", "one_in=0"]):
            refused = cluster.fjord("visit", *arguments)
            self.assertEqual(refused.code, harness.USAGE, str(refused))
            self.assertIn("sample needs one parameter", refused.err)
        unknown = cluster.fjord("visit", "--visitor", "samples")
        self.assertEqual(unknown.code, harness.USAGE, str(unknown))
        self.assertIn('no visitor "samples"; there are:', unknown.err)
        self.assertIn("sample", unknown.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
