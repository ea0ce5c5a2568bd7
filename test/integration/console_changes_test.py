"""What the console changes, in headless Chromium on a live cluster: nodes, settings by the tuner's advice, places of buckets, and jobs.
Each change is planned, made, followed and taken back; nothing is done before it is confirmed."""

import http.client
import json
import re
import socket
import subprocess
import threading

import harness
from console_browser import CITIES, DOCUMENTS, SCHEMA, ConsoleBrowser
from harness import BIN, free_ports, wait_until
from selenium.webdriver.common.by import By

HOT = 12


class NodesTest(ConsoleBrowser):
    def nodes(self):
        return {node["node"]: node for node in self.cluster.must("node", "list", "-o", "json").json()}

    def row(self, node):
        """Returns the text of the node's row; empty: there is none."""
        return next((row for row in self.texts("main tbody tr") if row.split()[0] == node), "")

    def start_storage(self, name):
        """Starts a storage node that is not in the cluster yet. Returns its address."""
        address, http_address = (f"127.0.0.1:{port}" for port in free_ports(2))
        config = self.cluster.directory / "with-one-more.yaml"
        entry = f"  - address: {address}\n    http: {http_address}\n    directory: {name}\n"
        # A configuration file lists all nodes; the list of storage nodes ends where that of the gateways begins.
        config.write_text((self.cluster.directory / "cluster.yaml").read_text().replace("\ngateways:", f"\n{entry}gateways:"))
        log_file = self.cluster.folder / f"{name}.log"
        with open(log_file, "w", encoding="utf-8") as log:
            process = subprocess.Popen([str(BIN / "fjordd"), "--config", str(config), "--node", name], stdout=log, stderr=log,
                                       stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        host, port = address.split(":")

        def listens():
            self.assertIsNone(process.poll(), log_file.read_text())
            with socket.socket() as probe:
                return probe.connect_ex((host, int(port))) == 0
        wait_until(listens, f"{name} listens")
        return address

    def make_the_change(self, reason=None):
        """Looks at the plan in the open dialog and carries it out."""
        if reason:
            self.fill("Reason", reason, "dialog")
        self.click("Show the plan", "dialog")
        self.see("What happens", "dialog")
        self.see("buckets that move", "dialog")
        self.click("Do it", "dialog")

    def test_a_node_is_added_retired_and_removed(self):
        address = self.start_storage("storage.3")
        self.go("nodes", "Nodes")
        self.click("Add a node")
        self.fill("Address", address, "dialog")
        self.fill("Reason", "one more", "dialog")
        self.assertIn(f"fjord node add storage --address {address} --reason 'one more'", self.text("dialog pre"))
        self.click("Show the plan", "dialog")
        self.see("buckets that move", "dialog")
        self.screenshots("nodes-add")
        self.assertNotIn("storage.3", self.nodes())
        self.click("Do it", "dialog")
        self.see("Add: storage.3")
        self.see("Done")
        self.assertIn("up", self.row("storage.3").split())
        self.screenshots("nodes-added")
        self.cluster.wait_healthy()
        self.assertGreater(self.nodes()["storage.3"]["buckets"], 0)

        self.go("nodes?node=storage.3", "Nodes")
        self.click("Retire")
        self.make_the_change("a test")
        self.see("Retire: storage.3")
        self.see("Done")
        self.screenshots("nodes-retired")
        wait_until(lambda: "retired" in self.row("storage.3"), "storage.3 is retired")
        self.browser.refresh()
        self.see("Retire: storage.3")
        self.see("Done")
        wait_until(lambda: self.nodes()["storage.3"]["buckets"] == 0, "storage.3 is empty")
        wait_until(lambda: "empty: it may be removed" in self.row("storage.3"), "the row says so")
        self.go("overview", "Overview")
        self.see("Healthy")
        self.see("storage.3 is retired and empty")
        self.go("nodes?node=storage.3", "Nodes")

        self.click("Remove")
        self.make_the_change("not needed")
        self.see("Remove: storage.3")
        wait_until(lambda: not self.row("storage.3"), "storage.3 is not in the table")
        self.assertNotIn("storage.3", self.nodes())
        self.cluster.wait_healthy()
        self.assertEqual(len(self.cluster.documents()), DOCUMENTS)
        self.go("state", "State")
        for reason in ("one more", "a test", "not needed"):
            self.see(reason)

    def test_a_change_that_the_cluster_refuses_is_not_made(self):
        self.cluster.must("node", "maintenance", "storage.0", "--wait", 60)
        self.go("nodes?node=storage.1", "Nodes")
        self.click("Maintenance")
        self.click("Show the plan", "dialog")
        self.see("The cluster refuses it", "dialog")
        self.see("storage.0", "dialog .messages.problem")
        self.screenshots("nodes-refused")
        self.assertEqual([one for one in self.texts("dialog button") if one == "Do it"], [])
        self.click("Cancel", "dialog")
        self.assertEqual(self.nodes()["storage.1"]["state"], "up")
        self.cluster.must("node", "up", "storage.0", "--wait", 60)
        self.cluster.wait_healthy()

    def test_an_address_that_is_none_is_said_in_the_dialog(self):
        self.may_lose_gateway = True  # The refusal is in the log of the browser.
        self.go("nodes", "Nodes")
        self.click("Add a node")
        self.fill("Address", "nowhere", "dialog")
        self.click("Show the plan", "dialog")
        self.see("host:port", "dialog [role=alert]")
        self.click("Cancel", "dialog")


class TuningTest(ConsoleBrowser):
    def live_value(self, name):
        return self.cluster.must("config", "get", name).out.split()[0]

    def test_advice_is_applied_and_taken_back(self):
        # Far from what any machine is advised.
        self.cluster.must("config", "set", "maintenance.bytes_per_s=900MiB")
        self.go("tuning", "Tuning")
        self.click("Measure for 10s and advise")
        self.see("maintenance.bytes_per_s", "main table")
        for one in self.browser.find_elements(By.CSS_SELECTOR, "[aria-label=Advice] summary"):
            one.click()
        self.assertEqual([facts for facts in self.facts("[aria-label=Advice] dl.facts") if not facts.get("with")], [])
        for facts in self.facts("[aria-label=Advice] dl.facts"):
            self.assertRegex(facts["with"], r"^–$|^\S+ = .+ \(.+\)")
            self.assertNotRegex(facts.get("bound by", "none"), r"^$|\w,\w|\[object")
        # Only this change.
        for box in self.browser.find_elements(By.CSS_SELECTOR, "main input[type=checkbox]"):
            is_wanted = box.get_attribute("aria-label") == "Apply maintenance.bytes_per_s"
            if box.is_enabled() and box.is_selected() != is_wanted:
                box.click()
        self.click("Apply 1 change")
        self.fill("Reason", "the console", "dialog")
        changes = self.text("dialog .messages")
        advised = re.fullmatch(r"maintenance\.bytes_per_s: 900MiB → (\S+)", changes.strip())[1]
        self.assertIn(f"--set maintenance.bytes_per_s={advised}", self.text("dialog pre"))
        self.screenshots("tuning-apply")
        self.assertEqual(self.live_value("maintenance.bytes_per_s"), "900MiB")
        self.click("Apply", "dialog")
        self.see(f"maintenance.bytes_per_s: 900MiB → {advised}", "main tbody")
        self.assertEqual(self.live_value("maintenance.bytes_per_s"), advised)
        self.screenshots("tuning-history")
        self.click("Take back")
        self.see(f"maintenance.bytes_per_s: {advised} → 900MiB", "dialog")
        self.assertEqual(self.live_value("maintenance.bytes_per_s"), advised)
        self.click("Take it back", "dialog")
        wait_until(lambda: self.live_value("maintenance.bytes_per_s") == "900MiB", "the setting is as before")
        self.assertEqual(self.texts("[role=alert]"), [])
        self.see(f"maintenance.bytes_per_s: {advised} → 900MiB", "main tbody")
        self.see("takes back tune-", "main tbody")
        self.screenshots("tuning-reverted")
        self.go("settings", "Live settings")
        self.see("revert of tune-")

    def writer(self, numbers):
        """Writes these documents again and again until the test has ended."""
        is_over = threading.Event()

        def write():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            while not is_over.is_set():
                for number in numbers:
                    connection.request("PUT", f"/document/v1/v/visit/docid/{number}", '{"fields":{"cost":{"assign":1}}}')
                    connection.getresponse().read()
            connection.close()
        thread = threading.Thread(target=write)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(is_over.set)

    def hot_documents(self):
        """Returns documents in different buckets, each with a replica on storage.0."""
        buckets = {}
        for number in range(DOCUMENTS):
            shown = self.cluster.must("bucket", "show", f"id:v:visit::{number}", "-o", "json").json()
            if "storage.0" in shown["replica_set"]:
                buckets.setdefault(shown["bucket"], number)
            if len(buckets) == HOT:
                break
        return list(buckets.values())

    def steps(self):
        return self.cluster.must("balance", "history", "-o", "json").json()

    def test_a_step_of_the_balancer_is_planned_made_and_taken_back(self):
        self.cluster.must("config", "set", "balancer.mode=advise", "balancer.load=operations", "balancer.round=1s",
                          "balancer.bytes_part=1", "balancer.operations_min=1")
        self.writer(self.hot_documents())
        wait_until(lambda: self.cluster.fjord("balance", "plan", "-o", "json").code == 0, "there is a plan", pause=0.5)
        self.go("tuning", "Tuning")

        def planned():
            """Asks for plans until one has moves: a round with few operations has none."""
            self.click("Plan a step")
            wait_until(lambda: self.texts("dialog"), "the plan")
            if self.texts("dialog tbody tr"):
                return True
            self.click("Cancel", "dialog")
            return False
        wait_until(planned, "a plan with moves", pause=0.5)
        self.screenshots("balancer-plan")
        self.assertEqual(self.steps(), [])
        moves = len(self.texts("dialog tbody tr"))
        self.fill("Reason", "the console", "dialog")
        self.click("Move them", "dialog")
        wait_until(lambda: not self.texts("dialog"), "the step is made")
        step = wait_until(self.steps, "the step is in the history")[0]
        self.assertEqual((len(step["moves"]), step["why"]), (moves, "the console"))
        self.see("the console", "main tbody")
        self.screenshots("balancer-step")
        self.cluster.wait_healthy()
        self.click("Take back")
        self.see(f"Take back step {step['step']}", "dialog")
        self.fill("Reason", "and back", "dialog")
        self.assertEqual(len(self.steps()), 1)
        self.click("Take it back", "dialog")
        self.see(f"takes back step {step['step']}", "main tbody")
        wait_until(lambda: "except:" not in self.cluster.must("state", "show", "-o", "json").out, "no override is left")
        self.cluster.wait_healthy()


class JobsTest(ConsoleBrowser):
    schemas = [SCHEMA, "document total { field city type string { } field n type long { } field most type int { } }"]

    def new_job(self, kind):
        self.go("jobs", "Jobs")
        self.click("New job")
        self.see("Start the job")
        self.click(kind)
        self.choose("Type", "visit")

    def start(self):
        """Starts the job of the form. Returns its id once the page shows that it is done."""
        command = self.texts("main pre")[0]
        request = json.loads(self.texts("main pre")[1])
        self.click("Start the job")
        wait_until(lambda: "job=" in self.browser.current_url, "the page of the job")
        self.see("done", ".headline")
        return self.browser.current_url.split("job=")[1], command, request

    def same_by_command(self, command, stdin=None):
        """Runs a command line of the page in a shell. Returns what it printed."""
        words = f'export PATH="{BIN}:$PATH"\n{command}\n'
        done = subprocess.run(["bash", "-euc", words], input=stdin, capture_output=True, text=True, timeout=120, check=False,
                              env={"FJORD_CLUSTER": self.cluster.address, "PATH": "/usr/bin:/bin", "HOME": str(self.cluster.folder)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def results(self, job):
        self.cluster.wait_for_job(job, ["done"])
        return self.cluster.results(job)

    def same_over_http(self, request):
        """Sends the JSON of the page. Returns the id of the job."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", "/jobs/v1", json.dumps(request))
        job = json.loads(connection.getresponse().read())["job"]
        connection.close()
        return job

    def test_an_application_with_parameters(self):
        self.new_job("Application")
        self.fill("Application", "fieldstats")
        self.fill("Parameters", "group=city\nvalue=cost")
        self.fill("Selection", "visit.cost < 100")
        self.fill("Throttle", "50MB")
        self.screenshots("jobs-new-application")
        job, command, request = self.start()
        self.see("throttle=50MB", "main dl.facts")
        self.click("Show")
        wait_until(lambda: len(self.texts("[aria-label=Results] tbody tr")) == len(CITIES), "a result for each city")
        wanted = self.results(job)
        self.assertEqual(set(wanted), set(CITIES))
        self.assertEqual(self.results(self.same_by_command(command).split()[0]), wanted)
        self.assertEqual(self.results(self.same_over_http(request)), wanted)

    def test_a_script(self):
        self.new_job("Lua script")
        self.screenshots("jobs-new-script")
        # The example of the page counts the documents by their first field.
        job, command, request = self.start()
        wanted = {city: {"count": DOCUMENTS // len(CITIES)} for city in CITIES}
        self.assertEqual(self.results(job), wanted)
        self.assertEqual(self.results(self.same_by_command(command).split()[0]), wanted)
        self.assertEqual(self.results(self.same_over_http(request)), wanted)

    def test_a_job_with_dead_letters_is_shown_and_run_again(self):
        script = "function map(document, emit)\n  if document.fields.cost < 2 then error('too cheap') end\n  emit('all', 1)\nend\nfunction reduce(key, values) return #values end"
        job = self.cluster.must("job", "run", "script", "--type", "visit", "--script", self.cluster.file("cheap.lua", script)).out.split()[0]
        self.cluster.wait_for_job(job, ["done"])
        self.go(f"jobs?job={job}", "Jobs")
        self.see("done, 2 dead letters", ".headline")
        self.see("too cheap')", "main pre")
        self.click("Run again")
        self.see("Start the job")
        self.assertEqual(self.browser.find_element(By.CSS_SELECTOR, "main textarea").get_attribute("value"), script)
        self.click("Start the job")
        self.see("done, 2 dead letters", ".headline")
        self.assertNotIn(job, self.browser.current_url)

    def test_an_aggregation_into_a_type(self):
        self.new_job("Aggregation into a type")
        self.fill("Group by", "city")
        self.fill("Compute", "count() as n, max(cost) as most")
        self.choose("Into type", "total")
        self.fill("Namespace of these documents", "sums")
        self.fill("Name of this run", "t")
        self.screenshots("jobs-new-aggregation")
        _, command, request = self.start()

        def stored():
            found = self.cluster.documents("--type", "total", "--selection", "id.namespace == 'sums'")
            return {one["city"]: (one["n"], one["most"]) for one in found.values()}
        wanted = {city: (DOCUMENTS // len(CITIES), DOCUMENTS - len(CITIES) + at) for at, city in enumerate(CITIES)}
        self.assertEqual(stored(), wanted)
        self.same_by_command(command)
        self.assertEqual(stored(), wanted)
        self.cluster.wait_for_job(self.same_over_http(request), ["done"])
        self.assertEqual(stored(), wanted)

    def test_errors_are_said_in_the_form(self):
        self.may_lose_gateway = True  # The refusal is in the log of the browser.
        self.new_job("Application")
        self.fill("Parameters", "group")
        self.see('"group": expected name=value', "main [role=alert]")
        button = next(one for one in self.browser.find_elements(By.CSS_SELECTOR, "main button") if one.text == "Start the job")
        self.assertFalse(button.is_enabled())
        self.fill("Parameters", "group=absent\nvalue=cost")
        self.assertEqual(self.texts("main [role=alert]"), [])
        self.click("Start the job")
        self.see("absent", "main [role=alert]")
        self.click("Lua script")
        self.assertEqual(self.texts("main [role=alert]"), [])
        self.fill("Script", "function map(document")
        self.click("Start the job")
        self.see("script", "main [role=alert]")
        self.screenshots("jobs-new-error")


class EmptyClusterTest(ConsoleBrowser):
    """A cluster without document types says what to do first, and its commands work as they stand."""

    schemas = []
    documents = 0

    def test_the_first_minutes(self):
        for page, heading in (("aggregate", "Aggregate"), ("jobs?new=job", "Jobs"), ("data", "Data"), ("overview", "Overview")):
            self.go(page, heading)
            self.see("Begin here")
            self.assertNotIn("fjord_", self.text("main"))
        self.screenshots("begin")
        commands = self.texts("main ol pre")
        self.assertEqual(len(commands), 3)
        for command in commands:
            done = subprocess.run(["bash", "-euc", f'export PATH="{BIN}:$PATH"\n{command}\n'], capture_output=True, text=True, timeout=120,
                                  cwd=self.cluster.folder, check=False, env={"FJORD_CLUSTER": self.cluster.address, "PATH": "/usr/bin:/bin",
                                                                             "HOME": str(self.cluster.folder)})
            self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        self.assertIn("1009650", done.stdout.replace(",", ""))
        self.go("data", "Data")
        self.see("Oslo")


if __name__ == "__main__":
    harness.main()
