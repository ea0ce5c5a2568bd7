"""The systems whose single operations `./run bench peers` compares. Each has processes and files of its own in a folder.

`measure(documents)` starts fresh servers, stores the documents, reads them back in several ways, stops the servers, and returns
figures by the names of FIGURES. Raises RuntimeError if what is read is not what was stored.
"""

import csv
import json
import os
import pathlib
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import postgres_server  # noqa: E402, as it lies beside this folder
from postgres_server import Unavailable, run  # noqa: E402

FIGURES = {
    "put": "put, pipelined, acknowledged by the process, a second",
    "put_encoded": "the same, encoded beforehand",
    "put_synced": "put, pipelined, synced, a second",
    "get_1_p50_us": "get, one at a time, median, µs",
    "get_16": "get, 16 in flight, a second",
    "get_64": "get, 64 in flight, a second",
    "get_pipelined": "get, 64 in flight on 4 connections, a second",
    "visit_mb": "visit, all as JSON, MB/s",
}
SECONDS = 5
SAMPLE = 100


class Documents:
    """The lines of `fjord visit`, one for each document: {"put": id, "fields": {...}}. `keys` and `values` are in their order."""

    def __init__(self, path):
        self.path = path
        self.keys, self.values = [], []
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                self.keys.append(record["put"])
                self.values.append(json.dumps(record["fields"], separators=(",", ":"), ensure_ascii=False))
        self.prefix = self.keys[0][:self.keys[0].rindex("::") + 2]
        self.bytes = sum(len(value.encode()) for value in self.values)

    def __len__(self):
        return len(self.keys)

    def number(self, index):
        return int(self.keys[index][len(self.prefix):])

    def sample(self):
        """Returns (index, expected fields) of some documents."""
        return [(index, json.loads(self.values[index])) for index in random.Random(1).sample(range(len(self)), min(SAMPLE, len(self)))]


def check(what, found, expected):
    if found != expected:
        raise RuntimeError(f"{what}: {str(found)[:200]} instead of {str(expected)[:200]}")


def seconds_of(arguments, **options):
    """Runs a program that has to succeed and whose output is not needed."""
    begun = time.perf_counter()
    finished = subprocess.run([str(one) for one in arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)
    if finished.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))} ended with {finished.returncode}:\n{finished.stderr[-2000:]}")
    return time.perf_counter() - begun


class Fjord:
    """Three storage nodes with one copy of each document, a distributor and a fleet controller."""

    name = "Fjord"

    def __init__(self, folder, binaries):
        self.folder = folder / "fjord"
        self.binaries = binaries
        self.version = "of this commit"
        self.environment = None
        self.is_running = False

    def program(self, name, *arguments, **options):
        return run([self.binaries / name, *arguments], env=self.environment, **options)

    def start(self, settings=""):
        """`settings`: lines of the section storage_options."""
        local = [self.binaries / "fjord", "local"]
        run([*local, "create", "--dir", self.folder, "--storage", 3, "--redundancy", 1, "--gateways", 0, "--ports", "any"])
        config = self.folder / "cluster.yaml"
        config.write_text(config.read_text().replace("storage_options:\n", "storage_options:\n" + settings))
        self.is_running = True
        line = run([*local, "start", "--dir", self.folder]).strip()
        self.environment = {**os.environ, "FJORD_CLUSTER": line.split("=", 1)[1]}
        self.program("fjord", "schema", "deploy", HERE.parent / "listing.sd")

    def stop(self):
        if self.is_running:
            run([self.binaries / "fjord", "local", "stop", "--dir", self.folder])
        self.is_running = False
        shutil.rmtree(self.folder, ignore_errors=True)

    def bench(self, name, count, *options):
        said = self.program("fjord-bench", name, "--documents", count, *options)
        return {metric: float(value) for _, metric, value, *_ in map(str.split, said.splitlines())}

    def write_documents(self, path, count):
        """Makes the documents that all systems store."""
        self.start()
        self.bench("feed", count)
        with open(path, "w") as lines:
            subprocess.run([str(self.binaries / "fjord"), "visit", "--type", "listing"], stdout=lines, env=self.environment, check=True)
        self.stop()

    def measure(self, documents):
        figures = {}
        self.start()
        figures["put_encoded"] = self.bench("feed", len(documents))["docs_per_s"]
        gets = self.bench("get", len(documents), "--seconds", SECONDS)
        figures["get_1_p50_us"] = gets["inflight1_p50_ms"] * 1000
        figures["get_16"] = gets["inflight16_per_s"]
        figures["get_64"] = gets["inflight64_per_s"]
        visit = [self.binaries / "fjord", "visit", "--type", "listing", "--progress", "never"]
        figures["visit_mb"] = documents.bytes / seconds_of(visit, env=self.environment) / 1e6
        self.stop()
        self.start()
        imported = json.loads(self.program("fjord", "import", "--progress", "never", "--output", "json", documents.path))
        check("documents imported", imported["ok"], len(documents))
        figures["put"] = imported["docs_per_s"]
        self.stop()
        self.start("  durability: sync\n")
        figures["put_synced"] = self.bench("feed", len(documents))["docs_per_s"]
        self.stop()
        return figures


class Redis:
    """One process. Without its log for puts that the process acknowledges; with a sync of its log at each write for synced ones."""

    name = "Redis"

    def __init__(self, folder):
        if shutil.which("redis-server") is None:
            raise Unavailable("no Redis (Debian: redis-server)")
        self.version = re.search(r"v=([0-9.]+)", run(["redis-server", "--version"])).group(1)
        self.folder = folder / "redis"
        self.server = None

    def start(self, is_synced):
        self.folder.mkdir()
        self.port = free_port()
        arguments = ["--port", self.port, "--bind", "127.0.0.1", "--save", "", "--dir", self.folder]
        arguments += ["--appendonly", "yes", "--appendfsync", "always"] if is_synced else ["--appendonly", "no"]
        with open(self.folder / "log", "w") as log:
            self.server = subprocess.Popen(["redis-server", *map(str, arguments)], stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while subprocess.run(["redis-cli", "-p", str(self.port), "ping"], capture_output=True, text=True).stdout != "PONG\n":
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("Redis does not start:\n" + (self.folder / "log").read_text()[-2000:])
            time.sleep(0.02)

    def stop(self):
        if self.server is not None:
            self.server.terminate()
            self.server.wait(timeout=60)
            self.server = None
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def key(documents, index):
        return f"{documents.prefix}{documents.number(index):012}"  # redis-benchmark draws numbers of twelve digits.

    def store(self, documents):
        commands = self.folder / "commands"
        with open(commands, "wb") as file:
            for index, value in enumerate(documents.values):
                key, data = self.key(documents, index).encode(), value.encode()
                file.write(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key, len(data), data))
        with open(commands, "rb") as file:
            begun = time.perf_counter()
            said = run(["redis-cli", "-p", self.port, "--pipe"], stdin=file)
            seconds = time.perf_counter() - begun
        commands.unlink()
        check("Redis, stored", re.search(r"errors: (\d+), replies: (\d+)", said).groups(), ("0", str(len(documents))))
        return len(documents) / seconds

    def benchmark(self, documents, connections, pipeline=1):
        said = run(["redis-benchmark", "-p", self.port, "-c", connections, "-P", pipeline, "-n", len(documents), "-r", len(documents), "--csv",
                    "GET", f"{documents.prefix}__rand_int__"])
        header, row = list(csv.reader(said.splitlines()))[:2]
        return {name: float(value) for name, value in zip(header[1:], row[1:])}

    def visit(self, documents):
        """Reads all documents on one connection, 500 keys in each command. Returns MB/s."""
        commands = []
        for first in range(0, len(documents), 500):
            keys = [self.key(documents, index).encode() for index in range(first, min(first + 500, len(documents)))]
            commands.append(b"*%d\r\n$4\r\nMGET\r\n" % (len(keys) + 1) + b"".join(b"$%d\r\n%s\r\n" % (len(key), key) for key in keys))
        framing = sum(len(f"*{min(500, len(documents) - first)}\r\n") for first in range(0, len(documents), 500))
        expected = framing + sum(len(value) + len(f"${len(value)}\r\n\r\n") for value in (text.encode() for text in documents.values))
        buffer = bytearray(1 << 20)
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as connection:
            begun = time.perf_counter()
            sender = threading.Thread(target=lambda: [connection.sendall(command) for command in commands])
            sender.start()
            received = 0
            while received < expected:
                count = connection.recv_into(buffer)
                if count == 0:
                    raise RuntimeError("Redis has closed the connection")
                received += count
            seconds = time.perf_counter() - begun
            sender.join()
        check("Redis, bytes of all documents", received, expected)
        return documents.bytes / seconds / 1e6

    def measure(self, documents):
        self.start(is_synced=False)
        figures = {"put": self.store(documents)}
        figures["put_encoded"] = figures["put"]  # Redis takes the text of a document as it is.
        for index, fields in documents.sample():
            said = run(["redis-cli", "-p", self.port, "--raw", "get", self.key(documents, index)])
            check(documents.keys[index], json.loads(said), fields)
        figures["get_1_p50_us"] = self.benchmark(documents, 1)["p50_latency_ms"] * 1000
        figures["get_16"] = self.benchmark(documents, 16)["rps"]
        figures["get_64"] = self.benchmark(documents, 64)["rps"]
        figures["get_pipelined"] = self.benchmark(documents, 4, pipeline=16)["rps"]
        figures["visit_mb"] = self.visit(documents)
        self.stop()
        self.start(is_synced=True)
        figures["put_synced"] = self.store(documents)
        self.stop()
        return figures


class Postgres(postgres_server.PostgresServer):
    """A table of an id, its primary key, and a document as jsonb. Puts are a COPY; synced ones are inserts of 100 documents in a
    pipeline on each of 8 connections."""

    name = "PostgreSQL"
    PIPELINE = 100

    def __init__(self, folder):
        super().__init__(folder)
        self.version = run([self.programs / "postgres", "--version"]).split()[2]

    def psql_command(self, commands):
        return [self.programs / "psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", self.port, "-U", "bench", "-d",
                "postgres", "-c", commands]

    def psql(self, commands):
        return run(self.psql_command(commands))

    def pgbench(self, script, connections, *options):
        path = self.folder / "script.sql"
        path.write_text(script)
        return run([self.programs / "pgbench", "-n", "-M", "prepared", "-f", path, "-c", connections, "-j", min(connections, 2), "-T", SECONDS, *options, "-h",
                    "127.0.0.1", "-p", self.port, "-U", "bench", "postgres"])

    @staticmethod
    def rate(said):
        return float(re.search(r"tps = ([0-9.]+) \(without", said).group(1))

    def stop(self):
        super().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def measure(self, documents):
        self.start_server()
        rows = self.folder / "rows.csv"
        with open(rows, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(zip(documents.keys, documents.values))
        self.psql("CREATE TABLE listing (id text PRIMARY KEY, document jsonb)")
        begun = time.perf_counter()
        self.psql(f"\\copy listing FROM '{rows}' WITH (FORMAT csv)")
        figures = {"put": len(documents) / (time.perf_counter() - begun)}
        self.psql("VACUUM ANALYZE listing")
        check("PostgreSQL, rows", int(self.psql("SELECT count(*) FROM listing")), len(documents))
        for index, fields in documents.sample():
            check(documents.keys[index], json.loads(self.psql(f"SELECT document FROM listing WHERE id = '{documents.keys[index]}'")), fields)
        # pgbench takes a colon in a text for the begin of a parameter.
        prefix = " || chr(58) || ".join(f"'{part}'" for part in documents.prefix.split(":"))
        get = f"\\set n random(0, {len(documents) - 1})\nSELECT document FROM listing WHERE id = {prefix} || CAST(:n AS text);\n"
        log = self.folder / "latencies"
        self.pgbench(get, 1, "-l", "--log-prefix", log)
        [written] = self.folder.glob("latencies.*")
        figures["get_1_p50_us"] = statistics.median(int(line.split()[2]) for line in written.read_text().splitlines())
        figures["get_16"] = self.rate(self.pgbench(get, 16))
        figures["get_64"] = self.rate(self.pgbench(get, 64))
        figures["visit_mb"] = documents.bytes / seconds_of(self.psql_command("COPY (SELECT document FROM listing) TO STDOUT")) / 1e6
        self.psql("CREATE TABLE synced (id bigserial PRIMARY KEY, document jsonb)")
        document = documents.values[0].replace("'", "''")
        insert = f"INSERT INTO synced (document) VALUES ('{document}');\n"
        figures["put_synced"] = self.PIPELINE * self.rate(self.pgbench("\\startpipeline\n" + insert * self.PIPELINE + "\\endpipeline\n", 8))
        self.stop()
        return figures


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
