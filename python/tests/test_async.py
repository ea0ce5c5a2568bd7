"""AsyncClient: the same as Client, on an event loop; together with threads; what cancellation does."""

import asyncio
import inspect
import itertools
import threading

import pytest

import fjord


def run(address, main):
    """Runs `main(client)` with a client of its own on a loop of its own."""
    async def whole():
        async with fjord.AsyncClient(address) as client:
            return await asyncio.wait_for(main(client), 120)
    return asyncio.run(whole())


def test_both_clients_have_the_same_methods():
    def methods(cls):
        return {name: inspect.signature(one) for name, one in vars(cls).items()
                if not name.startswith("_") and inspect.isfunction(one)}

    def parameters(signature):
        return {name: (one.kind, one.default) for name, one in signature.parameters.items()}

    sync, twin = methods(fjord.Client), methods(fjord.AsyncClient)
    assert sync.keys() == twin.keys()
    for name in sync:
        assert parameters(sync[name]) == parameters(twin[name]), name


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
