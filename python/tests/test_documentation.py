"""Every public method has an example, and every example of docstrings and pages does what it says."""

import asyncio
import inspect
import os
import pathlib

import pytest

import fjord
from examples import run_examples
from fjord.aio import AsyncSubscription, AsyncVisit
from fjord.testing import LocalCluster
from fjord.visit import Subscription, Visit

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python"
SCHEMA = """
document item {
  field name type string { header }
  field price type int { header }
  field tags type array<string> {}
}
"""
CLASSES = [fjord.Client, fjord.AsyncClient, Visit, Subscription, AsyncVisit, AsyncSubscription]


def described():
    """Returns what has to have an example: classes, their methods, and the exceptions that carry values."""
    found = {"fjord": fjord, "fjord.errors": fjord.errors}
    for cls in CLASSES:
        found[cls.__name__] = cls
        for name, member in vars(cls).items():
            if not name.startswith("_") and inspect.isfunction(member):
                found[f"{cls.__name__}.{name}"] = member
    return found


@pytest.fixture(scope="module")
def shop():
    with LocalCluster(storage=1, schemas=[SCHEMA]) as cluster:
        before = os.environ.get("FJORD_CLUSTER")
        os.environ["FJORD_CLUSTER"] = cluster.address
        with fjord.Client() as client:
            yield client
        del os.environ["FJORD_CLUSTER"]
        if before is not None:
            os.environ["FJORD_CLUSTER"] = before


def fill_shop(client):
    client.remove_where("true", type="item")
    client.put("id:shop:item::1", {"name": "tea", "price": 3})
    client.put("id:shop:item::2", {"name": "milk", "price": 1})


def run(text, shop, tmp_path, monkeypatch, wants_async):
    """Runs the examples with a client of their kind, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    text = text.replace("127.0.0.1:19110", os.environ["FJORD_CLUSTER"])
    fill_shop(shop)
    shop.export("items.jsonl", "item.price > 2", type="item")
    loop = asyncio.new_event_loop()
    try:
        client = fjord.AsyncClient() if wants_async else fjord.Client()
        count = run_examples(text, {"fjord": fjord, "asyncio": asyncio, "client": client}, loop)
        if wants_async:
            loop.run_until_complete(client.close())
        else:
            client.close()
        return count
    finally:
        loop.close()


@pytest.mark.parametrize("name", described())
def test_every_method_has_an_example_that_runs(shop, tmp_path, monkeypatch, name):
    text = inspect.getdoc(described()[name])
    assert text and ">>>" in text, f"{name} has no example"
    assert run(text, shop, tmp_path, monkeypatch, "Async" in name and "." in name or name in ("AsyncVisit", "AsyncSubscription"))


@pytest.mark.parametrize("name", sorted(vars(fjord.errors)))
def test_examples_of_exceptions(shop, tmp_path, monkeypatch, name):
    error = getattr(fjord.errors, name)
    if not inspect.isclass(error) or not issubclass(error, Exception):
        return
    assert error.__doc__
    run(inspect.getdoc(error), shop, tmp_path, monkeypatch, False)


@pytest.mark.parametrize("page", [PAGES / "README.md"], ids=lambda page: page.name)  # The others: test_pages.py
def test_pages(shop, tmp_path, monkeypatch, page):
    text = page.read_text()
    begin = "```python\n"
    blocks = [part.split("```")[0] for part in text.split(begin)[1:]]
    examples = "\n".join(block for block in blocks if ">>>" in block)
    assert len([block for block in blocks if ">>>" not in block]) == 0, "a block of Python without >>> is not run"
    assert run(examples, shop, tmp_path, monkeypatch, False) > 0
