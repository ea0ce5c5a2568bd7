"""Two fleet controllers over a real ZooKeeper: one leads, and when it is killed the other one takes over.

Skipped if Debian's package zookeeper is not installed.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness

JARS = pathlib.Path("/usr/share/java")


class ControllersTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-controllers-"))
        self.processes = {}
        self.addCleanup(self.end)

    def end(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def begin(self, name, *command):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def begin_node(self, name):
        self.begin(name, harness.BIN / "fjordd", "--config", self.folder / "cluster.yaml", "--node", name)

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def logs(self):
        return "".join(f"\n--- {log.name}\n{log.read_text()[-1500:]}" for log in sorted(self.folder.glob("*.log")))

    def fjord(self, *arguments):
        return harness.run_program("fjord", *arguments, env={"FJORD_CLUSTER": self.address})

    def wait(self, condition, what):
        try:
            return harness.wait_until(condition, what, 60)
        except AssertionError as error:
            raise AssertionError(f"{error}{self.logs()}") from None

    def shown(self):
        finished = self.fjord("state", "show", "-o", "json", "--timeout", 5)
        return finished.json() if finished.code == harness.OK else None

    def local(self, *arguments):
        finished = harness.run_program("fjord", "local", *arguments)
        self.assertEqual(finished.code, harness.OK, f"{finished}{self.logs()}")

    def begin_zookeeper(self, zookeeper):
        (self.folder / "zoo.cfg").write_text(
            f"tickTime=200\ndataDir={self.folder}/zookeeper\nclientPort={zookeeper}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n")
        self.begin("zookeeper", "/usr/bin/java", "-Xmx128m", "-cp", f"{JARS}/*",
                   "org.apache.zookeeper.server.ZooKeeperServerMain", self.folder / "zoo.cfg")

    def test_local_start_waits_for_one_controller_that_leads(self):
        """The controllers that do not lead refuse questions about the cluster, which is no reason to wait for them."""
        zookeeper, *ports = harness.free_ports(4)
        self.begin_zookeeper(zookeeper)
        for count in (2, 3):
            with self.subTest(controllers=count):
                directory = self.folder / f"local{count}"
                self.local("create", "--dir", directory, "--storage", 2, "--redundancy", 2, "--ports", "any")
                config = directory / "cluster.yaml"
                lines = ["fleetcontroller:", f"  zookeeper: 127.0.0.1:{zookeeper}", f"  zookeeper_root: /fjord{count}",
                         "fleet_controllers:"]
                for index, port in enumerate(ports[:count]):
                    lines += [f"  - address: 127.0.0.1:{port}", f"    directory: fleetcontroller.{index}"]
                text, replaced = re.subn(r"fleetcontroller:\n(  .*\n)+", "\n".join(lines) + "\n", config.read_text())
                self.assertEqual(replaced, 1)
                config.write_text(text)
                self.addCleanup(harness.run_program, "fjord", "local", "stop", "--dir", directory)
                self.local("start", "--dir", directory)
                # A controller that is started again does not lead.
                self.local("restart", f"fleetcontroller.{count - 1}", "--dir", directory)
                self.local("stop", "--dir", directory)
                self.local("start", "--dir", directory)
                self.local("stop", "--dir", directory)

    def test_the_second_takes_over(self):
        zookeeper, first, second, distributor, *storage = harness.free_ports(6)
        self.begin_zookeeper(zookeeper)
        lines = ["cluster:", "  redundancy: 2", "fleetcontroller:", f"  zookeeper: 127.0.0.1:{zookeeper}", "  session_timeout_ms: 1500",
                 "fleet_controllers:"]
        for index, port in enumerate((first, second)):
            lines += [f"  - address: 127.0.0.1:{port}", f"    directory: fleetcontroller.{index}"]
        lines += ["distributors:", f"  - address: 127.0.0.1:{distributor}", "storage:"]
        for index, port in enumerate(storage):
            lines += [f"  - address: 127.0.0.1:{port}", f"    directory: storage.{index}"]
        (self.folder / "cluster.yaml").write_text("\n".join(lines) + "\n")
        self.address = f"127.0.0.1:{distributor}"
        controllers = {f"127.0.0.1:{first}": "fleetcontroller.0", f"127.0.0.1:{second}": "fleetcontroller.1"}
        for name in ("fleetcontroller.0", "fleetcontroller.1", "distributor.0", "storage.0", "storage.1"):
            self.begin_node(name)
        self.wait(lambda: self.fjord("status", "--timeout", 5).code == 0, "the cluster is healthy")
        before = self.shown()
        self.assertEqual(self.fjord("config", "set", "maintenance.paused=true").code, harness.OK)

        self.kill(controllers[before["leader"]])
        after = self.wait(lambda: (lambda now: now if now and now["leader"] != before["leader"] else None)(self.shown()),
                          "the other one leads")
        self.assertGreater(after["term"], before["term"])
        self.assertEqual(after["config_version"], 1)
        self.assertEqual(after["state"], before["state"], "nothing happened to the nodes")
        # Its decisions reach every node.
        self.kill("storage.1")
        self.wait(lambda: ".1.s:d" in (self.shown() or {"state": ""})["state"] or "storage:1" in (self.shown() or {"state": ""})["state"],
                  "storage.1 is down")
        self.begin_node("storage.1")
        self.wait(lambda: self.fjord("status", "--timeout", 5).code == 0, "the cluster is healthy again")
        # The first one comes back as a candidate.
        self.begin_node(controllers[before["leader"]])
        self.assertEqual(self.shown()["term"], after["term"])
        log = [json.loads(line) for line in self.fjord("state", "log", "-o", "json").out.splitlines()]
        self.assertEqual(len({entry["term"] for entry in log}), 2)


if __name__ == "__main__":
    if not (JARS / "zookeeper.jar").exists() or not os.path.exists("/usr/bin/java"):
        print("SKIPPED: needs Debian's package zookeeper", file=sys.stderr)
        sys.exit(harness.SKIPPED)
    harness.main()
