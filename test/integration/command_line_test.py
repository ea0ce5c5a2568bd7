"""The command line: help with examples, exit codes of wrong usage, JSON that parses, and the cluster in one process."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.request

import command_line_page
import harness
from harness import FAILED, NOT_FOUND, OK, USAGE


def help_of(*command):
    return harness.run_program("fjord", *command, "--help")


def all_commands():
    return [command[1:] for command in command_line_page.commands_of("fjord")]


class HelpTest(unittest.TestCase):
    def test_every_command_has_help_with_an_example(self):
        commands = all_commands()
        self.assertGreaterEqual(len(commands), 25, commands)
        for command in commands:
            shown = help_of(*command)
            with self.subTest(command=command):
                self.assertEqual(shown.code, OK)
                self.assertEqual(shown.err, "")
                self.assertRegex(shown.out, r"Examples?:\s+[^\n]*fjord")
                self.assertIn("xit codes: 0", shown.out)

    def test_the_reference_page_says_what_the_programs_say(self):
        self.assertEqual(command_line_page.PAGE.read_text(), command_line_page.page(),
                         f"to bring the page up to date: {command_line_page.__doc__.splitlines()[2].strip()}")

    def test_every_argument_has_a_meaning(self):
        for program in ("fjord", "fjordd", "fjord-inspect"):
            for command in command_line_page.commands_of(program):
                for name, meaning in command_line_page.arguments_of(command_line_page.help_of(command)):
                    self.assertNotEqual(meaning, "", f"{' '.join(command)} {name}")

    def test_all_commands_are_there(self):
        names = {" ".join(command) for command in all_commands()}
        for name in ("dev", "local create", "local start", "local stop", "local status", "local kill", "local restart", "schema deploy",
                     "schema list", "feed", "import", "put", "get", "remove", "visit", "job run", "job list", "job show",
                     "job watch", "job cancel", "job results", "status"):
            self.assertIn(name, names)

    def test_wrong_usage(self):
        for command in ([], ["wibble"], ["get"], ["put", "id:a:b::c"], ["local"], ["local", "start"], ["job", "run", "noop"],
                        ["status", "-o", "xml"], ["status", "--timeout", "-1"], ["import", "--type", "a", "b.csv"]):
            finished = harness.run_program("fjord", *command)
            self.assertEqual(finished.code, USAGE, finished)
            self.assertNotEqual(finished.err, "")
            self.assertEqual(finished.out, "")

    def test_fjordd(self):
        self.assertIn("Example:", harness.run_program("fjordd", "--help").out)
        self.assertIn("storage_options.stripes", harness.run_program("fjordd", "--help-config").out)
        self.assertEqual(harness.run_program("fjordd").code, USAGE)
        self.assertEqual(harness.run_program("fjordd", "--config", "/nowhere.yaml", "--node", "storage.0").code, USAGE)


class DevTest(unittest.TestCase):
    """`fjord dev` is the quickest way to a cluster, so the other commands are tested on it."""

    SCHEMA = "document music {\n  field title type string { header }\n  field year type int { header }\n}\n"

    def start(self, directory=None):
        arguments = [str(harness.BIN / "fjord"), "dev"] + (["--dir", str(directory)] if directory else [])
        for _ in range(10):
            process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(lambda ended=process: ended.poll() is None and ended.kill())
            line = process.stdout.readline()
            if line.startswith("export FJORD_CLUSTER="):
                return process, {"FJORD_CLUSTER": line.strip().split("=", 1)[1]}
            process.kill()
            said = line + process.communicate()[1]
            if "Address already in use" not in said:  # Another program took a port between the choice and the start.
                break
        self.fail(said)

    def stop(self, process, how=signal.SIGINT):
        process.send_signal(how)
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, OK, out + err)
        return err

    def fjord(self, env, *arguments, stdin=None, code=OK):
        finished = harness.run_program("fjord", *arguments, stdin=stdin, env=env)
        self.assertEqual(finished.code, code, finished)
        return finished

    def test_commands_and_their_json(self):
        with tempfile.TemporaryDirectory() as folder:
            process, env = self.start()
            schema = pathlib.Path(folder) / "music.sd"
            schema.write_text(self.SCHEMA)
            self.assertEqual(self.fjord(env, "schema", "deploy", schema, "-o", "json").json(), {"schema_version": 1, "warnings": []})
            types = {line["type"]: line for line in self.fjord(env, "schema", "list", "-o", "json").json_lines()}
            self.assertEqual([field["name"] for field in types["music"]["fields"]], ["title", "year"])
            self.fjord(env, "put", "id:a:music::1", '{"title": "given on the command line"}')
            self.assertEqual(self.fjord(env, "get", "id:a:music::1").json()["fields"], {"title": "given on the command line"})
            self.fjord(env, "put", "id:a:music::1", '{"title": 5', code=USAGE)
            self.fjord(env, "remove", "id:a:music::1")
            put = self.fjord(env, "put", "id:a:music::1", "-", "-o", "json", stdin='{"title": "\\u00e6", "year": 1}').json()
            self.assertEqual((put["outcome"], put["existed"]), ("applied", False))
            self.fjord(env, "feed", "-", stdin="".join(
                json.dumps({"put": f"id:a:music::{n}", "fields": {"title": "t", "year": n % 3}}) + "\n" for n in range(2, 12)))
            self.assertEqual(self.fjord(env, "get", "id:a:music::1").json()["fields"], {"title": "æ", "year": 1})
            self.assertEqual(len(self.fjord(env, "visit").json_lines()), 11)
            job = self.fjord(env, "job", "run", "citycount", "--type", "music", "--param", "field=year", "-o", "json").json()["job"]
            self.assertEqual(self.fjord(env, "job", "watch", job, "-o", "json").json()["phase"], "done")
            self.assertEqual(self.fjord(env, "job", "show", job, "-o", "json").json()["results"], 3)
            self.assertIn(job, [line["job"] for line in self.fjord(env, "job", "list", "-o", "json").json_lines()])
            self.assertIn(job, self.fjord(env, "job", "list").out)
            self.assertEqual(self.fjord(env, "job", "results", job, "-o", "json").json_lines(),
                             [{"key": "0", "value": 3}, {"key": "1", "value": 4}, {"key": "2", "value": 4}])
            self.assertEqual(self.fjord(env, "job", "results", job).out.splitlines()[0], "0\t3")
            removed = self.fjord(env, "remove", "id:a:music::1", "-o", "json").json()
            self.assertTrue(removed["existed"])
            self.fjord(env, "get", "id:a:music::1", code=NOT_FOUND)
            status = self.fjord(env, "status", "-o", "json").json()
            self.assertEqual(status["health"], "healthy")
            self.assertEqual({node["node"]: node["state"] for node in status["nodes"]}, {"storage.0": "up", "distributor.0": "up"})
            self.assertIn("healthy", self.fjord(env, "status").out)
            self.stop(process)

    def test_an_id_may_leave_its_type_to_an_option(self):
        with tempfile.TemporaryDirectory() as folder:
            process, env = self.start()
            schema = pathlib.Path(folder) / "music.sd"
            schema.write_text(self.SCHEMA)
            self.fjord(env, "schema", "deploy", schema)
            for short, whole in (("id:a::1", "id:a:music::1"), ("id:a:::1:2", "id:a:music::1:2"), ("id:a::n=7:x", "id:a:music:n=7:x")):
                with self.subTest(id=short):
                    put = self.fjord(env, "put", short, "-", "--type", "music", "-o", "json", stdin='{"year": 1}').json()
                    self.assertEqual((put["id"], put["outcome"]), (whole, "applied"))
                    self.fjord(env, "update", short, "-", "--type", "music", stdin='{"year": {"increment": 1}}')
                    self.assertEqual(self.fjord(env, "get", short, "--type", "music").json(), {"put": whole, "fields": {"year": 2}})
                    self.assertEqual(self.fjord(env, "get", whole).out, self.fjord(env, "get", whole, "--type", "music").out)
                    self.assertEqual(self.fjord(env, "remove", short, "--type", "music", "-o", "json").json()["id"], whole)
                    self.fjord(env, "get", whole, code=NOT_FOUND)
                    for command in ("put", "update"):
                        without = self.fjord(env, command, short, "-", stdin="{}", code=USAGE)
                        self.assertIn("--type", without.err)
                    for command in ("get", "remove"):
                        self.assertIn("--type", self.fjord(env, command, short, code=USAGE).err)
            self.assertIn("--type says artist", self.fjord(env, "get", "id:a:music::1", "--type", "artist", code=USAGE).err)
            self.stop(process)

    def test_the_example_of_subscribe_works_as_it_is_printed(self):
        example = re.search(r"^Example:\n  (.*)$", help_of("subscribe").out, re.MULTILINE).group(1)
        with tempfile.TemporaryDirectory() as folder:
            process, env = self.start()
            schema = pathlib.Path(folder) / "music.sd"
            schema.write_text(self.SCHEMA)
            self.fjord(env, "schema", "deploy", schema)
            self.fjord(env, "put", "id:a:music::1", "-", stdin='{"year": 1}')
            changes = pathlib.Path(folder) / "music.changes.jsonl"

            def seen():
                return [json.loads(line).get("put") for line in changes.read_text().splitlines()] if changes.exists() else []

            def follow():
                path = f"{harness.BIN}:{os.environ['PATH']}"
                follower = subprocess.Popen(["sh", "-c", example], cwd=folder, env={**os.environ, **env, "PATH": path},
                                            start_new_session=True)
                self.addCleanup(lambda: follower.poll() is None and os.killpg(follower.pid, signal.SIGKILL))
                return follower

            follower = follow()
            harness.wait_until(lambda: seen() == ["id:a:music::1"], f"{example} prints what is there")
            self.fjord(env, "put", "id:a:music::2", "-", stdin='{"year": 2}')
            harness.wait_until(lambda: seen() == ["id:a:music::1", "id:a:music::2"], f"{example} prints what changes")
            self.fjord(env, "put", "id:a:music::3", "-", stdin='{"year": 3}')
            harness.wait_until(lambda: len(seen()) == 3, f"{example} prints what changes after that")
            cursor = pathlib.Path(folder) / "music.cursor"
            copy = pathlib.Path(folder) / "copy.cursor"

            def all_are_saved():
                """The saved cursor is behind all that was printed: nothing comes after it."""
                copy.write_text(cursor.read_text())
                return not self.fjord(env, "subscribe", "--type", "music", "--once", "--cursor", copy).out

            harness.wait_until(lambda: cursor.exists() and all_are_saved(), "the cursor says so, too")
            os.killpg(follower.pid, signal.SIGINT)
            follower.wait(timeout=20)
            # A restarted follower goes on where it was.
            self.fjord(env, "put", "id:a:music::4", "-", stdin='{"year": 4}')
            follower = follow()
            harness.wait_until(lambda: len(seen()) > 3, f"{example} goes on")
            self.assertEqual(seen(), [f"id:a:music::{n}" for n in (1, 2, 3, 4)])
            os.killpg(follower.pid, signal.SIGINT)
            follower.wait(timeout=20)
            self.stop(process)

    def test_a_damaged_cursor_is_refused_and_its_file_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            process, env = self.start()
            schema = pathlib.Path(folder) / "music.sd"
            schema.write_text(self.SCHEMA)
            self.fjord(env, "schema", "deploy", schema)
            documents = [{"put": f"id:a:music::{n}", "fields": {"year": n}} for n in range(40)]
            self.fjord(env, "feed", "-", stdin="".join(json.dumps(document) + "\n" for document in documents))
            cursor = pathlib.Path(folder) / "music.cursor"
            visit = ["visit", "--type", "music", "--cursor", cursor, "--limit", "10"]
            seen = [json.loads(line)["put"] for line in self.fjord(env, *visit).out.splitlines()]
            text = cursor.read_text()
            first, given = text.splitlines()
            self.assertTrue(given.startswith("printed: "), text)
            digit = "1" if given[-1] != "1" else "2"
            changed = f"{given[:-1]}{digit}"
            for damaged in (f"{first}\n{changed}\n", f"{first}\n", f"{first}\n{given[:-25]}\n", first[:-1], ""):
                cursor.write_text(damaged)
                refused = self.fjord(env, *visit, code=USAGE)
                self.assertEqual(refused.out, "")
                self.assertIn(str(cursor), refused.err)
                self.assertIn("remove it to begin again", refused.err)
            cursor.write_text(text)
            while lines := self.fjord(env, *visit).out.splitlines():
                seen += [json.loads(line)["put"] for line in lines]
            self.assertEqual(sorted(seen), sorted(f"id:a:music::{n}" for n in range(40)))

            changes = pathlib.Path(folder) / "changes.cursor"
            follow = ["subscribe", "--type", "music", "--once", "--cursor", changes]
            self.fjord(env, *follow)
            changes.write_text(changes.read_text()[:-4])
            self.assertIn(str(changes), self.fjord(env, *follow, code=USAGE).err)
            self.stop(process)

    def check_ids(self, shape, ids, **parts):
        """Ids have the form that a page of the documentation gives, where <name> stands for a part."""
        pattern = re.sub(r"<(\w+)>", lambda name: parts.get(name.group(1), "(.*)"), re.escape(shape))
        for one in ids:
            self.assertRegex(one, f"^{pattern}$")

    def test_results_have_the_ids_that_the_pages_name(self):
        pages = pathlib.Path(__file__).resolve().parents[2] / "docs"
        with tempfile.TemporaryDirectory() as folder:
            process, env = self.start()
            schemas = [pathlib.Path(folder) / "music.sd", pathlib.Path(folder) / "years.sd"]
            schemas[0].write_text(self.SCHEMA)
            schemas[1].write_text("document years {\n  field year type int { header }\n  field count type long { header }\n}\n")
            self.fjord(env, "schema", "deploy", *schemas)
            self.fjord(env, "feed", "-", stdin="".join(
                json.dumps({"put": f"id:a:music::{n}", "fields": {"title": "a/b %", "year": n % 3}}) + "\n" for n in range(12)))
            shape = re.search(r"^    (id:results:fjord_result:.*)$", (pages / "operating" / "jobs.md").read_text(), re.MULTILINE).group(1)
            for field, key in (("year", "[012]"), ("title", "a/b %25")):
                job = self.fjord(env, "job", "run", "citycount", "--type", "music", "--param", f"field={field}", "--wait", "-o", "json").json()["job"]
                found = self.fjord(env, "visit", "--type", "fjord_result", "--selection", f'fjord_result.job == "{job}"').json_lines()
                printed = self.fjord(env, "job", "results", job, "-o", "json").json_lines()
                self.assertEqual(sorted((one["fields"]["key"], json.loads(one["fields"]["value"])) for one in found),
                                 [(one["key"], one["value"]) for one in printed])
                self.check_ids(shape, [one["put"] for one in found], number="[0-9]+", job=job, key=key)
            shape = re.search(r"`(id:results:TYPE::.*?)`", (pages / "reference" / "aggregate.md").read_text()).group(1).replace("TYPE", "years")
            for group, shown in ((["--group-by", "year"], r"\[[012]\]"), ([], r"\[\]")):
                self.fjord(env, "aggregate", "--type", "music", *group, "count()", "--into", "years", "--name", "all")
                rows = self.fjord(env, "visit", "--type", "years").json_lines()
                self.assertEqual(len(rows), 3 if group else 1)
                self.check_ids(shape, [row["put"] for row in rows], name="all", group=shown)
            self.stop(process)

    def test_a_job_can_be_cancelled(self):
        with tempfile.TemporaryDirectory() as folder:
            process, env = self.start()
            schema = pathlib.Path(folder) / "music.sd"
            schema.write_text(self.SCHEMA)
            self.fjord(env, "schema", "deploy", schema)
            self.fjord(env, "put", "id:a:music::1", "-", stdin="{}")
            job = self.fjord(env, "job", "run", "heavycpu", "--type", "music", "--param", "iterations=100000000000").out.strip()
            self.fjord(env, "job", "cancel", job)
            self.fjord(env, "job", "watch", job, code=FAILED)
            self.assertEqual(self.fjord(env, "job", "show", job, "-o", "json").json()["phase"], "cancelled")
            self.fjord(env, "job", "results", job, code=FAILED)
            self.stop(process)

    def test_documents_stay_in_the_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            directory = pathlib.Path(folder) / "data"
            schema = pathlib.Path(folder) / "music.sd"
            schema.write_text(self.SCHEMA)
            other, _ = self.start()  # It has the usual ports, which are free later.
            process, env = self.start(directory)
            self.fjord(env, "schema", "deploy", schema)
            self.fjord(env, "put", "id:a:music::1", "-", stdin='{"year": 1967}')
            self.stop(process, signal.SIGTERM)
            self.stop(other)
            process, env = self.start(directory)
            self.assertEqual(self.fjord(env, "get", "id:a:music::1").json()["fields"], {"year": 1967})
            second = harness.run_program("fjord", "dev", "--dir", directory, timeout=20)
            self.assertEqual(second.code, FAILED, second)
            self.assertIn("in use by", second.err)
            self.stop(process)

    def test_a_cluster_is_created_without_a_start(self):
        with tempfile.TemporaryDirectory() as folder:
            directory = pathlib.Path(folder) / "cluster"
            create = ["local", "create", "--dir", directory, "--storage", 2, "--gateways", 1, "--ports", "any"]
            created = harness.run_program("fjord", *create)
            self.assertEqual((created.code, created.out), (OK, f"{directory}/cluster.yaml\n"))
            self.assertEqual([path.name for path in directory.iterdir()], ["cluster.yaml"])
            processes = json.loads(harness.run_program("fjord", "local", "status", "--dir", directory, "-o", "json").out)
            self.assertEqual({process["state"] for process in processes}, {"stopped"})
            ports = {int(process[key].split(":")[1]) for process in processes for key in ("address", "http") if process[key]}
            self.assertEqual(len(ports), 2 * len(processes) - 1)  # A gateway has one.
            self.assertTrue(all(20000 <= port < 32000 for port in ports), ports)
            again = harness.run_program("fjord", *create)
            self.assertEqual((again.code, again.err), (FAILED, f"fjord: ALREADY_EXISTS: {directory} holds a cluster\n"))

    def test_a_node_that_cannot_be_restarted_is_named_with_its_log(self):
        with harness.Cluster(storage=2, distributors=1, redundancy=1) as cluster:
            pids = {process["node"]: process["pid"] for process in json.loads(cluster.local("status", "-o", "json").out)}
            for node in ("storage.1", "distributor.0", "fleetcontroller.0"):
                with self.subTest(node=node):
                    address = next(process["address"] for process in json.loads(self.local_status(cluster).out)
                                   if process["node"] == node)
                    cluster.kill(node)
                    with socket.create_server(("127.0.0.1", int(address.rsplit(":", 1)[1]))):
                        failed = harness.run_program("fjord", "local", "restart", "--dir", cluster.directory, node)
                    self.assertEqual(failed.code, FAILED, failed)
                    self.assertIn(f"{node} has ended", failed.err)
                    self.assertIn("cannot listen on", failed.err)
                    # Its port is free again.
                    cluster.restart(node)
                    running = {process["node"]: process["pid"] for process in json.loads(self.local_status(cluster).out)}
                    self.assertNotIn(running[node], (0, pids[node]))

    def test_a_node_is_restarted_while_another_is_down(self):
        with harness.Cluster(storage=2, distributors=1, redundancy=1) as cluster:
            cluster.kill("storage.1")
            harness.wait_until(lambda: {"storage.1": "down"}.items() <= {
                node["node"]: node["state"] for node in cluster.status()["nodes"]}.items(), "storage.1 is known to be down")
            cluster.local("restart", "storage.0", "--timeout", 20)

    def test_a_node_that_an_operator_took_out_is_restarted(self):
        with harness.Cluster(storage=3, distributors=1, redundancy=2) as cluster:
            for action, state in (("maintenance", "maintenance"), ("retire", "retired")):
                with self.subTest(action=action):
                    cluster.wait_healthy()
                    cluster.must("node", action, "storage.1", "--wait", 60)
                    if action == "retire":  # Again: it does not wait for a cluster state that will not come.
                        again = cluster.must("node", action, "storage.1", "--wait", 60)
                        self.assertIn("storage.1 is retired already", again.err)
                    pids = self.pids(cluster)
                    cluster.local("restart", "storage.1", "--timeout", 30)
                    self.assertNotEqual(self.pids(cluster)["storage.1"], pids["storage.1"])
                    states = {node["node"]: node["state"] for node in cluster.must("node", "list", "-o", "json").json()}
                    self.assertEqual(states, {"distributor.0": "up", "storage.0": "up", "storage.1": state, "storage.2": "up"})
                    # A node beside it can be restarted, too, and the whole cluster started.
                    cluster.local("restart", "storage.2", "--timeout", 30)
                    cluster.local("start", "--timeout", 30)
                    cluster.must("node", "up", "storage.1", "--wait", 60)

    def test_a_node_that_is_gone_is_put_in_maintenance_without_a_move(self):
        with harness.Cluster(storage=3, distributors=1, redundancy=2) as cluster:
            cluster.deploy(self.SCHEMA)
            cluster.must("feed", "-", stdin="".join(
                json.dumps({"put": f"id:a:music::{n}", "fields": {"title": "t"}}) + "\n" for n in range(100)))
            cluster.kill("storage.1")
            harness.wait_until(lambda: {"storage.1": "down"}.items() <= {
                node["node"]: node["state"] for node in cluster.status()["nodes"]}.items(), "storage.1 is known to be down")
            for action in ("maintenance", "up"):
                plan = cluster.must("node", action, "storage.1", "--dry-run", "--force", "-o", "json").json()["plan"]
                self.assertGreater(plan["buckets_total"], 0)
                self.assertEqual((plan["buckets_moved"], plan["replicas_moved"], plan["bytes"]), (0, 0, 0))

    def pids(self, cluster):
        return {process["node"]: process["pid"] for process in json.loads(self.local_status(cluster).out)}

    def local_status(self, cluster):
        return harness.run_program("fjord", "local", "status", "--dir", cluster.directory, "-o", "json")

    def test_metrics_and_health_of_every_process(self):
        with harness.Cluster(storage=2, distributors=1, redundancy=1) as cluster:
            cluster.deploy(self.SCHEMA)
            cluster.must("put", "id:a:music::1", "-", stdin="{}")
            processes = json.loads(cluster.local("status", "-o", "json").out)
            self.assertEqual(len(processes), 4)
            for process in processes:
                with urllib.request.urlopen(f"http://{process['http']}/health", timeout=10) as answer:
                    health = json.load(answer)
                self.assertEqual(health["node"], process["node"])
                with urllib.request.urlopen(f"http://{process['http']}/metrics", timeout=10) as answer:
                    metrics = answer.read().decode()
                self.assertIn("fjord_process_resident_bytes", metrics)
                os.kill(process["pid"], 0)
                self.assertIn("fjord_" + process["node"].split(".")[0], metrics)


if __name__ == "__main__":
    harness.main()
