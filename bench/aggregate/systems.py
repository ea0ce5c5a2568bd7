"""The systems that `./run bench aggregate` compares. Each starts its processes in its own folder, loads the documents,
answers queries and stops its processes. `ask(name, query, rows)` writes the result to the file `rows`, one JSON
array per line, and returns seconds (from submitting the query until its result is readable) and CPU seconds (None if
unknown)."""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import postgres_server  # noqa: E402, as it lies beside this folder
from postgres_server import Unavailable, run  # noqa: E402


def cpu_seconds(pid, with_children=False):
    """Returns the CPU time of a process so far, optionally with that of its ended children."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15 if with_children else 13])) / os.sysconf("SC_CLK_TCK")


class Fjord:
    """Three storage nodes, a distributor and a fleet controller, each a process; redundancy 1."""

    name = "Fjord"

    def __init__(self, folder, binaries):
        self.folder = folder / "fjord"
        self.binaries = binaries
        self.environment = None

    def program(self, name, *arguments):
        return run([self.binaries / name, *arguments], env=self.environment)

    def start(self, documents):
        line = run([self.binaries / "fjord", "local", "start", "--dir", self.folder, "--storage", 3, "--distributors", 1,
                    "--redundancy", 1, "--gateways", 0])
        self.environment = {**os.environ, "FJORD_CLUSTER": line.strip().split("=", 1)[1]}
        self.program("fjord", "schema", "deploy", HERE / "places.sd")
        begun = time.perf_counter()
        self.program("fjord", "import", "--type", "place", "--id-field", "number", "--timeout", 300, documents.json)
        self.loaded_seconds = time.perf_counter() - begun
        self.version = "of this commit"

    def processes(self):
        return [int(path.read_text().split()[0]) for path in (self.folder / "run").glob("*.pid")]

    def ask(self, _, query, rows):
        before = sum(map(cpu_seconds, self.processes()))
        ours = os.times()
        said = self.program("fjord-bench", "query", "--repeat", 1, "--spec", json.dumps(query["spec"]), "--output", rows)
        after = os.times()
        cpu = sum(map(cpu_seconds, self.processes())) - before
        cpu += after.children_user - ours.children_user + after.children_system - ours.children_system
        return float(re.search(r"query time_s ([0-9.e+-]+) s", said).group(1)), cpu

    def stop(self):
        if (self.folder / "cluster.yaml").exists():
            run([self.binaries / "fjord", "local", "stop", "--dir", self.folder])


class Server:
    """A program that reads queries as lines of JSON."""

    def __init__(self, log, python, script, *arguments):
        self.log = log
        with open(log, "w") as errors:
            self.process = subprocess.Popen([str(python), "-B", str(HERE / script), *map(str, arguments)], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)

    def ask(self, request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.log.read_text()[-2000:])
        return json.loads(line)

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class DuckDb:
    """One process with as many threads as processors. `own`: reads its own columns, in a file written before; otherwise
    the lines of JSON with a given schema."""

    def __init__(self, folder, python, threads, own):
        self.name = "DuckDB, its own columns" if own else "DuckDB, lines of JSON"
        self.own = own
        self.python = python
        self.threads = threads
        self.database = folder / "duckdb.database" if own else ":memory:"
        self.log = folder / f"duckdb-{'own' if own else 'lines'}.log"
        self.server = None

    def start(self, documents):
        columns = "{number: 'BIGINT', city: 'VARCHAR', country: 'VARCHAR', population: 'INTEGER', description: 'VARCHAR'}"
        lines = f"read_json('{documents.json}', format = 'newline_delimited', columns = {columns})"
        self.server = Server(self.log, self.python, "duckdb_server.py", self.database, self.threads)
        self.source = lines
        self.loaded_seconds = 0.0
        if self.own:
            self.loaded_seconds = self.server.ask({"sql": f"CREATE TABLE places AS SELECT * FROM {lines}"})["seconds"]
            self.source = "places"
        self.version = self.server.ask({"sql": "SELECT 1"})["version"]

    def ask(self, _, query, rows):
        answer = self.server.ask({"sql": query["sql"].format(source=self.source), "rows": str(rows)})
        return answer["seconds"], answer["cpu_seconds"]

    def stop(self):
        if self.server:
            self.server.stop()


class ClickHouse:
    """One process (chdb) with as many threads as processors, and a table of its own, written before."""

    name = "ClickHouse"

    def __init__(self, folder, python, threads):
        self.python = python
        self.threads = threads
        self.folder = folder / "clickhouse"
        self.log = folder / "clickhouse.log"
        self.server = None

    def start(self, documents):
        self.server = Server(self.log, self.python, "clickhouse_server.py", self.folder, self.threads)
        columns = "number Int64, city String, country String, population Int32, description String"
        self.server.ask({"sql": f"CREATE TABLE places ({columns}) ENGINE = MergeTree ORDER BY number"})
        answer = self.server.ask({"sql": f"INSERT INTO places SELECT * FROM file('{documents.json}', JSONEachRow, '{columns}')"})
        self.loaded_seconds, self.version = answer["seconds"], answer["version"]

    def ask(self, _, query, rows):
        answer = self.server.ask({"sql": query["sql"].format(source="places"), "rows": str(rows)})
        return answer["seconds"], answer["cpu_seconds"]

    def stop(self):
        if self.server:
            self.server.stop()


class Spark:
    """One process; reads the lines of JSON with a given schema again for each query."""

    def __init__(self, folder, python, threads):
        self.name = "Spark, lines of JSON"
        self.log = folder / "spark.log"
        self.python = python
        self.threads = threads
        self.server = None
        if shutil.which("java") is None:
            raise Unavailable("Spark needs a Java runtime (Debian: default-jre-headless)")

    def start(self, documents):
        self.server = Server(self.log, self.python, "spark_server.py", documents.json, self.threads)
        self.loaded_seconds = 0.0
        self.version = None

    def ask(self, name, query, rows):
        sql = query["sql"].replace("double precision", "double").format(source="places")
        answer = self.server.ask({"sql": sql, "rows": str(rows)})
        self.version = answer["version"]
        return answer["seconds"], None

    def stop(self):
        if self.server:
            self.server.stop()


class Postgres(postgres_server.PostgresServer):
    """A column table (without the description) that fits into the server's shared memory; queried through psql."""

    name = "PostgreSQL"

    def start(self, documents):
        self.start_server()
        begun = time.perf_counter()
        self.psql("CREATE TABLE places (number bigint, city text, country text, population integer);\n"
                  f"\\copy places FROM '{documents.csv}' WITH (FORMAT csv)\nVACUUM ANALYZE places;\n")
        self.loaded_seconds = time.perf_counter() - begun
        self.version = self.psql("SHOW server_version").split()[0]

    def psql(self, commands):
        return run([self.programs / "psql", "-X", "-q", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", self.port,
                    "-U", "bench", "-d", "postgres", "-f", "-"], input=commands)

    def ask(self, _, query, rows):
        table = f"{rows}.csv"
        before = cpu_seconds(self.server.pid, with_children=True)
        said = self.psql(f"\\timing on\n\\pset format csv\n\\o {table}\n{query['sql'].format(source='places')};\n")
        time.sleep(0.1)  # The backend process ends; its CPU time then counts for the server.
        cpu = cpu_seconds(self.server.pid, with_children=True) - before  # Without the client's CPU time.
        with open(table, newline="", encoding="utf-8") as source, open(rows, "w", encoding="utf-8") as target:
            for row in csv.reader(source):
                target.write(json.dumps([value if number == 0 else json.loads(value) for number, value in enumerate(row)]) + "\n")
        return float(re.search(r"Time: ([0-9.]+) ms", said).group(1)) / 1000, cpu
