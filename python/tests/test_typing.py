"""mypy --strict: the package itself, and a program that uses it."""

import pathlib
import subprocess
import sys

import pytest

import fjord

PROGRAM = """
import asyncio
from typing import List, Optional

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
    assert [place.rpartition("/")[2] for place, _ in errors] == ["wrong.py:4", "wrong.py:5"], done.stdout + done.stderr
