"""Common parts of the integration tests: a cluster of real processes in its own folder.

Standard library only. FJORD_BIN names the folder of the programs, FJORD_SHARED_DIR that of the data sets.
"""

import atexit
import faulthandler
import itertools
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import made_data

BIN = pathlib.Path(os.environ["FJORD_BIN"])
SHARED = pathlib.Path(os.environ.get("FJORD_SHARED_DIR", ""))
SANITIZED = bool(os.environ.get("FJORD_SANITIZE"))  # The programs were built with a sanitizer, which takes memory of its own.
SKIPPED = 77  # ctest shows the test as skipped.

# Exit codes of the command line.
OK, FAILED, USAGE, NOT_FOUND, CONDITION_FALSE, PARTIAL, TIMEOUT, IN_DOUBT = range(8)


def data_file(name):
    """Returns the path of a shared data set, or of a table that is made in its form if the set is not there."""
    path = SHARED / "data" / name
    if path.is_file():
        return path
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with open(folder / name, "w", newline="", encoding="utf-8") as file:
        made_data.TABLES[name](file)
    print(f"{name} is made by made_data.py: FJORD_SHARED_DIR names no folder with the real one", file=sys.stderr)
    return folder / name


PORTS = range(20000, 32000)  # Below those that the system gives to outgoing connections, as a server may start again later.


def is_free(port):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
            one.listen(1)
        except OSError:
            return False
    return True


def free_ports(count):
    """Returns different loopback ports without a listener."""
    first = random.randrange(len(PORTS))
    ports = (PORTS[(first + i) % len(PORTS)] for i in range(len(PORTS)))
    return list(itertools.islice(filter(is_free, ports), count))


def poll(condition, seconds, pause=0.02):
    """Calls `condition` every `pause` seconds until it returns a true value, or for this time. Returns its last value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        left = deadline - time.monotonic()
        if value or left <= 0:
            return value
        time.sleep(min(pause, left))


def kill_all(processes):
    """Kills these processes (name -> Popen), waits for their ends, and forgets them."""
    for process in processes.values():
        process.kill()
    for process in processes.values():
        process.wait()
    processes.clear()


def wait_until(condition, what, seconds=60, pause=0.02):
    """Polls every `pause` seconds until `condition` returns a true value, and returns that. `what` is a text, or a function that
    returns one."""
    value = poll(condition, seconds, pause)
    if not value:
        raise AssertionError(f"after {seconds} s still not: {what() if callable(what) else what}")
    return value


ATTEMPTS = 4  # To start a new cluster.


class Finished:
    """The result of an ended program."""

    def __init__(self, arguments, completed):
        self.arguments = arguments
        self.code = completed.returncode
        self.out = completed.stdout
        self.err = completed.stderr

    def __str__(self):
        return f"fjord {' '.join(self.arguments)} -> {self.code}\n--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-3000:]}"

    def json(self):
        return json.loads(self.out)

    def json_lines(self):
        return [json.loads(line) for line in self.out.splitlines()]


def run_program(name, *arguments, stdin=None, env=None, timeout=300, cwd=None):
    arguments = [str(argument) for argument in arguments]
    completed = subprocess.run([str(BIN / name), *arguments], input=stdin, capture_output=True, text=True, timeout=timeout,
                               env={**os.environ, **(env or {})}, cwd=cwd)
    return Finished(arguments, completed)


LITTLE_SPACE = """storage_options:
  space_warn_percent: 95
  space_throttle_percent: 95
"""  # As `fjord local` writes it: the tests run on a machine with a nearly full disk, too.


def with_little_space(settings):
    """Returns settings in YAML with LITTLE_SPACE; those that say something about space stay as they are."""
    if "  space_" in settings:
        return settings
    section = "storage_options:\n"
    return settings.replace(section, LITTLE_SPACE) if section in settings else LITTLE_SPACE + settings


class Cluster:
    """A cluster started by `fjord local`; use it in a with statement.

    `settings` is YAML for the end of its configuration, `cluster_settings` for its section `cluster`, indented by two.
    """

    def __init__(self, storage=3, distributors=1, redundancy=2, settings="", cluster_settings="", gateways=0):
        self.shape = ["--storage", str(storage), "--distributors", str(distributors), "--redundancy", str(redundancy)]
        self.gateways = gateways
        self.storage = storage
        self.settings = settings
        self.cluster_settings = cluster_settings
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-test-"))
        self.directory = self.folder / "cluster"
        self.address = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        """Makes the cluster if there is none, and starts what does not run of it."""
        if (self.directory / "cluster.yaml").exists():
            started = self.run_start()
        else:
            started = self.start_new()
        assert started.code == OK, str(started) + self.logs()
        last = started.out.splitlines()[-1]
        assert last.startswith("export FJORD_CLUSTER="), last
        self.address = last.split("=", 1)[1]
        return started

    def start_new(self):
        """Takes other ports if another program takes one of them between the choice and the start."""
        for _ in range(ATTEMPTS):
            self.local("create", *self.shape, "--gateways", self.gateways, "--ports", "any")
            config = self.directory / "cluster.yaml"
            text = config.read_text().replace("\ncluster:\n", "\ncluster:\n" + self.cluster_settings)
            if "storage_options:" in self.settings:
                text = text.replace(LITTLE_SPACE, "") + with_little_space(self.settings)
            else:
                text += self.settings
            config.write_text(text)
            started = self.run_start()
            if "cannot listen on" not in started.err:
                break
            self.local("stop")
            shutil.rmtree(self.directory)
        return started

    def run_start(self):
        return run_program("fjord", "local", "start", "--dir", self.directory, "--timeout", 60)

    def close(self):
        if (self.directory / "cluster.yaml").exists():
            stopped = run_program("fjord", "local", "stop", "--dir", self.directory)
            if stopped.code != OK:
                print(stopped, file=sys.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)

    def logs(self):
        return "".join(f"\n--- {path.name}\n{path.read_text()[-2000:]}" for path in sorted(self.directory.glob("logs/*.log")))

    def fjord(self, *arguments, stdin=None, timeout=300):
        return run_program("fjord", *arguments, stdin=stdin, env={"FJORD_CLUSTER": self.address}, timeout=timeout)

    def must(self, *arguments, stdin=None, timeout=300):
        """Runs a command that has to succeed."""
        finished = self.fjord(*arguments, stdin=stdin, timeout=timeout)
        assert finished.code == OK, str(finished) + self.logs()
        return finished

    def begin(self, *arguments, **options):
        """Starts a command without waiting for it."""
        return subprocess.Popen([str(BIN / "fjord"), *map(str, arguments)], text=True,
                                env={**os.environ, "FJORD_CLUSTER": self.address}, **options)

    def local(self, *arguments):
        finished = run_program("fjord", "local", arguments[0], "--dir", self.directory, *arguments[1:])
        assert finished.code == OK, str(finished) + self.logs()
        return finished

    def kill(self, node):
        pid = (self.directory / "run" / f"{node}.pid").read_text().split()[0]
        self.local("kill", node)
        # A process is gone, and its folder free, when its last thread is; a thread inside a system call ends later.
        threads = pathlib.Path("/proc") / pid / "task"
        wait_until(lambda: not threads.exists() or len(list(threads.iterdir())) <= 1, f"{node} is gone")

    def restart(self, node):
        self.local("restart", node, "--timeout", 60)

    def status(self):
        return json.loads(self.fjord("status", "-o", "json").out)

    def wait_healthy(self, seconds=90):
        def healthy():
            return self.fjord("status").code == 0
        try:
            wait_until(healthy, "the cluster is healthy", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.fjord('status')}{self.logs()}") from None

    def deploy(self, *schemas):
        paths = []
        for number, text in enumerate(schemas):
            path = self.folder / f"schema{number}.sd"
            path.write_text(text)
            paths.append(path)
        return self.must("schema", "deploy", *paths)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def documents(self, *arguments):
        """Returns all matching documents by id."""
        found = {}
        for document in self.must("visit", *arguments, timeout=300).json_lines():
            assert document["put"] not in found, f"{document['put']} was visited twice"
            found[document["put"]] = document["fields"]
        return found

    def wait_for_job(self, job, phases, seconds=60):
        def reached():
            shown = self.fjord("job", "show", job, "-o", "json")
            return shown.code == OK and shown.json()["phase"] in phases and shown.json()
        return wait_until(reached, f"{job} is in one of {phases}", seconds)

    def results(self, job):
        lines = self.must("job", "results", job, "-o", "json").json_lines()
        keys = [line["key"] for line in lines]
        assert keys == sorted(keys, key=lambda key: key.encode()), "results are not sorted by key"
        assert len(set(keys)) == len(keys), "a key has two results"
        return {line["key"]: line["value"] for line in lines}


def main():
    # A test that hangs says where before the runner ends it.
    if "FJORD_TEST_SECONDS" in os.environ:
        faulthandler.dump_traceback_later(max(1, int(os.environ["FJORD_TEST_SECONDS"]) - 10))
    unittest.main(verbosity=2)
