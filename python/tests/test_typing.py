"""mypy --strict: the package itself, and a program that uses it."""

import pathlib
import subprocess
import sys

import pytest

import fjord

PROGRAM = """
import asyncio
from typing import List, Optional, Union

import fjord
import fjord.testing

client = fjord.Client("127.0.0.1:19110", timeout=3)
document: fjord.Document = client.get("id:a:item::1")
maybe: Optional[fjord.Document] = client.get("id:a:item::1", None)
several: List[Optional[fjord.Document]] = client.get_many(["id:a:item::1"])
version: int = client.put("id:a:item::1", {"price": 3}).version
stats: fjord.FeedStats = client.feed([("id:a:item::1", {})], on_result=lambda result: print(result.error))
for change in client.subscribe():
    kind: str = change.kind
job = client.jobs.aggregate("price > 3", ["name"], {"n": fjord.aggregate.count()}, type="item")
source: str = fjord.schema.python("item", client=client)


def first() -> fjord.Document:
    return next(client.visit())


def removed_or_not() -> Union[fjord.Document, fjord.Removed]:
    return next(client.visit(include_removed=True))


async def first_later(twin: fjord.AsyncClient) -> fjord.Document:
    async for one in twin.visit():
        return one
    raise KeyError


async def operate(twin: fjord.AsyncClient) -> str:
    job = await twin.jobs.submit(twin.aggregate("item").agg("count()"))
    info = await job.wait(check=False)
    async for row in job.results():
        key: str = row.key
    for one in await twin.jobs.list():
        print(one.id)
    loads = await twin.admin.balancing.status(buckets=3)
    return info.state + (await twin.admin.status()).health + loads.mode


async def main() -> int:
    async with fjord.AsyncClient() as twin:
        found = await twin.get("id:a:item::1")
        return found.version


asyncio.run(main())
"""


WRONG = """
import fjord

fjord.Client().put(5, {})
x: str = fjord.Client().get("id:a:item::1").version


async def main(twin: fjord.AsyncClient) -> None:
    twin.jobs.submitt("x")
    state: int = (await twin.admin.status()).health
    await twin.admin.balancing.status(bucket=3)
    document: fjord.Document = next(fjord.Client().visit(include_removed=True))
"""


def test_the_package_is_typed_and_wrong_use_is_noticed(tmp_path):
    pytest.importorskip("mypy")
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(PROGRAM)
    wrong.write_text(WRONG)
    # In the build folder there are links to the sources.
    sources = pathlib.Path(fjord.__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(right),
                           str(wrong)], text=True, capture_output=True, env={"PATH": "/usr/bin:/bin", "MYPYPATH": str(sources)})
    errors = [line.split(": error: ") for line in done.stdout.splitlines() if ": error: " in line]
    assert [place.rpartition("/")[2] for place, _ in errors] == [f"wrong.py:{line}" for line in (4, 5, 9, 10, 11, 12)], done.stdout + done.stderr
