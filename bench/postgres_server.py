"""A PostgreSQL server of one's own, for benchmarks: the newest that is installed, with memory for what it is compared with."""

import glob
import os
import pathlib
import pwd
import signal
import socket
import subprocess
import time


class Unavailable(Exception):
    """The system cannot run here; the text says what is missing."""


def run(arguments, **options):
    """Runs a program that has to succeed; returns its standard output."""
    finished = subprocess.run([str(one) for one in arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **options)
    if finished.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))} ended with {finished.returncode}:\n{finished.stderr[-2000:]}")
    return finished.stdout


def can_enter(folder, user):
    """True if a process with these arguments of subprocess.run (user, group, extra_groups) can enter the folder."""
    return subprocess.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)], cwd="/", stderr=subprocess.DEVNULL, **user).returncode == 0


class PostgresServer:
    """Its data are in `folder`/postgresql, its user is "bench", its database "postgres". Errors: Unavailable."""

    def __init__(self, folder):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
        if not found:
            raise Unavailable("no PostgreSQL (Debian: postgresql)")
        self.programs = pathlib.Path(found[-1]).parent
        self.folder = folder / "postgresql"
        self.server = None
        self.port = None
        self.user = {}
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            owner = next((name for name in ("postgres", "nobody") if name in {one.pw_name for one in pwd.getpwall()}), None)
            if owner is None:
                raise Unavailable("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
            self.user = {"user": owner, "group": pwd.getpwnam(owner).pw_gid, "extra_groups": []}

    def start_server(self):
        self.folder.mkdir()
        data = self.folder / "data"
        if self.user:
            os.chown(self.folder, pwd.getpwnam(self.user["user"]).pw_uid, self.user["group"])
            if not can_enter(self.folder, self.user):
                raise Unavailable(f"PostgreSQL runs as the user {self.user['user']}, who cannot enter {self.folder}; set TMPDIR to a "
                                  "folder that other users can enter, or leave it out")
        run([self.programs / "initdb", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--username", "bench",
             "--pgdata", data], cwd=self.folder, **self.user)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "",
                    "shared_buffers": "512MB", "work_mem": "64MB", "max_parallel_workers_per_gather": os.cpu_count(),
                    "logging_collector": "off"}
        arguments = [str(self.programs / "postgres"), "-D", str(data)]
        for setting, value in settings.items():
            arguments += ["-c", f"{setting}={value}"]
        with open(self.folder / "log", "w") as log:
            self.server = subprocess.Popen(arguments, stdout=log, stderr=log, cwd=self.folder, **self.user)
        deadline = time.monotonic() + 60
        while subprocess.run([self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode != 0:
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("PostgreSQL does not start:\n" + (self.folder / "log").read_text()[-2000:])
            time.sleep(0.05)

    def stop(self):
        if self.server and self.server.poll() is None:
            self.server.send_signal(signal.SIGINT)  # "Fast" shutdown: the server ends its own processes.
            self.server.wait(timeout=60)
