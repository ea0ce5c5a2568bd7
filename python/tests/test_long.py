"""Many visits of one process, of every kind: its memory does not grow. Run by `./run test --long`, and with -m long."""

import asyncio
import os
import statistics
import time

import pytest

import fjord
from fjord.aggregate import count
from fjord.testing import LocalCluster

DOCUMENTS = 5000
# This number of rounds takes some minutes; FJORD_LONG_SECONDS=3600 is for an hour of visits.
ROUNDS = 500
SECONDS = float(os.environ.get("FJORD_LONG_SECONDS", "0"))
GROWTH_MAX = 4_000_000  # Bytes; 14 kB lost in each round are more.


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def visit_async(client):
    assert sum([1 async for _ in client.visit("item.number < 500", type="item")]) == 500
    visit = client.visit(type="item")
    assert (await visit.__anext__()).id
    visit.close()


def visit_all_ways(client, columns):
    assert sum(1 for _ in client.visit(type="item", slices=2)) == DOCUMENTS
    with client.visit(type="item", buffer_bytes=10_000) as early:
        assert next(early).id
    client.visit(type="item").close()
    resumed = client.visit("item.number < 100", type="item")
    assert next(resumed).id
    resumed.close()
    assert sum(1 for _ in client.visit("item.number < 100", type="item", resume=resumed.cursor)) == 99
    with pytest.raises(fjord.InvalidSelection):
        client.visit("item.number <")
    with client.subscribe("item.number < 10") as changes:
        assert next(changes).id
    assert client.aggregate("item").agg(n=count()).fetchall() == [(DOCUMENTS,)]
    if columns:
        assert client.visit_arrow(type="item").table().num_rows == DOCUMENTS
        with client.visit_arrow(type="item", batch_rows=100) as batches:
            assert next(iter(batches)).num_rows <= 100
        assert len(client.visit_arrow("item.number < 100", type="item").df()) == 100


@pytest.mark.long
def test_memory_stays_flat_over_many_visits():
    columns = all(map(_can_import, ("pyarrow", "pandas")))
    samples = []
    began = time.monotonic()
    with LocalCluster(storage=2, redundancy=1, schemas="document item { field number type int {} field text type string {} }") as cluster:
        with cluster.client() as client:
            client.feed((f"id:a:item::{i}", {"number": i, "text": f"{i} " * 40}) for i in range(DOCUMENTS))

            async def rounds():
                async with fjord.AsyncClient(cluster.address) as twin:
                    while len(samples) < ROUNDS or time.monotonic() - began < SECONDS:
                        visit_all_ways(client, columns)
                        await visit_async(twin)
                        samples.append(resident())

            asyncio.run(rounds())
    # The first fifth is for caches and arenas.
    fifth = len(samples) // 5
    early, late = statistics.median(samples[fifth:2 * fifth]), statistics.median(samples[-fifth:])
    print(f"{len(samples)} rounds in {time.monotonic() - began:.0f} s: {early / 1e6:.1f} MB in the second fifth, {late / 1e6:.1f} MB in the last")
    assert late - early < GROWTH_MAX


def _can_import(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True
