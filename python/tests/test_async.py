"""AsyncClient: the same as Client, on an event loop; together with threads; what cancellation does."""

import asyncio
import inspect
import itertools
import signal
import subprocess
import sys
import threading

import pytest

import fjord
from conftest import SCHEMA, package_environment
from fjord import schema
from fjord.admin import Admin
from fjord.aggregate import Relation
from fjord.aio import AsyncSubscription, AsyncVisit
from fjord.aio_parts import AsyncAdmin, AsyncBalancing, AsyncJob, AsyncJobs, AsyncRelation, AsyncTune
from fjord.balance import Balancing
from fjord.jobs import Job, Jobs, script
from fjord.tune import Tune
from fjord.visit import Subscription, Visit

TWINS = [(fjord.Client, fjord.AsyncClient), (Visit, AsyncVisit), (Subscription, AsyncSubscription), (Relation, AsyncRelation),
         (Job, AsyncJob), (Jobs, AsyncJobs), (Admin, AsyncAdmin), (Balancing, AsyncBalancing), (Tune, AsyncTune)]


def run(address, main):
    """Runs `main(client)` with a client of its own on a loop of its own."""
    async def whole():
        async with fjord.AsyncClient(address) as client:
            return await asyncio.wait_for(main(client), 120)
    return asyncio.run(whole())


def test_both_clients_have_the_same_methods():
    def methods(cls):
        return {name: inspect.signature(one) for base in cls.__mro__[:-1] for name, one in vars(base).items()
                if not name.startswith("_") and inspect.isfunction(one)}

    def properties(cls):
        return {name for base in cls.__mro__[:-1] for name, one in vars(base).items()
                if not name.startswith("_") and isinstance(one, property)}

    def parameters(signature):
        return {name: (one.kind, one.default) for name, one in list(signature.parameters.items())[1:]}

    for one, twin in TWINS:
        expected, found = methods(one), methods(twin)
        assert expected.keys() == found.keys(), twin
        assert properties(one) <= properties(twin), twin
        for name in expected:
            assert parameters(expected[name]) == parameters(found[name]), (twin, name)


def test_jobs_administration_and_tuning(address, space):
    async def main(client):
        await client.put(space(1), {"name": "tea", "price": 3})
        names = client.aggregate("item").filter(f'id.namespace == "{space.name}"').group_by("name").agg("count() as n")
        assert names.request()["group_by"] == ["name"]
        with pytest.raises(RuntimeError, match="run"):
            names.columns
        assert (await names.run(on_progress=lambda job: None)).fetchall() == [("tea", 1)]
        assert names.columns == ["name", "n"]
        assert pytest.importorskip("pyarrow").table(names).to_pylist() == [{"name": "tea", "n": 1}]
        for job in [await client.jobs.submit(names), await client.jobs.submit([names]), await client.jobs.run(passes=names)]:
            assert [row.value async for row in job.results()] == [["tea", 1]]
            assert [row.value for row in await job.results()] == [["tea", 1]]
            assert (await job.result()).fetchall() == [("tea", 1)]
            assert (await (await client.jobs.get(job.id)).status()).state == "done"
        assert "AsyncJob " in repr(job)
        assert (await client.admin.balancing.status()).mode == "advise"
        assert isinstance(await client.tune.history(), list)
        with pytest.raises(fjord.WrongType, match="id: expected str, got int 5"):
            await client.jobs.get(5)
    run(address, main)


def test_a_visit_tells_its_progress_and_a_subscription_waits_for_so_long(address, space):
    async def main(client):
        await client.put(space(1), {"price": 3})
        visit = client.visit(space.where())
        assert visit.eta is None and visit.statistics == {}
        assert [one.id async for one in visit] == [space(1)]
        assert (visit.eta, visit.progress, visit.statistics["documents_matched"]) == (0, 1, 1)
        changes = client.subscribe(space.where(), from_now=True)
        while await changes.next(timeout=0.01) is not None:
            pass
        await client.put(space(2), {})
        found = None
        while found is None or found.kind != "put":
            found = await changes.next(timeout=1)
        assert found.id == space(2)
        with pytest.raises(fjord.WrongType, match="timeout"):
            await changes.next(timeout="x")
        changes.close()
    run(address, main)


def test_typed_documents(address, space):
    Item = schema.dataclass("item", schemas=SCHEMA)

    async def main(client):
        item = Item(id=space(1), price=3)
        assert not (await item.put(client)).existed and item.version
        assert (await Item.get(client, space(1))).price == 3
        assert [one.price async for one in Item.visit(client, space.where())] == [3]
    run(address, main)


def test_what_on_result_raises_ends_the_feed(address, space):
    async def forever():
        for n in itertools.count():
            yield space(n % 100), {"price": n}

    async def main(client):
        def fail(result):
            raise KeyError(result.id)

        for rows in ((space(n % 100), {"price": n}) for n in itertools.count()), forever():
            with pytest.raises(KeyError, match=space.name):
                await client.feed(rows, on_result=fail)
    run(address, main)


SLOW = """function map(doc, emit)
  local n = 0
  for i = 1, 1e9 do n = n + i % 7 end
  emit("n", n)
end
function reduce(key, values) return #values end"""

CANCELLED = """
import asyncio, sys
import fjord
from fjord.jobs import script

async def main():
    async with fjord.AsyncClient(sys.argv[1]) as client:
        slow = script(sys.argv[3], "item", parameters={"timeout_ms": 60000})
        job = await client.jobs.submit(slow, detached=sys.argv[2] == "detached")
        print(job.id, flush=True)
        {wait}

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
WAITS = {
    "job": "await job.wait(on_progress=lambda info: print('waits', flush=True))",
    "results": "[row async for row in job.results()]",
    "tuner": "await client.tune.run(metrics=sys.argv[4:], period=0.2, on_event=lambda event: print('waits', flush=True))",
}


@pytest.mark.parametrize("what, how", [("job", "attached"), ("job", "detached"), ("results", "attached"), ("tuner", "attached")])
def test_ctrl_c_ends_a_task_that_waits(cluster, client, space, what, how):
    client.put(space(1), {})
    program = subprocess.Popen([sys.executable, "-c", CANCELLED.replace("{wait}", WAITS[what]), cluster.address, how, SLOW,
                                *cluster.metrics], stdout=subprocess.PIPE, text=True, env=package_environment())
    job = client.jobs.get(program.stdout.readline().strip())
    if "waits" in WAITS[what]:
        assert program.stdout.readline() == "waits\n"
    program.send_signal(signal.SIGINT)
    rest, _ = program.communicate(timeout=60)
    assert rest.endswith("interrupted\n") and program.returncode == 0
    if what != "tuner" and how == "attached":
        assert job.wait(check=False).state == "cancelled"
    else:
        assert not job.status().has_ended
        job.cancel()


def test_the_end_of_wait_for_cancels_the_job(address, client, space):
    client.put(space(1), {})

    async def main(twin):
        job = await twin.jobs.submit(script(SLOW, "item", parameters={"timeout_ms": 60000}))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(job.wait(), 0.3)
        return await job.wait(check=False)
    assert run(address, main).state == "cancelled"


def test_single_documents(address, space):
    async def main(client):
        await client.ping()
        assert "not connected" not in repr(client) and "fjord.AsyncClient" in repr(client)
        written = await client.put(space(1), {"price": 1})
        document = await client.get(space(1))
        assert (dict(document), document.version) == ({"price": 1}, written.version)
        await client.update(space(1), {"price": {"increment": 1}}, required_version=written.version)
        with pytest.raises(fjord.ConditionFailed):
            await client.put(space(1), {}, required_version=0)
        with pytest.raises(fjord.WrongType):
            await client.put(space(1), {"price": "x"})
        with pytest.raises(fjord.UnknownType):
            await client.put(space(1, "nothing"), {})
        with pytest.raises(fjord.NotFound):
            await client.get(space(2))
        assert await client.get(space(2), None) is None
        found = await client.get_many([space(1), space(2)], fields=["price"])
        assert found == [{"price": 2}, None]
        assert (await client.types())["item"]["price"] == "int"
        assert (await client.remove(space(1))).existed
    run(address, main)


def test_many_tasks(address, space):
    async def main(client):
        await asyncio.gather(*(client.put(space(n), {"price": n}) for n in range(2000)))
        return await asyncio.gather(*(client.get(space(n)) for n in range(2000)))
    assert [document["price"] for document in run(address, main)] == list(range(2000))


def test_streams(address, space):
    async def main(client):
        async def rows():
            for n in range(2500):
                yield space(n), {"price": "bad" if n == 3 else n}

        results = []
        stats = await client.feed(rows(), on_result=results.append)
        assert (stats.ok, stats.failed, len(results)) == (2499, 1, 2500)
        assert (await client.feed([(space(3), {"price": 3})])).ok == 1
        visit = client.visit(space.where(), slices=2)
        first = [(await visit.__anext__()).id for _ in range(10)]
        rest = [one.id async for one in client.visit(space.where(), slices=2, resume=visit.cursor)]
        visit.close()
        assert sorted(first + rest) == sorted(space(n) for n in range(2500))
        async with client.subscribe(space.where(), from_now=True, poll_interval=0.05) as changes:
            async for change in changes:
                if change.kind == "caught_up":
                    break
            await client.put(space("new"), {})
            async for change in changes:
                if change.kind == "put":
                    assert change.id == space("new")
                    break
        done = await client.update_where(space.where("item.price < 10"), {"stock": {"assign": 1}}, type="item")
        assert done.applied == 10
        assert (await client.remove_where(space.where("item.price < 10"), type="item")).applied == 10
    run(address, main)


def test_a_type_that_is_deployed_later(address, client, space, deploy):
    async def main(twin):
        await twin.ping()
        client.ping()
        deploy("document later { field price type int { header } } document last { field price type int { header } }")
        await twin.put(space(1, "later"), {"price": 1})
        client.put(space(1, "last"), {"price": 2})
        assert await twin.get(space(1, "last")) == {"price": 2}
        assert client.get(space(1, "later")) == {"price": 1}
    run(address, main)


def test_files(address, space, tmp_path):
    async def main(client):
        await client.put(space(1), {"price": 1})
        assert (await client.export(tmp_path / "a.jsonl", space.where(), type="item")).documents == 1
        assert (await client.import_file(tmp_path / "a.jsonl")).stored == 1
    run(address, main)


@pytest.mark.parametrize("arguments", [{"type": "nothing"}, {"selection": "item.price >"}])
def test_a_wrong_visit_raises_at_its_first_document(address, arguments):
    async def main(client):
        with pytest.raises(ValueError):
            async for _ in client.visit(**arguments):
                pass
    run(address, main)


def test_a_cancelled_wait_leaves_the_iterator_usable(address, space):
    async def main(client):
        changes = client.subscribe(space.where(), from_now=True, poll_interval=0.05)
        async for change in changes:
            if change.kind == "caught_up":
                break
        waiting = asyncio.ensure_future(changes.__anext__())
        while changes._wait is None:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await client.put(space(1), {})
        async for change in changes:
            if change.kind == "put":
                return change.id
    assert run(address, main) == space(1)


def test_a_cancelled_feed_ends(address, space):
    async def main(client):
        taken = asyncio.Event()
        loop = asyncio.get_running_loop()
        ended = threading.Event()

        def endless():
            try:
                for count in itertools.count():
                    if count == 5000:
                        loop.call_soon_threadsafe(taken.set)
                    yield space(count % 100), {"price": 1}
            finally:
                ended.set()

        feeding = asyncio.ensure_future(client.feed(endless()))
        await taken.wait()
        feeding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await feeding
        assert await asyncio.to_thread(ended.wait, 60)
    run(address, main)


def test_loops_in_threads_beside_a_plain_client(address, client, space):
    def work(number):
        async def main(mine):
            for n in range(100):
                await mine.put(space(f"{number}-{n}"), {"price": n})
        run(address, main)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for n in range(100):
        client.put(space(n), {"price": n})
    for thread in threads:
        thread.join()
    assert sum(1 for _ in client.visit(space.where())) == 400


def test_a_client_belongs_to_one_loop(address):
    client = fjord.AsyncClient(address)
    asyncio.run(client.ping())

    async def first():
        await client.get("id:x:item::1", None)

    asyncio.run(first())
    asyncio.run(first())  # the loop before is closed

    async def close():
        await client.close()
        with pytest.raises(fjord.ClientClosed):
            await client.get("id:x:item::1")
    asyncio.run(close())
