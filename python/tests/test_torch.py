"""The data set for PyTorch, where torch is installed."""

import pytest

import fjord
from fjord.testing import LocalCluster

torch = pytest.importorskip("torch")
pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(storage=2, schemas="document item { field price type int {} field area type double {} }") as running:
        with running.client() as client:
            client.feed((f"id:a:item::{i}", {"price": i, "area": i / 2}) for i in range(1000))
        yield running


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_workers_read_each_document_once(cluster, workers):
    from fjord.torch import VisitDataset

    dataset = VisitDataset(cluster.address, "item.price < 900", type="item", fields=["price", "area"])
    rows = list(torch.utils.data.DataLoader(dataset, batch_size=32, num_workers=workers))
    assert all(isinstance(batch["price"], torch.Tensor) for batch in rows)
    prices = [int(price) for batch in rows for price in batch["price"]]
    assert sorted(prices) == list(range(900))
    assert sum(float(area) for batch in rows for area in batch["area"]) == sum(range(900)) / 2


def test_batches_are_columns(cluster):
    from fjord.torch import VisitDataset

    dataset = VisitDataset(cluster.address, type="item", fields=["price"], batch_rows=100, batches=True)
    columns = list(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2))
    assert len(columns) > 2 and all(set(one) == {"_id", "price"} for one in columns)
    assert sorted(price for one in columns for price in one["price"]) == list(range(1000))


def test_errors_of_a_worker_reach_the_program(cluster):
    from fjord.torch import VisitDataset

    with pytest.raises(fjord.UnknownType):
        list(VisitDataset(cluster.address, type="nothing"))
    with pytest.raises(Exception, match="nothing"):
        list(torch.utils.data.DataLoader(VisitDataset(cluster.address, type="nothing"), num_workers=1))
