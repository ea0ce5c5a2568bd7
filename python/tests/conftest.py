"""One cluster for all tests; each has ids of its own, in a namespace with its name."""

import os
import re
import subprocess

import pytest

import fjord
from fjord.testing import LocalCluster

SCHEMA = """
document item {
  struct credit {
    field name type string {}
    field share type double {}
  }
  field name type string { header }
  field price type int { header }
  field stock type long {}
  field rating type float {}
  field weight type double {}
  field sold type bool {}
  field level type byte {}
  field picture type raw {}
  field tags type array<string> {}
  field moods type weightedset<string> {}
  field years type map<int, string> {}
  field maker type credit {}
  field credits type array<credit> {}
}
document other {
  field name type string { header }
  field price type string {}
}
"""


@pytest.fixture(scope="session")
def cluster():
    with LocalCluster(storage=2, redundancy=2, schemas=[SCHEMA]) as running:
        yield running


@pytest.fixture(scope="session")
def shared_client(cluster):
    with fjord.Client(cluster.address) as client:
        yield client


@pytest.fixture
def client(shared_client):
    return shared_client


class Space:
    """Ids of one test."""

    def __init__(self, name):
        self.name = name

    def __call__(self, number, type="item"):
        return f"id:{self.name}:{type}::{number}"

    def where(self, condition=None):
        """Returns a selection of this test's documents."""
        mine = f'id.namespace == "{self.name}"'
        return mine if condition is None else f"{mine} and {condition}"


@pytest.fixture
def space(request):
    return Space(re.sub(r"\W", "-", request.node.name))


@pytest.fixture
def address(cluster):
    return cluster.address


@pytest.fixture
def deploy(cluster, tmp_path):
    """Deploys another schema."""
    def run(text):
        schema = tmp_path / "schema.sd"
        schema.write_text(text)
        subprocess.run([os.path.join(os.environ["FJORD_BIN"], "fjord"), "schema", "deploy", "--cluster", cluster.address,
                        str(schema)], check=True, capture_output=True)
    return run


def package_environment():
    """Returns the environment in which another Python finds this package."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(fjord.__file__)))
    return {**os.environ, "PYTHONPATH": folder}
