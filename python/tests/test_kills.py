"""Nodes that are killed while a program feeds, visits, subscribes, aggregates and runs jobs: nothing is lost, nothing is there twice.

The faults come when the work has begun and before it can have ended, by what the program has seen, not by time.
"""

import os
import threading

import pytest

import fjord
from fjord.aggregate import count, sum
from fjord.jobs import script
from fjord.testing import LocalCluster

pa = pytest.importorskip("pyarrow")
ITEM = "document item { field n type int { header } field text type string {} }"
COUNT = 6000


@pytest.fixture
def cluster():
    with LocalCluster(storage=3, distributors=2, redundancy=2, schemas=ITEM) as running:
        yield running


@pytest.fixture
def client(cluster):
    with cluster.client(timeout=60) as connected:
        yield connected


def rows(count=COUNT):
    return ((f"id:k:item::{n}", {"n": n, "text": "x" * 800}) for n in range(count))


def kill_after(cluster, node, values, number):
    """Gives the values, and kills the node after a number of them."""
    for index, value in enumerate(values):
        if index == number:
            cluster.kill(node)
        yield value


@pytest.mark.parametrize("node", ["storage.1", "distributor.1"])
def test_a_feed_survives_a_kill(cluster, client, node):
    stats = client.feed(kill_after(cluster, node, rows(), COUNT // 2))
    assert (stats.ok, stats.failed, stats.in_doubt) == (COUNT, 0, 0)
    cluster.restart(node)
    assert sorted(one["n"] for one in client.visit(type="item", fields=["n"])) == list(range(COUNT))


def test_an_import_of_a_table_survives_a_kill(cluster, client):
    columns = pa.schema({"_id": pa.string(), "n": pa.int32(), "text": pa.string()})

    def batches():
        for first in range(0, COUNT, 500):
            if first == 2000:
                cluster.kill("storage.2")
            numbers = range(first, first + 500)
            yield pa.record_batch([[f"{n}" for n in numbers], list(numbers), ["x" * 800] * 500], schema=columns)

    summary = client.import_arrow(pa.RecordBatchReader.from_batches(columns, batches()), type="item")
    assert (summary.stored, summary.failed, summary.in_doubt) == (COUNT, 0, 0)
    cluster.restart("storage.2")
    assert client.aggregate("item").agg(n=count(), total=sum("n")).fetchone() == (COUNT, COUNT * (COUNT - 1) // 2)


@pytest.mark.parametrize("node", ["storage.0", "distributor.0"])
def test_a_visit_gives_each_document_once_over_a_kill(cluster, client, node):
    client.feed(rows())
    numbers = []
    for batch in kill_after(cluster, node, client.visit_arrow(type="item", batch_rows=200, buffer_bytes=1 << 20), 5):
        numbers += batch["n"].to_pylist()
    assert sorted(numbers) == list(range(COUNT))
    cluster.restart(node)
    documents = kill_after(cluster, node, client.visit(type="item", buffer_bytes=1 << 20), 1000)
    assert sorted(one["n"] for one in documents) == list(range(COUNT))


def test_a_subscription_misses_nothing_over_a_kill(cluster, client):
    client.feed(rows(1000))
    seen = set()
    with client.subscribe(type="item") as changes:
        for change in changes:
            if change.kind == "caught_up":
                break
            seen.add(change.document["n"])
        assert seen == set(range(1000))
        cluster.kill("storage.1")
        writer = threading.Thread(target=lambda: client.feed(rows(1500)))
        writer.start()
        later = set()
        for change in changes:
            if change.kind == "put":
                later.add(change.document["n"])
            if later >= set(range(1500)):
                break
        writer.join()
    assert later == set(range(1500))


def test_a_job_survives_a_kill(cluster, client):
    client.feed(rows(2000))
    job = client.jobs.submit(script("""
        function map(doc, emit)
          local s = 0
          for i = 1, 20000 do s = s + i end
          emit("n", doc.fields.n)
        end
        function reduce(key, values)
          local total = 0
          for _, n in ipairs(values) do total = total + n end
          return total
        end""", "item"))
    killed = []

    def kill_once(info):
        if not killed:
            killed.append(info.phase)
            cluster.kill("storage.1")

    ended = job.wait(on_progress=kill_once)
    assert killed and ended.state == "done"
    assert [row.value for row in job.results()] == [2000 * 1999 // 2]


def test_an_operation_waits_for_a_paused_node_and_a_time_limit_ends_the_wait(cluster, client):
    client.feed(rows(100))
    for node in (0, 1, 2):
        cluster.pause(node)
    with pytest.raises(fjord.Error) as failed:
        client.get("id:k:item::1", timeout=0.5)
    assert isinstance(failed.value, (fjord.DeadlineExceeded, fjord.Transient))
    for node in (0, 1, 2):
        cluster.resume(node)
    cluster.wait_ready()
    assert client.get("id:k:item::1")["n"] == 1


@pytest.mark.skipif(not os.environ.get("FJORD_LONG"), reason="an hour; FJORD_LONG=1 runs it")
def test_an_hour_of_visits_leaks_nothing(client):
    import gc
    import time

    client.feed(rows())

    def resident():
        gc.collect()
        pa.default_memory_pool().release_unused()
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    for _ in range(50):
        client.visit_arrow(type="item").table()
    settled = resident()
    end = time.monotonic() + 3600
    while time.monotonic() < end:
        assert client.visit_arrow(type="item").table().num_rows == COUNT
        assert len(client.visit_arrow(type="item", batch_rows=100).reader().read_next_batch()) == 100
    assert resident() - settled < 16 << 20


@pytest.mark.parametrize("retry, is_repeated", [(fjord.RetryPolicy(attempt_timeout=0.05), True), (fjord.RetryPolicy(), False)])
def test_an_attempt_has_its_own_time_limit(cluster, client, retry, is_repeated):
    with cluster.client(timeout=60, retry=retry) as impatient:
        impatient.ping()
        for index in range(2):
            cluster.pause(f"distributor.{index}")
        stats = impatient.feed([("id:k:item::1", {"n": 1})], timeout=1)
    assert (stats.ok, stats.in_doubt) == (0, 1)
    assert (stats.retried > 0) == is_repeated


@pytest.mark.parametrize("retry, message", [
    (fjord.RetryPolicy(attempt_timeout=0), "retry.attempt_timeout"),
    (fjord.RetryPolicy(backoff_min=0), "retry.backoff_min"),
    (fjord.RetryPolicy(backoff_min=2, backoff_max=1), "retry.backoff_max"),
])
def test_a_wrong_retry_policy_is_named(retry, message):
    with pytest.raises(ValueError, match=message):
        fjord.Client(retry=retry).ping()


def test_a_retry_policy_of_a_wrong_type_is_named():
    with pytest.raises(fjord.WrongType, match="backoff_max"):
        fjord.Client(retry=fjord.RetryPolicy(backoff_max="long"))
