"""The pages of docs/python and the docstrings of the modules: every example runs and prints what is written."""

import asyncio
import doctest
import inspect
import pathlib
import re
import subprocess
import sys
from types import FunctionType

import pytest

import fjord
from conftest import package_environment
from examples import run_examples
from fjord import admin, aggregate, aio_parts, arrow, balance, jobs, progress, schema, search, testing, tune, visit
from fjord.testing import LocalCluster, PartitionNotPermitted, local_cluster, network, processes

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python"
ITEM = """document item { field name type string { header } field price type int { header } field tags type array<string> {} }"""
NEEDS = {"arrow.md": ["pyarrow", "pandas", "polars", "duckdb"], "aggregation.md": ["pyarrow", "pandas", "polars"],
         "jobs.md": ["pandas", "pyarrow"], "tutorial.md": ["pandas"]}
METRICS = []
MODULES = [admin, aggregate, aio_parts, arrow, balance, jobs, progress, schema, search, testing, local_cluster, network, processes,
           tune, visit]
# What jobs.passes() and other calls of this package use.
NO_EXAMPLE = {"fjord.jobs.job_info", "fjord.jobs.JobInfo.has_ended", "fjord.visit.seconds_left",
              "fjord.testing.processes.start_process", "fjord.testing.processes.wait_for_end",
              "fjord.testing.processes.find_program"}


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


def test_the_test_of_the_page_passes(tmp_path):
    """The block that a user copies into a file of tests."""
    (tmp_path / "test_copied.py").write_text((PAGES / "testing.md").read_text().split("```py\n")[1].split("```")[0])
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "fjord.testing.pytest_plugin",
                           str(tmp_path)], text=True, capture_output=True, env=package_environment())
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def described():
    """Returns the docstrings of all modules, functions, classes and methods of users, by their names."""
    found = {}
    for module in MODULES:
        places = {module.__name__: module}
        for name, member in vars(module).items():
            if name.startswith("_") or getattr(member, "__module__", None) != module.__name__:
                continue
            places[f"{module.__name__}.{name}"] = member
            if inspect.isclass(member):
                places.update({f"{module.__name__}.{name}.{inner}": value for inner, value in vars(member).items()
                               if not inner.startswith("_") and isinstance(value, (FunctionType, property, classmethod))})
        found.update({name: inspect.getdoc(getattr(place, "__func__", place)) or "" for name, place in places.items()
                      if not inspect.ismodule(place)})
        if ">>>" in (module.__doc__ or ""):
            found[module.__name__] = module.__doc__
    return found


def needs_example(name):
    """Functions, methods and properties need one; values and exceptions are described by what returns or raises them."""
    place = name.split(".")[-1]
    return place[0].islower() and name not in NO_EXAMPLE


@pytest.mark.parametrize("name", sorted(name for name in described() if needs_example(name)))
def test_everything_has_an_example(name):
    assert ">>>" in described()[name]


@pytest.fixture(scope="module")
def tea():
    schemas = [ITEM, "document names { field name type string {} field n type long {} }"]
    with LocalCluster(storage=1, schemas=schemas) as cluster:
        METRICS[:] = cluster.metrics
        with cluster.client() as client:
            yield client


@pytest.fixture(scope="module")
def two():
    """A cluster that examples may harm."""
    with LocalCluster(storage=2, schemas=ITEM) as cluster:
        yield cluster


@pytest.mark.parametrize("name", sorted(name for name, text in described().items() if ">>>" in text))
def test_an_example_runs_as_written(name, request, tea, tmp_path, monkeypatch):
    for package in ("pyarrow", "pandas", "polars"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    tea.remove_where("true", type="item")
    tea.put("id:shop:item::1", {"name": "tea", "price": 3})
    is_async = name.startswith("fjord.aio_parts")
    client = fjord.AsyncClient(tea._core.addresses) if is_async else tea
    names = {"fjord": fjord, "client": client, "schema": schema, "metrics": METRICS, "Progress": progress.Progress, **vars(testing), **vars(network)}
    names.update({one: getattr(aggregate, one) for one in ("count", "max", "avg")})
    names.update({one: getattr(jobs, one) for one in ("script", "application", "aggregation")})
    if name.startswith("fjord.testing"):
        names["cluster"] = request.getfixturevalue("two")
    if name == "fjord.jobs.Jobs.get":
        names["job"] = tea.jobs.run(jobs.application("citycount", "item", parameters={"field": "name"}))
    loop = asyncio.new_event_loop()
    try:
        assert run_examples(described()[name], names, loop) > 0
    except PartitionNotPermitted as error:
        pytest.skip(str(error))
    finally:
        if is_async:
            loop.run_until_complete(client.close())
        loop.close()
