#!/usr/bin/env python3
"""Measures the Python client against a cluster of real processes on this machine. `./run bench python` builds first and calls this.

It starts 3 storage nodes, a distributor and a fleet controller with redundancy 1 in a temporary folder and prints lines
`name value unit`: feeding dicts, importing an Arrow table, reading one document (beside the C++ client), visits to Arrow and to
dicts, an aggregation as a data frame (beside the same without the frame), and `import fjord`. Each is the median of the turns.
With --postgresql, psycopg's COPY of the same rows, in the same turns as the feed and the import. A server that is not asked sleeps.
"""

import argparse
import contextlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pyarrow

import fjord
from fjord.aggregate import count
from fjord.testing import LocalCluster

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from postgres_server import PostgresServer  # noqa: E402, as it lies beside this folder

BODY_BYTES = 700
GETS = 20000


def make_table(documents, seed):
    """Documents of about 0.8 kB as those of bench/listing.sd, with `_id`: the part of the id after id:bench:listing::."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcdefghijklmnoprstuv", k=draw.randint(3, 9))) for _ in range(4096)]
    cities = [word.capitalize() for word in words[:2000]]
    countries = [word.capitalize() for word in words[2000:2060]]

    def body():
        text = " ".join(draw.choices(words, k=BODY_BYTES // 7 + 20))
        return text[:BODY_BYTES]

    return pyarrow.table({
        "_id": [str(row) for row in range(documents)],
        "city": draw.choices(cities, k=documents),
        "country": draw.choices(countries, k=documents),
        "title": [" ".join(draw.choices(words, k=5)) for _ in range(documents)],
        "price": pyarrow.array([draw.randrange(100000) for _ in range(documents)], pyarrow.int32()),
        "description": [body() for _ in range(documents)],
    })


def seconds_of(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def report(name, values, unit):
    text = " ".join(f"{value:.4g}" for value in values)
    print(f"{name:24} {statistics.median(values):10.4g} {unit:6} ({text})", flush=True)


def feed(client, rows):
    stats = client.feed(rows)
    if stats.ok != len(rows):
        sys.exit(f"bench: {len(rows) - stats.ok} of {len(rows)} documents were not stored")


class Copy:
    """psycopg's COPY of the rows of a table into PostgreSQL: columns, and a primary key."""

    def __init__(self, stack):
        import psycopg

        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fjord-bench-python.")))
        folder.chmod(0o755)  # PostgreSQL runs as another user.
        server = PostgresServer(folder)
        stack.callback(server.stop)
        server.start_server()
        self.connection = stack.enter_context(psycopg.connect(
            host="127.0.0.1", port=server.port, user="bench", dbname="postgres", autocommit=True))
        self.connection.execute("CREATE TABLE listing (id text PRIMARY KEY, city text, country text, title text, price integer, "
                                "description text)")

    def empty(self):
        self.connection.execute("TRUNCATE listing")
        self.connection.execute("CHECKPOINT")

    def load(self, rows):
        with self.connection.cursor() as cursor, cursor.copy("COPY listing FROM STDIN") as copy:
            for id, fields in rows:
                copy.write_row((id, fields["city"], fields["country"], fields["title"], fields["price"], fields["description"]))

    def check(self, documents):
        found = self.connection.execute("SELECT count(*) FROM listing").fetchone()[0]
        if found != documents:
            sys.exit(f"bench: PostgreSQL has {found} of {documents} rows")


def load_by_turns(client, table, rows, copy, turns):
    """Feeds the dicts, imports the table, and copies the rows into PostgreSQL if wanted, one after the other in each turn."""
    fed, imported, copied = [], [], []
    for _ in range(turns):
        fed.append(len(rows) / seconds_of(lambda: feed(client, rows)))
        imported.append(len(rows) / seconds_of(lambda: import_table(client, table)))
        if copy is not None:
            copy.empty()
            copied.append(len(rows) / seconds_of(lambda: copy.load(rows)))
            copy.check(len(rows))
    report("feed of dicts", fed, "/s")
    report("import of a table", imported, "/s")
    if copy is not None:
        report("COPY into PostgreSQL", copied, "/s")


def import_table(client, table):
    summary = client.import_arrow(table, type="listing", namespace="bench")
    if summary.stored != table.num_rows:
        sys.exit(f"bench: {table.num_rows - summary.stored} of {table.num_rows} rows were not stored")


def processor_time(cluster):
    """Seconds of all nodes."""
    total = 0.0
    for address in cluster.metrics:
        with urllib.request.urlopen(f"http://{address}/metrics") as page:
            lines = page.read().decode().splitlines()
        total += sum(float(line.split()[1]) for line in lines if line.startswith("fjord_process_cpu_seconds "))
    return total


def wait_for_rest(cluster):
    """Waits until the nodes have merged what was overwritten: they take less than a twentieth of a processor for a second."""
    before = processor_time(cluster)
    while True:
        time.sleep(1)
        now = processor_time(cluster)
        if now - before < 0.05:
            return
        before = now


def visit_arrow(client, documents):
    size = rows = 0
    with client.visit_arrow(type="listing").reader() as reader:
        for batch in reader:
            size += batch.nbytes
            rows += batch.num_rows
    if rows != documents:
        sys.exit(f"bench: the visit gave {rows} of {documents} documents")
    return size


def visit_dicts(client, documents):
    rows = sum(1 for _ in client.visit(type="listing"))
    if rows != documents:
        sys.exit(f"bench: the visit gave {rows} of {documents} documents")


def measure_gets(client, documents, seed):
    draw = random.Random(seed)
    times = []
    for _ in range(GETS):
        name = f"id:bench:listing::{draw.randrange(documents)}"
        times.append(seconds_of(lambda: client.get(name)) * 1e6)
    return statistics.median(times)


def measure_aggregation(client):
    def rows():
        client.aggregate("listing").group_by("country").agg(n=count()).fetchall()

    def frame():
        client.aggregate("listing").group_by("country").agg(n=count()).df()

    rows(), frame()
    return [[seconds_of(work) * 1e3 for _ in range(15)] for work in (rows, frame)]


def measure_import():
    program = "import time; start = time.perf_counter(); import fjord; print((time.perf_counter() - start) * 1e3)"
    return [float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout)
            for _ in range(10)]


def measure_beside_cpp(client, address, options):
    """Gets one at a time by this client and by the C++ client, which checks the answers and so needs documents of its own."""
    program = [str(ROOT / "build" / "release" / "bin" / "fjord-bench"), "--cluster", address, "--documents", str(options.documents),
               "--seed", str(options.seed)]
    subprocess.run([*program, "feed"], check=True, stdout=subprocess.DEVNULL)
    for turn in range(options.turns):
        report("get, median", [measure_gets(client, options.documents, options.seed + turn)], "us")
        print("beside it, the C++ client:", flush=True)
        subprocess.run([*program, "get", "--seconds", "3"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=300000, help="of 0.8 kB (300000)")
    parser.add_argument("--seed", type=int, default=1, help="what they are made from (1)")
    parser.add_argument("--turns", type=int, default=3, help="of each measurement (3)")
    parser.add_argument("--postgresql", action="store_true", help="also COPY the rows into PostgreSQL")
    options = parser.parse_args()

    report("import fjord", measure_import(), "ms")
    table = make_table(options.documents, options.seed)
    rows = [(f"id:bench:listing::{row.pop('_id')}", row) for row in table.to_pylist()]
    schema = (ROOT / "bench" / "listing.sd").read_text()
    turns = range(options.turns)
    with LocalCluster(storage=3, redundancy=1, schemas=schema, keep_logs=False) as cluster:
        client = cluster.client(timeout=60)
        with contextlib.ExitStack() as stack:
            load_by_turns(client, table, rows, Copy(stack) if options.postgresql else None, options.turns)
        del rows
        report("until nodes rest", [seconds_of(lambda: wait_for_rest(cluster))], "s")
        sizes = []
        took = [seconds_of(lambda: sizes.append(visit_arrow(client, options.documents))) for _ in turns]
        report("visit to Arrow", [size / seconds / 1e6 for size, seconds in zip(sizes, took)], "MB/s")
        report("visit to dicts", [options.documents / seconds_of(lambda: visit_dicts(client, options.documents)) for _ in turns], "/s")
        without, with_frame = measure_aggregation(client)
        report("aggregation, rows", without, "ms")
        report("aggregation, data frame", with_frame, "ms")
        measure_beside_cpp(client, cluster.address, options)


if __name__ == "__main__":
    main()
