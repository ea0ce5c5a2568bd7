"""Aggregations: the same rows in every form, nothing runs before they are asked for, and mistakes are named."""

import pytest

import fjord
from fjord.aggregate import avg, count, distinct, max, min, quantile, sum
from fjord.testing import LocalCluster

LISTING = "document listing { field city type string { header } field price type int { header } field area type double {} }"
LARGE = "document large { field n type long {} field part type double {} }"
CITIES = "document cities { field city type string {} field n type long {} field mean type double {} }"
ROWS = [("Oslo", 10), ("Oslo", 20), ("Rome", 30), ("Rome", 40), ("Rome", 50), (None, 60)]


@pytest.fixture(scope="module")
def client():
    with LocalCluster(storage=2, redundancy=1, schemas=[LISTING, CITIES, LARGE]) as cluster:
        with cluster.client() as connected:
            stats = connected.feed((f"id:a:listing::{i}", {"city": city, "price": price, "area": price / 4})
                                   for i, (city, price) in enumerate(ROWS))
            assert stats.ok == len(ROWS)
            yield connected


def test_a_relation_groups_filters_orders_and_limits(client):
    cities = (client.aggregate("listing").filter("price > 10").filter("price < 60").group_by("city")
              .agg(n=count(), mean=avg("price"), least=min("price"), most=max("price"), total=sum("price")))
    assert cities.order_by("city").fetchall() == [("Oslo", 1, 20.0, 20, 20, 20), ("Rome", 3, 40.0, 30, 50, 120)]
    assert cities.order_by("-n").limit(1).fetchall()[0][0] == "Rome"
    assert cities.having("n > 1").fetchall() == [("Rome", 3, 40.0, 30, 50, 120)]
    assert cities.columns == ["city", "n", "mean", "least", "most", "total"]


def test_a_relation_is_lazy_and_unchanged_by_its_methods(client):
    broken = client.aggregate("listing").filter("price >").agg(n=count())
    assert "not run" in repr(broken)
    with pytest.raises(fjord.Error, match="selection, column 8"):
        broken.fetchall()
    all_rows = client.aggregate("listing").agg(n=count())
    assert all_rows.filter("price > 55").fetchone() == (1,)
    assert all_rows.fetchone() == (6,)
    jobs = len(client.jobs.list())
    all_rows.fetchall()
    assert len(client.jobs.list()) == jobs, "rows that are there are not computed again"


def test_no_group_is_none_and_no_documents_make_one_row(client):
    assert client.aggregate("listing").group_by("city").agg(n=count()).order_by("city").fetchall()[0] == (None, 1)
    assert client.aggregate("listing").filter("price > 99").agg(count(), avg("price")).fetchall() == [(0, None)]


def test_expressions_and_estimates_have_columns(client):
    rows = client.aggregate("listing").group_by("price / 100 as hundred").agg(quantile(0.5, "price"), kinds=distinct("city"))
    assert rows.columns == ["hundred", "quantile_0_5_price", "kinds"]
    assert len(rows.fetchall()) == 6


def test_arrow_pandas_and_polars_have_the_rows(client):
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    cities = client.aggregate("listing").group_by("city").agg(n=count(), mean=avg("price")).order_by("city")
    table = cities.arrow()
    assert table.schema.types == [pa.string(), pa.int64(), pa.float64()]
    assert [tuple(row.values()) for row in table.to_pylist()] == cities.fetchall()
    assert isinstance(cities.df(), pd.DataFrame) and cities.df()["n"].sum() == 6
    assert isinstance(cities.pl(), pl.DataFrame) and cities.pl()["n"].sum() == 6
    assert pa.table(cities).num_rows == 3


def test_sums_keep_all_digits_and_columns_their_types(client):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    client.feed((f"id:a:large::{n}", {"n": 2**63 - 1, "part": part}) for n, part in enumerate((1.5, float("inf"), None)))
    rows = client.aggregate("large").agg(total=sum("n"), most=max("part"), mean=avg("n"))
    assert rows.fetchall() == [(3 * (2**63 - 1), float("inf"), float(2**63 - 1))]
    assert rows.arrow().schema.types == [pa.decimal128(38, 0), pa.float64(), pa.float64()]
    assert [int(one) for one in rows.arrow()["total"].to_pylist()] == [3 * (2**63 - 1)]
    assert int(rows.df()["total"][0]) == 3 * (2**63 - 1) and rows.df()["most"][0] == float("inf")
    nothing = client.aggregate("large").filter("n < 0").agg(total=sum("n"), most=max("part"))
    assert nothing.arrow().schema.types == [pa.int64(), pa.float64()]


def test_rows_are_stored_and_replaced(client):
    cities = client.aggregate("listing").filter("city != null").group_by("city").agg(n=count(), mean=avg("price"))
    stored = cities.into("cities", name="all")
    assert (stored.put, stored.removed) == (2, 0)
    assert {one["city"]: one["n"] for one in client.visit(type="cities")} == {"Oslo": 2, "Rome": 3}
    again = cities.filter('city == "Rome"').into("cities", name="all")
    assert (again.put, again.removed) == (1, 1)
    assert [one["mean"] for one in client.visit(type="cities")] == [40.0]


def test_an_incremental_run_reads_what_changed(client):
    total = client.aggregate("listing").agg(n=count(), total=sum("price")).incremental()
    first = total.run()
    client.put("id:a:listing::extra", {"city": "Bern", "price": 70})
    second = total.run()
    client.remove("id:a:listing::extra")
    assert first.fetchall() == [(6, 210)] and second.fetchall() == [(7, 280)]


def test_progress_is_reported_to_the_program(client):
    seen = []
    client.aggregate("listing").agg(n=count()).run(on_progress=seen.append)
    assert seen == [] or all(0 <= job.fraction_done <= 1 for job in seen)


def test_mistakes_are_named(client):
    with pytest.raises(fjord.WrongType, match=r"group_by\[1\].*str.*int"):
        client.aggregate("listing").group_by("city", 7)
    with pytest.raises(fjord.WrongType, match="limit"):
        client.aggregate("listing").limit(0)
    with pytest.raises(fjord.WrongType, match="type"):
        client.aggregate(7)
    with pytest.raises(fjord.UnknownType):
        client.aggregate("nothing").agg(n=count()).fetchall()
    with pytest.raises(fjord.Error, match="colour"):
        client.aggregate("listing").group_by("colour").agg(n=count()).fetchall()
