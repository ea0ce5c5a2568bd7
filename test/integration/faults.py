"""Common parts of the tests that inject faults: the cluster's processes as children of the test, and clients that keep
a record.

`Processes` starts fjordd itself, so that the test controls signals, programs and network namespaces. `Torture` is
fjord-torture: writers, readers and counters, and the record of acknowledged operations, outside of the cluster.
"""

import ctypes
import json
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import harness

SCHEMA = """document item {
  field n type long { header }
  field text type string { body }
}
"""
PR_SET_PDEATHSIG = 1
ANSWER_S = 120  # Operations of fjord-torture have deadlines of at most a minute.
ENOUGH_S = 180  # A cluster with hardly any progress is a failure; a slow machine is not.
LIBC = ctypes.CDLL(None, use_errno=True)


def seed_of_run():
    """Returns FJORD_FAULT_SEED, or a new seed. The printed seed repeats the choices of a run, but not its timing."""
    seed = int(os.environ.get("FJORD_FAULT_SEED", str(time.time_ns() % 1000000)))
    print(f"FJORD_FAULT_SEED={seed}", flush=True)
    return seed


def end_with_parent():
    """Called in a child process, which is then killed when the test ends in any way."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Processes:
    """A cluster of fjordd processes; use it in a with statement.

    `addresses`: node -> host:port, for nodes outside of loopback. `enter`: node -> function that its process calls
    first.
    """

    def __init__(self, storage=3, distributors=2, redundancy=2, addresses=None, enter=None, options="", programs=None):
        self.names = ["fleetcontroller.0", *(f"distributor.{i}" for i in range(distributors)), *(f"storage.{i}" for i in range(storage))]
        self.storage = [name for name in self.names if name.startswith("storage.")]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-faults-"))
        self.enter = enter or {}
        self.programs = programs or {}  # Node -> folder of fjordd, if it is not the usual one.
        self.running = {}
        self.client_enter = None  # Function that clients call first.
        ports = harness.free_ports(len(self.names))
        self.addresses = addresses or {name: f"127.0.0.1:{port}" for name, port in zip(self.names, ports)}
        self.address = ",".join(self.addresses[name] for name in self.names if name.startswith("distributor."))
        lines = ["allow_remote: true"] if addresses else []
        lines += ["cluster:", f"  redundancy: {redundancy}", "fleetcontroller:",
                  f"  address: {self.addresses['fleetcontroller.0']}", "  directory: fleetcontroller.0", "distributors:"]
        lines += [f"  - address: {self.addresses[name]}" for name in self.names if name.startswith("distributor.")]
        lines += ["storage:"]
        for name in self.storage:
            lines += [f"  - address: {self.addresses[name]}", f"    directory: {name}"]
        (self.folder / "cluster.yaml").write_text(harness.with_little_space(options) + "\n".join(lines) + "\n")

    def __enter__(self):
        try:
            for name in self.names:
                self.start(name)
            self.wait_healthy()
            # These tests crash nodes often, which must not keep a node out.
            if "fleetcontroller.0" not in self.programs:
                self.must("config", "set", "controller.crashes_max=1000000")
            schema = self.folder / "item.sd"
            schema.write_text(SCHEMA)
            self.must("schema", "deploy", schema)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        harness.kill_all(self.running)
        keep = os.environ.get("FJORD_FAULT_KEEP")
        if keep:
            shutil.copytree(self.folder / "logs", keep, dirs_exist_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name):
        assert name not in self.running, name
        (self.folder / "logs").mkdir(exist_ok=True)
        program = pathlib.Path(self.programs.get(name, harness.BIN)) / "fjordd"
        enter = self.enter.get(name)

        def prepare():
            end_with_parent()
            if enter:
                enter()
        with open(self.folder / "logs" / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen([str(program), "--config", str(self.folder / "cluster.yaml"), "--node", name],
                                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=prepare)

    def wait_for_port(self, address):
        host, port = address.rsplit(":", 1)

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex((host, int(port))) == 0
        harness.wait_until(answers, f"somebody listens on {address}")

    def add_storage(self):
        """Starts one more storage node and adds it to the cluster. Returns its name."""
        name = f"storage.{len(self.storage)}"
        self.addresses[name] = f"127.0.0.1:{harness.free_ports(1)[0]}"
        with open(self.folder / "cluster.yaml", "a") as config:  # The list of storage nodes is the end of the file.
            config.write(f"  - address: {self.addresses[name]}\n    directory: {name}\n")
        self.names.append(name)
        self.storage.append(name)
        self.start(name)
        self.wait_for_port(self.addresses[name])
        self.must("node", "add", "storage", "--address", self.addresses[name])
        return name

    def send(self, name, what):
        self.running[name].send_signal(what)

    def kill(self, name):
        """Sends SIGKILL and waits until the process is gone."""
        process = self.running.pop(name)
        assert process.poll() is None, f"{name} has ended by itself with {process.returncode}{self.logs()}"
        process.kill()
        process.wait()

    def end(self, name):
        """Sends SIGTERM and waits."""
        process = self.running.pop(name)
        process.terminate()
        process.wait(timeout=30)

    def check_running(self):
        for name, process in self.running.items():
            assert process.poll() is None, f"{name} has ended by itself with {process.returncode}{self.logs()}"

    def logs(self):
        return "".join(f"\n--- {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in sorted(self.folder.glob("logs/*.log")))

    def run_client(self, program, *arguments, timeout=120):
        arguments = [str(argument) for argument in arguments]
        completed = subprocess.run([str(harness.BIN / program), *arguments], capture_output=True, text=True, timeout=timeout,
                                   env={**os.environ, "FJORD_CLUSTER": self.address}, preexec_fn=self.client_enter)
        return harness.Finished(arguments, completed)

    def fjord(self, *arguments, timeout=120):
        return self.run_client("fjord", *arguments, timeout=timeout)

    def must(self, *arguments, timeout=120):
        finished = self.fjord(*arguments, timeout=timeout)
        assert finished.code == harness.OK, str(finished) + self.logs()
        return finished

    def wait_healthy(self, seconds=90):
        try:
            harness.wait_until(lambda: self.fjord("status", "--timeout", 5).code == 0, "the cluster is healthy", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.fjord('status')}{self.logs()}") from None

    def documents(self):
        """Returns all documents by id, read by a visit."""
        found = {}
        for line in self.must("visit", timeout=300).json_lines():
            assert line["put"] not in found, f"{line['put']} was visited twice"
            found[line["put"]] = line["fields"]
        return found


class Torture:
    """fjord-torture against a cluster; use it in a with statement."""

    def __init__(self, cluster, seed, **options):
        self.cluster = cluster
        self.log = cluster.folder / "logs" / "torture.log"
        arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        enter = cluster.client_enter

        def prepare():
            end_with_parent()
            if enter:
                enter()
        self.process = subprocess.Popen([str(harness.BIN / "fjord-torture"), "--cluster", cluster.address, "--seed", str(seed),
                                         "--log", str(self.log), *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=prepare)
        ready = self.process.stdout.readline().strip()
        assert ready == "ready", f"fjord-torture: {ready}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        # fjord-torture writes one line at a time, so nothing is left in the file's buffer.
        ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_S)
        assert ready, f"fjord-torture does not answer '{command}'\n{self.stacks()}{self.cluster.logs()}"
        answer = self.process.stdout.readline()
        assert answer, "fjord-torture has ended"
        return json.loads(answer)

    def stacks(self):
        """Returns where the threads of fjord-torture are; empty without a debugger."""
        if not shutil.which("gdb"):
            return ""
        return subprocess.run(["gdb", "-p", str(self.process.pid), "-batch", "-ex", "thread apply all bt"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120).stdout

    def start(self):
        self.say("start")

    def status(self):
        return self.say("status")

    def has(self, **least):
        """True if the record has at least these numbers of operations, e.g. put_applied=100."""
        counts = self.status()["counts"]
        return all(counts.get(name, 0) >= number for name, number in least.items())

    def wait_for(self, **least):
        """Lets the load run until it has done enough for a result; the time depends on the machine."""
        harness.wait_until(lambda: self.has(**least), f"the load has done {least}", ENOUGH_S)

    def stop_and_check(self):
        """Ends the load and compares everything with the record, by get and by visit. Returns the counts."""
        self.say("stop")
        summary = self.say("check")
        shown = "\n".join(summary["violations_shown"])
        assert summary["violations"] == 0, f"{summary['violations']} violations:\n{shown}\n{self.history(shown)}"
        self.check_visit()
        return summary["counts"]

    def history(self, text):
        """Returns the log lines about the first id in `text`."""
        ids = [word.rstrip(":") for word in text.split() if word.startswith("id:torture:")]
        if not ids:
            return ""
        lines = [line for line in self.log.read_text().splitlines() if f" {ids[0]} " in line]
        return "\n".join(lines[-40:])

    def check_visit(self):
        path = self.cluster.folder / "possible"
        self.say(f"possible {path}")
        found = self.cluster.documents()
        for line in path.read_text().splitlines():
            id_, *possible = line.split()
            value = str(found[id_]["n"]) if id_ in found else "absent"
            assert value in possible, f"a visit: {id_} is {value}, possible: {possible}"


class Faults:
    """Draws faults that may overlap: calls `begin(target)` now, and `end(target)` when the fault's time is over."""

    def __init__(self, random_, cluster):
        self.random = random_
        self.cluster = cluster
        self.pending = []  # (When, function to call).

    def after(self, seconds, call):
        self.pending.append((time.monotonic() + seconds, call))

    def wait(self, seconds):
        """Sleeps, and meanwhile ends the faults whose time is over."""
        end = time.monotonic() + seconds
        while True:
            self.pending.sort(key=lambda entry: entry[0])
            due = min([end, *(when for when, _ in self.pending[:1])])
            time.sleep(max(0, due - time.monotonic()))
            if self.pending and self.pending[0][0] <= time.monotonic():
                self.pending.pop(0)[1]()
            elif time.monotonic() >= end:
                return

    def end_all(self):
        pending, self.pending = self.pending, []
        for _, call in pending:
            call()


def chooser(seed):
    return random.Random(seed)
