"""The pages of docs/python and the docstrings of the modules: every example runs and prints what is written."""

import doctest
import asyncio
import inspect
import pathlib
import re

import pytest

import fjord
from examples import run_examples
from fjord import admin, aggregate, arrow, jobs, progress, schema, tune
from fjord.testing import LocalCluster

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python"
ITEM = """document item { field name type string { header } field price type int { header } field tags type array<string> {} }"""
NEEDS = {"arrow.md": ["pyarrow", "pandas", "polars", "duckdb"], "aggregation.md": ["pyarrow", "pandas", "polars"],
         "tutorial.md": ["pandas"]}


def source_of(page):
    """Returns the text of the page with blank lines in place of what is no example, so that lines keep their numbers."""
    lines, is_example = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            is_example = line == "```python"
            line = ""
        lines.append(line if is_example else "")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", ["arrow.md", "aggregation.md", "jobs.md", "testing.md", "tutorial.md"])
def test_a_page_runs_as_written(name, tmp_path, monkeypatch):
    for package in NEEDS.get(name, []):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    source = source_of(PAGES / name)
    assert len(re.findall(r"^>>> ", source, re.MULTILINE)) > 1
    with LocalCluster(storage=2, schemas=ITEM) as cluster:
        monkeypatch.setenv("FJORD_CLUSTER", cluster.address)
        test = doctest.DocTestParser().get_doctest(source, {}, name, str(PAGES / name), 0)
        output = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        results = runner.run(test, out=output.append)
    assert results.failed == 0, "".join(output)
    assert results.attempted > 1


def described():
    """Returns the docstrings with examples of all functions and classes of users, by their names."""
    found = {}
    for module in (admin, aggregate, arrow, jobs, progress, schema, tune):
        places = {module.__name__: module}
        for name, member in vars(module).items():
            if name.startswith("_") or getattr(member, "__module__", None) != module.__name__:
                continue
            places[f"{module.__name__}.{name}"] = member
            if inspect.isclass(member):
                places.update({f"{module.__name__}.{name}.{inner}": value for inner, value in vars(member).items()
                               if not inner.startswith("_") and inspect.isfunction(value)})
        found.update({name: inspect.getdoc(place) for name, place in places.items() if ">>>" in (inspect.getdoc(place) or "")})
    return found


@pytest.fixture(scope="module")
def tea():
    schemas = [ITEM, "document names { field name type string {} field n type long {} }"]
    with LocalCluster(storage=1, schemas=schemas) as cluster:
        with cluster.client() as client:
            yield client


@pytest.mark.parametrize("name", sorted(described()))
def test_an_example_runs_as_written(name, tea, tmp_path, monkeypatch):
    for package in ("pyarrow", "pandas", "polars"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    tea.remove_where("true", type="item")
    tea.put("id:shop:item::1", {"name": "tea", "price": 3})
    names = {"fjord": fjord, "client": tea, "schema": schema, "count": aggregate.count, "max": aggregate.max,
             "avg": aggregate.avg, "script": jobs.script, "application": jobs.application, "aggregation": jobs.aggregation}
    if name == "fjord.jobs.Jobs.get":
        names["job"] = tea.jobs.run(jobs.application("citycount", "item", parameters={"field": "name"}))
    loop = asyncio.new_event_loop()
    try:
        assert run_examples(described()[name], names, loop) > 0
    finally:
        loop.close()
