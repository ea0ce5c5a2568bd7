"""Fixtures for pytest, found through the entry point of the package.

    def test_prices(fjord_cluster):
        with fjord_cluster(storage=1, schemas=["item.sd"]).client() as client:
            ...
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, List

import pytest

from fjord.testing.local_cluster import LocalCluster

_FAILED = pytest.StashKey[bool]()


@pytest.fixture
def fjord_cluster(request: pytest.FixtureRequest) -> Iterator[Callable[..., LocalCluster]]:
    """Makes and starts clusters: `cluster = fjord_cluster(storage=3, schemas=[...])`.

    The clusters end with the test. If the test fails, the ends of their logs are printed.
    """
    clusters: List[LocalCluster] = []

    def make(*arguments: Any, **options: Any) -> LocalCluster:
        cluster = LocalCluster(*arguments, **options)
        clusters.append(cluster)
        return cluster.start()

    yield make
    for cluster in clusters:
        if request.node.stash.get(_FAILED, False):
            cluster.print_logs()
        cluster.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]") -> Iterator[None]:
    outcome: Any = yield
    if outcome.get_result().failed:
        item.stash[_FAILED] = True
