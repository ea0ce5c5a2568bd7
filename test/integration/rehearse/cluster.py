"""The processes and folders of a cluster, original or copy."""

import collections
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import faults
import harness

STOP_S = 30
HTTP_S = 5
Shape = collections.namedtuple("Shape", "storage distributors redundancy bits groups stripes small")
SMALL_DISK = 128 << 20  # Bytes of the disk of the node Shape.small.


def names_of(shape):
    return ["fleetcontroller.0", *(f"distributor.{i}" for i in range(shape.distributors)),
            *(f"storage.{i}" for i in range(shape.storage)), "gateway.0"]


def make_config(shape):
    """Returns the configuration, with free ports, as a dict."""
    names = names_of(shape)
    ports = iter(harness.free_ports(2 * len(names)))
    at = {name: {"address": f"127.0.0.1:{next(ports)}", "http": f"127.0.0.1:{next(ports)}"} for name in names}
    cluster = {"redundancy": shape.redundancy, "distribution_bits": shape.bits}
    if shape.groups:
        cluster["groups"] = shape.groups
    return {
        "cluster": cluster,
        # Small files, and stages of a full disk that only the node on a small disk reaches.
        "storage_options": {"stripes": shape.stripes, "slotfile_bytes_max": 1 << 20, "space_warn_percent": 95, "space_throttle_percent": 95,
                            "space_refuse_external_percent": 98, "space_refuse_all_percent": 99, "space_reserve_bytes": 1 << 20},
        "fleetcontroller": {**at["fleetcontroller.0"], "directory": "fleetcontroller.0"},
        "distributors": [at[name] for name in names if name.startswith("distributor.")],
        "storage": [{**at[name], "directory": name} for name in names if name.startswith("storage.")],
        "gateways": [{"address": at["gateway.0"]["address"], "access_log": False}],
    }


class Cluster:
    """Processes of the nodes in a folder. `history` is told each command; `isolation`: the network of a copy.

    Threads: one, but fjord() and http() may be called by any.
    """

    def __init__(self, folder, config, history, isolation=None):
        self.folder = pathlib.Path(folder)
        self.config = config
        self.history = history
        self.isolation = isolation
        self.running = {}
        self.paused = set()
        self.died = {}  # Node -> when it ended.
        self.storage = [f"storage.{i}" for i in range(len(config["storage"]))]
        self.distributors = [f"distributor.{i}" for i in range(len(config["distributors"]))]
        self.names = ["fleetcontroller.0", *self.distributors, *self.storage, "gateway.0"]
        self.address = ",".join(one["address"] for one in config["distributors"])
        self.is_copy = isolation is not None

    def say(self, text):
        self.history(("copy: " if self.is_copy else "") + text)

    # --- Processes

    def start(self, *names):
        for name in names:
            self.say(f"start {name}")
            (self.folder / "logs").mkdir(exist_ok=True)

            def prepare():
                faults.end_with_parent()
                if self.isolation:
                    self.isolation.enter()
            with open(self.folder / "logs" / f"{name}.log", "ab") as log:
                self.running[name] = subprocess.Popen(
                    [str(harness.BIN / "fjordd"), "--config", str(self.folder / "cluster.yaml"), "--node", name],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=prepare)
            self.died.pop(name, None)

    def _ended(self, name):
        process = self.running.pop(name)
        self.paused.discard(name)
        self.died[name] = time.monotonic()
        return process

    def kill(self, *names):
        for name in names:
            self.say(f"kill -9 {name}")
            process = self._ended(name)
            process.kill()
            process.wait()

    def end(self, *names):
        """Ends processes with SIGTERM; one that does not end is killed."""
        for name in names:
            self.say(f"kill -TERM {name}")
            self.running[name].terminate()
        for name in names:
            process = self._ended(name)
            try:
                process.wait(timeout=STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise AssertionError(f"{name} did not end within {STOP_S} s of SIGTERM") from None

    def pause(self, *names):
        for name in names:
            self.say(f"kill -STOP {name}")
            self.running[name].send_signal(signal.SIGSTOP)
            self.paused.add(name)

    def go_on(self, *names):
        for name in names:
            self.say(f"kill -CONT {name}")
            self.running[name].send_signal(signal.SIGCONT)
            self.paused.discard(name)

    def ended_by_itself(self):
        """Returns a text about the first process that has ended without being told; else None."""
        for name, process in self.running.items():
            if process.poll() is not None:
                log = self.folder / "logs" / f"{name}.log"
                return f"{name} has ended by itself with {process.returncode}; its log ends with\n{log.read_text(errors='replace')[-1500:]}"
        return None

    def wait_for_refusal(self, name, seconds):
        """Waits until a process has ended by itself, as it should because of what is in its folder. Returns its log."""
        harness.wait_until(lambda: self.running[name].poll() is not None, f"{name} refuses to start", seconds)
        self._ended(name)
        return (self.folder / "logs" / f"{name}.log").read_text(errors="replace")

    def close(self):
        harness.kill_all(self.running)
        self.paused.clear()
        if self.isolation:
            self.isolation.close()
            self.isolation = None

    # --- Asking it

    def run(self, program, *arguments, stdin=None, timeout=120):
        arguments = [str(argument) for argument in arguments]
        completed = subprocess.run([str(harness.BIN / program), *arguments], input=stdin, capture_output=True, text=True, timeout=timeout,
                                   env={**os.environ, "FJORD_CLUSTER": self.address},
                                   preexec_fn=self.isolation.enter if self.isolation else None)
        return harness.Finished(arguments, completed)

    def fjord(self, *arguments, stdin=None, timeout=120):
        return self.run("fjord", *arguments, stdin=stdin, timeout=timeout)

    def command(self, *arguments, codes=(harness.OK,)):
        """Runs a command that is part of the history. Errors: AssertionError if its exit code is not one of `codes`."""
        self.say("fjord " + " ".join(map(str, arguments)))
        finished = self.fjord(*arguments)
        assert finished.code in codes, f"{finished}"
        return finished

    def status(self):
        """Returns exit code and status; the status is None if there was no answer."""
        finished = self.fjord("status", "-o", "json", "--timeout", 4)
        try:
            return finished.code, json.loads(finished.out)
        except json.JSONDecodeError:
            return finished.code, None

    def http_of(self, name):
        role, index = name.split(".")
        one = {"fleetcontroller": [self.config["fleetcontroller"]], "distributor": self.config["distributors"], "storage": self.config["storage"],
               "gateway": self.config["gateways"]}[role][int(index)]
        return one.get("http", one["address"])

    def http(self, name, path):
        """Returns the HTTP status and the text of a page of a process; (None, why) without an answer."""
        def ask():
            connection = http.client.HTTPConnection(self.http_of(name), timeout=HTTP_S)
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except (OSError, http.client.HTTPException) as error:
                return None, str(error)
            finally:
                connection.close()
        return self.isolation.run(ask) if self.isolation else ask()

    def metric(self, name, metric):
        """Returns the sum of a metric of a process over its labels; None if it does not answer."""
        code, text = self.http(name, "/metrics")
        if code != 200:
            return None
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith((metric + "{", metric + " ")))

    # --- Copies

    def copy(self, folder, isolation):
        """Copies the folders while all processes are stopped for a moment. Returns the copy, of which nothing runs yet."""
        self.say(f"copy to {folder.name}: SIGSTOP of all, cp, SIGCONT of all")
        awake = [name for name in self.running if name not in self.paused]
        folder.mkdir()
        for name in awake:
            self.running[name].send_signal(signal.SIGSTOP)
        try:
            for name in ["cluster.yaml", "fleetcontroller.0", *self.storage]:
                if (self.folder / name).exists():
                    subprocess.run(["cp", "-r", "--sparse=always", "--reflink=never", self.folder / name, folder / name], check=True)
        finally:
            for name in awake:
                self.running[name].send_signal(signal.SIGCONT)
        for ballast in folder.glob("*/ballast"):
            ballast.unlink()
        return Cluster(folder, self.config, self.history, isolation)


def make(folder, shape, history):
    """Makes the folder of a new cluster, of which nothing runs yet."""
    folder.mkdir(parents=True)
    config = make_config(shape)
    (folder / "cluster.yaml").write_text(json.dumps(config, indent=1))  # YAML reads JSON.
    return Cluster(folder, config, history)


def remove(cluster):
    cluster.close()
    shutil.rmtree(cluster.folder, ignore_errors=True)
