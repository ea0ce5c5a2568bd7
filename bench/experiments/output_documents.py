#!/usr/bin/env python3
"""Which size of the documents of a MapReduce job suits: tokens of 76 bytes put into one bucket, by the amount of data, the limit of
a slotfile and the size of a document [VDS 2007, 6.1]."""

import json
import random

import experiment
from experiment import harness

SCHEMA = "document tuples { field data type string { body } }"
TOKEN_BYTES = 76
MB = 1 << 20
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def write_system(path):
    """Writes 20,000 documents of 1.2 kB in all buckets: a system in use."""
    chooser = random.Random(1)
    with open(path, "w") as file:
        for i in range(20000):
            file.write(json.dumps({"put": f"id:used:tuples::{i}", "fields": {"data": "".join(chooser.choices(ALPHABET, k=1200))}}) + "\n")


def write_output(path, megabytes, document_bytes):
    """Writes equal amounts of tokens in documents of limited size, all with one location and thus in one bucket."""
    tokens = megabytes * MB // TOKEN_BYTES
    block = "".join(random.Random(2).choices(ALPHABET, k=TOKEN_BYTES * 1000))
    per_document = max(1, document_bytes // TOKEN_BYTES)
    count = 0
    with open(path, "w") as file:
        while tokens > 0:
            now = min(tokens, per_document)
            data = (block * (now // 1000 + 1))[:now * TOKEN_BYTES]
            file.write(json.dumps({"put": f"id:out:tuples:n=1:{count}", "fields": {"data": data}}) + "\n")
            tokens -= now
            count += 1
    return count


def measure(options):
    amounts = (8, 64) if options.quick else (8, 32, 64, 128)
    slotfiles = (16,) if options.quick else (2, 8, 16, 64)
    sizes = (64 << 10, 1 << 20, 4 << 20) if options.quick else tuple((64 << 10) << i for i in range(0, 10))
    for slotfile in slotfiles:
        with harness.Cluster(storage=2, redundancy=1, settings=f"storage_options:\n  slotfile_bytes_max: {slotfile * MB}\n") as cluster:
            cluster.deploy(SCHEMA)
            path = cluster.folder / "feed.jsonl"
            write_system(path)
            cluster.must("feed", path)
            for megabytes in amounts:
                for size in sizes:
                    if size > megabytes * MB:
                        continue
                    documents = write_output(path, megabytes, size)
                    seconds, _, fed = experiment.timed(lambda: cluster.fjord("feed", path, timeout=600))
                    summary = fed.json()
                    yield {"slotfile_mb": slotfile, "mb": megabytes, "document_bytes": size, "documents": documents, "seconds": seconds,
                           "failed": documents - summary["ok"]}
                    experiment.say(f"slotfile {slotfile} MB, {megabytes} MB in documents of {size >> 10} kB: {seconds:.2f} s, {documents - summary['ok']} failed")
                    cluster.must("remove", "--type", "tuples", "--selection", "id.user == 1", "--yes", timeout=300)


def show(rows, output):
    amounts = sorted({row["mb"] for row in rows})
    slotfiles = sorted({row["slotfile_mb"] for row in rows})
    for megabytes in amounts:
        print(f"**{megabytes} MB in one bucket**: MB/s by the size of a document and the limit of a slotfile; failed puts in brackets\n")
        sizes = sorted({row["document_bytes"] for row in rows if row["mb"] == megabytes})
        cells = {(row["slotfile_mb"], row["document_bytes"]): f"{megabytes / row['seconds']:.0f}" + (f" ({row['failed']})" if row["failed"] else "")
                 for row in rows if row["mb"] == megabytes}
        experiment.table(["document"] + [f"{slotfile} MB" for slotfile in slotfiles],
                         [[f"{size >> 10} kB"] + [cells[slotfile, size] for slotfile in slotfiles] for size in sizes])
    most = amounts[-1]
    experiment.plot_lines(output / "output-documents.png",
                          {f"slotfile {slotfile} MB": [(row["document_bytes"] / MB, most / row["seconds"]) for row in rows
                                                       if row["mb"] == most and row["slotfile_mb"] == slotfile] for slotfile in slotfiles},
                          "size of a document, MB", "MB/s", f"{most} MB put into one bucket")


if __name__ == "__main__":
    experiment.run(__doc__, "output-documents", measure, show)
