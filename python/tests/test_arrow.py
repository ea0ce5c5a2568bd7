"""Documents as columns and back: pyarrow, pandas, Polars and DuckDB read what the C++ library writes, and the other way."""

import asyncio
import datetime
import gc
import os
import random
import threading
import zlib

import pytest

import fjord
from fjord import schema
from fjord.testing import LocalCluster

pa = pytest.importorskip("pyarrow")

THING = """schema thing { document thing {
  struct part { field no type int {} field names type array<string> {} }
  field text type string { header }
  field data type raw {}
  field small type byte {}
  field whole type int { header }
  field large type long {}
  field half type float {}
  field real type double {}
  field yes type bool { header }
  field tags type array<string> {}
  field parts type array<part> {}
  field moods type weightedset<string> {}
  field charts type map<string, array<int>> {}
  field main type part {}
} }"""
ITEM = "document item { field name type string { header } field price type int { header } field text type string {} }"
OTHER = "document other { field name type array<int> {} field price type int {} }"

FULL = {"text": 'ä "b"', "data": b"\x00\xff", "small": -7, "whole": 40000, "large": 2**62 + 1, "half": 0.5, "real": 0.1,
        "yes": True, "tags": ["x", "", "y"], "parts": [{"no": 1, "names": ["a", "b"]}, {}, {"names": []}],
        "moods": {"sad": 3, "glad": -1}, "charts": {"de": [1, 2], "at": []}, "main": {"no": 9}}


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(storage=2, redundancy=1, schemas=[THING, ITEM, OTHER]) as running:
        yield running


@pytest.fixture
def client(cluster):
    with fjord.Client(cluster.address) as connected:
        yield connected
        for name in ("thing", "item", "other"):
            connected.remove_where("true", type=name)


def feed_items(client, count, size=10):
    stats = client.feed((f"id:a:item::{i}", {"name": f"n{i % 7}", "price": i, "text": "x" * size}) for i in range(count))
    assert stats.ok == count


def by_id(table):
    return {row.pop("_id"): row for row in table.to_pylist(maps_as_pydicts="strict")}


# --- Visits


def test_every_kind_of_field_is_a_column(client):
    client.put("id:a:thing::1", FULL)
    client.put("id:a:thing::2", {})
    rows = by_id(client.visit_arrow(type="thing").table())
    full = rows["id:a:thing::1"]
    assert full.pop("parts") == [{"no": 1, "names": ["a", "b"]}, {"no": None, "names": None}, {"no": None, "names": []}]
    assert full.pop("main") == {"no": 9, "names": None}
    assert full == {name: value for name, value in FULL.items() if name not in ("parts", "main")}
    assert set(rows["id:a:thing::2"].values()) == {None}


def test_the_types_of_columns_are_those_of_the_schema(client):
    columns = client.visit_arrow(type="thing").schema()
    part = pa.struct([("no", pa.int32()), ("names", pa.list_(pa.field("item", pa.string())))])
    assert columns.field("_id").type == pa.string() and not columns.field("_id").nullable
    expected = {"text": pa.string(), "data": pa.binary(), "small": pa.int8(), "whole": pa.int32(), "large": pa.int64(),
                "half": pa.float32(), "real": pa.float64(), "yes": pa.bool_(), "tags": pa.list_(pa.field("item", pa.string())),
                "parts": pa.list_(pa.field("item", part)), "moods": pa.map_(pa.string(), pa.field("value", pa.int32(), False)),
                "charts": pa.map_(pa.string(), pa.list_(pa.field("item", pa.int32()))), "main": part}
    assert {name: columns.field(name).type for name in expected} == expected


def test_batches_have_the_size_asked_for_and_hold_each_document_once(client):
    feed_items(client, 1000)
    batches = list(client.visit_arrow(type="item", batch_rows=64, slices=2))
    assert max(batch.num_rows for batch in batches) == 64 and len(batches) >= 1000 // 64
    for batch in batches:
        batch.validate(full=True)
    ids = [one for batch in batches for one in batch["_id"].to_pylist()]
    assert sorted(ids) == sorted(f"id:a:item::{i}" for i in range(1000))
    small = list(client.visit_arrow(type="item", batch_bytes=4096))
    assert len(small) > 5


def test_columns_can_be_chosen_and_tell_the_version(client):
    written = client.put("id:a:item::1", {"name": "tea", "price": 3})
    table = client.visit_arrow("item.price > 2", type="item", fields=["price"], version=True).table()
    assert table.to_pylist() == [{"_id": "id:a:item::1", "_version": written.version, "price": 3}]
    assert client.visit_arrow("item.price > 3", type="item").table().num_rows == 0


def test_documents_of_all_types_share_columns(client):
    client.put("id:a:item::1", {"name": "tea", "price": 3})
    client.put("id:a:other::2", {"name": [1, 2], "price": 4})
    rows = by_id(client.visit_arrow(fields=["name", "price"]).table())
    assert rows == {"id:a:item::1": {"name": '"tea"', "price": 3}, "id:a:other::2": {"name": "[1,2]", "price": 4}}


def test_a_visit_goes_on_behind_its_cursor(client):
    feed_items(client, 500)
    visit = client.visit_arrow(type="item", batch_rows=100)
    first = next(iter(visit))
    rest = client.visit_arrow(type="item", resume=visit.cursor).table()
    assert first.num_rows == 100 and rest.num_rows == 400
    assert set(first["_id"].to_pylist()).isdisjoint(rest["_id"].to_pylist())


def test_a_visit_can_be_read_once(client):
    visit = client.visit_arrow(type="item")
    visit.table()
    with pytest.raises(fjord.InvalidArgument, match="read once"):
        visit.table()


def test_what_is_wrong_is_refused_before_the_visit(client):
    with pytest.raises(fjord.UnknownType):
        client.visit_arrow(type="nothing")
    with pytest.raises(fjord.InvalidField):
        client.visit_arrow(type="item", fields=["nothing"])
    with pytest.raises(fjord.InvalidSelection):
        client.visit_arrow("item.price >", type="item")
    with pytest.raises(fjord.InvalidArgument, match="batch_rows"):
        client.visit_arrow(type="item", batch_rows=0)


def sessions(cluster):
    """The number of visitors that run in the storage nodes."""
    from fjord.testing.local_cluster import _metrics, _page

    return sum(_metrics(_page(cluster._http_address(name), "/metrics")).get("fjord_storage_visitors", 0)
               for name in cluster.nodes if name.startswith("storage"))


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_slow_consumer_bounds_the_memory_and_an_early_end_frees_it(client):
    feed_items(client, 40000, size=1500)  # 60 MB
    reader = client.visit_arrow(type="item", batch_rows=100, buffer_bytes=1 << 20).reader()
    reader.read_next_batch()
    before = resident_bytes()
    # Whoever takes nothing gets nothing: the documents stay where they are, however long it takes to look at a thousand others.
    for _ in range(1000):
        client.get("id:a:item::1")
    assert resident_bytes() - before < 40 << 20
    reader.close()
    # A visit that ended early leaves no work behind: many of them do not add up.
    for _ in range(30):
        client.visit_arrow(type="item", batch_rows=100, buffer_bytes=1 << 20).reader().read_next_batch()
    gc.collect()
    assert resident_bytes() - before < 60 << 20


def test_close_ends_a_read_that_waits(client):
    feed_items(client, 20000, size=1500)
    visit = client.visit_arrow(type="item", batch_rows=100)
    reader = visit.reader()
    ended = []

    def read():
        try:
            for _ in reader:
                pass
        except OSError as error:
            ended.append(str(error))

    reader.read_next_batch()
    visit.close()
    thread = threading.Thread(target=read)
    thread.start()
    thread.join(30)
    assert not thread.is_alive() and "CANCELLED" in ended[0]


def test_a_stream_survives_its_client_and_its_visit(client, cluster):
    feed_items(client, 3000)
    other = fjord.Client(cluster.address)
    reader = other.visit_arrow(type="item", batch_rows=100).reader()
    del other
    gc.collect()
    assert sum(batch.num_rows for batch in reader) == 3000


def test_visits_leak_nothing(client):
    feed_items(client, 2000, size=500)

    def read(times):
        for _ in range(times):
            assert client.visit_arrow(type="item").table().num_rows == 2000
        gc.collect()
        pa.default_memory_pool().release_unused()
        return resident_bytes()

    settled = read(60)
    assert read(60) - settled < 8 << 20  # 60 visits hold 60 MB.


# --- What reads it


def test_pandas_reads_a_visit(client):
    pd = pytest.importorskip("pandas")
    feed_items(client, 100)
    frame = client.visit_arrow(type="item").df()
    assert isinstance(frame, pd.DataFrame) and int(frame["price"].sum()) == 4950


def test_a_frame_of_pandas_keeps_digits_beside_missing_values(client):
    pytest.importorskip("pandas")
    client.put("id:a:thing::1", {"large": 2**53 + 1, "parts": [{"no": 2**31 - 1}, {"names": ["a"]}]})
    client.put("id:a:thing::2", {"text": "without"})
    frame = client.visit_arrow(type="thing", fields=["large", "parts", "yes"]).df()
    assert [str(frame[name].dtype) for name in ("large", "yes")] == ["Int64", "boolean"]
    assert client.import_arrow(frame, type="thing").stored == 2
    assert client.get("id:a:thing::1") == {"large": 2**53 + 1, "parts": [{"no": 2**31 - 1}, {"names": ["a"]}]}
    assert client.get("id:a:thing::2") == {}


def test_polars_reads_a_visit(client):
    pl = pytest.importorskip("polars")
    feed_items(client, 100)
    client.put("id:a:thing::1", FULL)
    assert client.visit_arrow(type="item").pl()["price"].sum() == 4950
    assert pl.DataFrame(client.visit_arrow(type="thing"))["parts"].to_list()[0][0] == {"no": 1, "names": ["a", "b"]}


def test_duckdb_reads_a_visit(client):
    duckdb = pytest.importorskip("duckdb")
    feed_items(client, 100)
    items = client.visit_arrow(type="item").reader()  # noqa: F841: DuckDB finds it by its name
    found = duckdb.sql("select name, sum(price) from items group by name order by name").fetchall()
    assert len(found) == 7 and sum(total for _, total in found) == 4950


def test_torch_reads_a_visit_in_slices(client, cluster):
    pytest.importorskip("torch")
    from torch.utils.data import DataLoader

    from fjord.torch import VisitDataset

    feed_items(client, 300)
    dataset = VisitDataset(cluster.address, type="item", fields=["price"])
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="spawn")
    assert sorted(int(row["price"]) for row in loader) == list(range(300))


# --- Imports


def test_a_table_is_stored_and_comes_back(client):
    client.put("id:a:thing::1", FULL)
    client.put("id:a:thing::2", {"tags": ["only"]})
    table = client.visit_arrow(type="thing").table()
    client.remove_where("true", type="thing")
    summary = client.import_arrow(table)
    assert (summary.stored, summary.failed) == (2, 0)
    assert client.get("id:a:thing::1") == FULL
    assert client.get("id:a:thing::2") == {"tags": ["only"]}


def test_values_of_other_arrow_types_fit_where_their_values_do(client):
    table = pa.table({"key": pa.array([7, 8]),
                      "text": pa.array(["a", "b"]).dictionary_encode(),
                      "data": pa.array([b"12", b"34"], pa.binary(2)),
                      "small": pa.array([1, None], pa.uint64()),
                      "whole": pa.array([3.0, -4.0]),
                      "large": pa.array([2**31, 0], pa.uint32()),
                      "real": pa.array([1, 2], pa.int8()),
                      "tags": pa.array([["x"], []], pa.large_list(pa.large_string())),
                      "moods": pa.array([[{"key": "sad", "value": 2}], None]),
                      "charts": pa.array([[("de", [1])], []], pa.map_(pa.string(), pa.list_(pa.int64(), 1))),
                      "main": pa.array([{"no": 5}, None])})
    summary = client.import_arrow(table, type="thing", id_column="key", namespace="b")
    assert summary.stored == 2 and summary.failed == 0
    assert client.get("id:b:thing::7") == {"text": "a", "data": b"12", "small": 1, "whole": 3, "large": 2**31, "real": 1.0,
                                           "tags": ["x"], "moods": {"sad": 2}, "charts": {"de": [1]}, "main": {"no": 5}}
    assert client.get("id:b:thing::8") == {"text": "b", "data": b"34", "whole": -4, "large": 0, "real": 2.0, "tags": [],
                                           "charts": {}}


def test_slices_of_arrays_and_views_are_read_at_their_offsets(client):
    texts = [f"{i}" * (i % 20) for i in range(100)]
    table = pa.table({"_id": [f"{i}" for i in range(100)], "name": pa.array(texts, pa.string_view()), "price": range(100),
                      "text": texts})
    client.import_arrow(table.slice(30, 50), type="item")
    for i in (30, 31, 55, 79):
        assert client.get(f"id:item:item::{i}")["name"] == texts[i]
        assert client.get(f"id:item:item::{i}")["text"] == texts[i]
    assert client.get("id:item:item::29", None) is None and client.get("id:item:item::80", None) is None
    nested = pa.table({"_id": [f"{i}" for i in range(20)], "tags": [[f"{i}", "t"] for i in range(20)],
                       "main": [{"no": i} for i in range(20)]}).slice(7, 3)
    client.import_arrow(nested, type="thing")
    assert client.get("id:thing:thing::8") == {"tags": ["8", "t"], "main": {"no": 8}}


def test_bad_rows_are_reported_and_the_others_stored(client):
    table = pa.table({"_id": ["1", None, "3", "4", "id:x:other::5", "6"], "price": [1, 2, 2**40, 4, 5, 6],
                      "name": ["a", "b", "c", "d", "e", "f"]})
    failures = []
    summary = client.import_arrow(table, type="item", on_failure=lambda row, error: failures.append((row, error)))
    assert (summary.stored, summary.failed) == (3, 3)
    assert sorted(row for row, _ in failures) == [1, 2, 4]
    errors = dict(failures)
    assert isinstance(errors[1], fjord.InvalidId) and "no id" in str(errors[1])
    assert isinstance(errors[2], fjord.InvalidField) and "column price: 1099511627776 is out of the range" in str(errors[2])
    assert isinstance(errors[4], fjord.InvalidId) and "another type" in str(errors[4])


def test_what_arrow_permits_and_documents_do_not_is_an_error_of_its_row(client):
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    failures = []
    summary = client.import_arrow(pa.table({"_id": ["1"], "name": broken}), type="item",
                                  on_failure=lambda row, error: failures.append(error))
    assert (summary.stored, summary.failed) == (0, 1)
    assert isinstance(failures[0], fjord.InvalidField) and "name: a string that is not UTF-8" in str(failures[0])
    twice = pa.table({"_id": ["1", "2"], "moods": pa.array([[("a", 1), ("a", 2)], [("a", 1)]], pa.map_(pa.string(), pa.int32()))})
    assert client.import_arrow(twice, type="thing", on_failure=lambda row, error: failures.append((row, error))).stored == 1
    assert failures[1][0] == 0 and isinstance(failures[1][1], fjord.InvalidField)


def test_columns_that_are_no_fields_are_warned_of_and_those_that_do_not_fit_refused(client):
    warnings = []
    table = pa.table({"_id": ["1"], "price": [1], "extra": [2]})
    assert client.import_arrow(table, type="item", on_warning=warnings.append).stored == 1
    assert warnings == ['the column "extra" is not a field of item']
    with pytest.raises(fjord.InvalidField, match="column price: Arrow's type string has no values of type int"):
        client.import_arrow(pa.table({"_id": ["1"], "price": ["1"]}), type="item")
    with pytest.raises(fjord.InvalidArgument, match='no column "_id"'):
        client.import_arrow(pa.table({"price": [1]}), type="item")
    with pytest.raises(fjord.UnknownType):
        client.import_arrow(pa.table({"_id": ["1"]}), type="nothing")
    with pytest.raises(TypeError, match="__arrow_c_stream__"):
        client.import_arrow([1, 2], type="item")


def test_a_stream_of_batches_is_stored_as_it_comes_and_its_error_is_reported(client):
    columns = pa.schema({"_id": pa.string(), "price": pa.int32()})
    taken = []

    def batches(fails):
        for number in range(20):
            taken.append(number)
            yield pa.record_batch([[f"{number}-{i}" for i in range(100)], [number] * 100], schema=columns)
            if fails and number == 4:
                raise ValueError("the source is broken")

    whole = pa.RecordBatchReader.from_batches(columns, batches(False))
    assert client.import_arrow(whole, type="item").stored == 2000
    with pytest.raises(fjord.Error, match="the source is broken"):
        client.import_arrow(pa.RecordBatchReader.from_batches(columns, batches(True)), type="item")
    assert max(taken[20:]) == 4


def test_pandas_polars_and_duckdb_are_stored(client):
    pd, pl, duckdb = (pytest.importorskip(name) for name in ("pandas", "polars", "duckdb"))
    columns = {"_id": ["1", "2"], "name": ["tea", "a name of more than twelve bytes"], "price": [3, 4]}
    for source in (pd.DataFrame(columns), pl.DataFrame(columns), duckdb.sql("select '1' as _id, 'tea' as name, 3 as price "
                   "union all select '2', 'a name of more than twelve bytes', 4").arrow()):
        client.remove_where("true", type="item")
        assert client.import_arrow(source, type="item").stored == 2
        assert client.get("id:item:item::2") == {"name": columns["name"][1], "price": 4}


def test_random_tables_survive_the_way_there_and_back(client):
    generator = random.Random(24)
    texts = ["", "a", "ä" * 5, "long " * 50, None]
    rows = [{"_id": f"id:r:thing::{i}", "text": generator.choice(texts), "whole": generator.choice([None, -2**31, 2**31 - 1, 0]),
             "large": generator.choice([None, -2**63, 2**63 - 1]), "yes": generator.choice([None, True, False]),
             "tags": generator.choice([None, [], ["x"], ["y", ""]]), "small": generator.choice([None, -128, 127])}
            for i in range(500)]
    columns = pa.schema({"_id": pa.string(), "text": pa.string(), "whole": pa.int32(), "large": pa.int64(), "yes": pa.bool_(),
                         "tags": pa.list_(pa.string()), "small": pa.int8()})
    assert client.import_arrow(pa.Table.from_pylist(rows, schema=columns)).stored == 500
    names = [name for name in columns.names if name != "_id"]
    found = client.visit_arrow(type="thing", fields=names).table().sort_by("_id").to_pylist()
    assert found == sorted(rows, key=lambda row: row["_id"])


# --- Schemas


def test_a_schema_becomes_columns_and_a_schema_again(client):
    columns = pa.schema(schema.to_arrow("thing", schemas=THING))
    assert columns.equals(client.visit_arrow(type="thing").schema())
    fit = schema.from_arrow(columns, "thing")
    assert fit.problems == []
    assert pa.schema(schema.to_arrow("thing", schemas=fit.sd)).field("moods").metadata == {b"fjord": b"weightedset"}


def test_what_does_not_fit_is_reported():
    columns = pa.schema({"when": pa.timestamp("us"), "price": pa.decimal128(10, 2), "a-b": pa.int32(), "size": pa.uint64(),
                         "name": pa.string()})
    fit = schema.from_arrow(columns, "thing")
    assert [line.split(":")[0] for line in fit.problems] == ["when", "price", "a-b", "size"]
    assert "Arrow's timestamp[us]:" in fit.problems[0] and "Arrow's decimal(10,2):" in fit.problems[1]
    assert "field size type long" in fit.sd and "field name type string" in fit.sd and "when" not in fit.sd
    with pytest.raises(fjord.InvalidArgument, match="no column"):
        schema.from_arrow(pa.schema({"when": pa.date32()}), "thing")
    with pytest.raises(fjord.InvalidArgument, match="not a name"):
        schema.from_arrow(columns, "a b")


def test_every_type_of_arrow_is_named_as_arrow_names_it():
    names = [pa.null(), pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
             pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("ns", "UTC"), pa.duration("us"), pa.float16(),
             pa.month_day_nano_interval()]
    columns = pa.schema([("id", pa.int32()), *((f"c{n}", kind) for n, kind in enumerate(names))])
    fit = schema.from_arrow(columns, "thing")
    assert [line.split("Arrow's ")[1].split(": cast")[0].split("[")[0] for line in fit.problems] == \
        [str(kind).split("[")[0] for kind in names]
    assert "timestamp[ns, tz=UTC]" in fit.problems[9] and "duration[us]" in fit.problems[10]
    ends = pa.schema([("id", pa.int32()), ("r", pa.run_end_encoded(pa.int32(), pa.string())),
                      ("u", pa.dense_union([pa.field("a", pa.int32())]))])
    assert ["run_end_encoded" in line or "dense_union" in line for line in schema.from_arrow(ends, "thing").problems] == [True] * 2


def test_columns_of_one_name_are_reported_and_the_first_is_taken(client):
    inner = pa.struct([pa.field("x", pa.int32()), pa.field("x", pa.string())])
    columns = pa.schema([pa.field("a", pa.int32()), pa.field("a", pa.string()), pa.field("s", inner)])
    fit = schema.from_arrow(columns, "dupe")
    assert [line.split(":")[0] for line in fit.problems] == ["a", "s.x"] and "same name" in fit.problems[0]
    client.admin.deploy_schemas(fit.sd)
    assert client.types()["dupe"]["a"] == "int"


def test_a_schema_is_made_of_tables_and_data_frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = pa.table({"name": ["a"], "price": pa.array([1], pa.int32())})
    for columns in (table, table.schema, table.to_batches()[0], table.to_reader(), pandas.DataFrame(table.to_pydict()),
                    polars.DataFrame(table)):
        fit = schema.from_arrow(columns, "thing")
        assert "field name type string" in fit.sd and "field price type " in fit.sd
    with pytest.raises(fjord.WrongType, match="columns: expected a schema, a table or a data frame"):
        schema.from_arrow([1], "thing")


def test_a_closed_visit_gives_no_batches(client):
    feed_items(client, 1000)
    for read in (lambda visit: visit.table(), lambda visit: list(visit), lambda visit: visit.pl()):
        visit = client.visit_arrow(type="item", batch_rows=10)
        visit.close()
        with pytest.raises(fjord.Cancelled, match="closed"):
            read(visit)
    visit = client.visit_arrow(type="item", batch_rows=10)
    with pytest.raises(fjord.Cancelled):
        for _ in visit:
            visit.close()
    assert client.visit_arrow(type="item", fields=[]).table().column_names == ["_id"]
    assert client.visit_arrow(type="item").to_arrow_table().num_rows == 1000
    with client.visit_arrow(type="item", batch_rows=10).to_arrow_batches() as batches:
        assert sum(batch.num_rows for batch in batches) == 1000


@pytest.mark.parametrize("kind", ["table", "reader", "pandas", "polars"])
def test_feed_takes_tables_and_data_frames(client, kind):
    table = pa.table({"_id": [f"id:{kind}:item::{n}" for n in range(200)], "price": [2**40 if n < 150 else n for n in range(200)]})
    rows = {"table": lambda: table, "reader": table.to_reader, "pandas": table.to_pandas,
            "polars": lambda: pytest.importorskip("polars").DataFrame(table)}[kind]()
    results = []
    stats = client.feed(rows, on_result=results.append)
    assert (stats.ok, stats.failed, stats.failed_by_code, len(stats.errors)) == (50, 150, {"INVALID_FIELD": 150}, 100)
    assert [one.row for one in results] == list(range(150)) and "out of the range" in str(results[0].error)
    assert client.get(f"id:{kind}:item::199")["price"] == 199

    async def main():
        async with fjord.AsyncClient(client._core.addresses) as twin:
            return await twin.feed(table)
    assert asyncio.run(main()).ok == 50


def test_ids_that_are_wrong_are_refused(client):
    failures = []
    table = pa.table({"_id": ["good", "b\x01d", "g" * 70000, None], "price": [1, 2, 3, 4]})
    done = client.import_arrow(table, type="item", namespace="ids", on_failure=lambda row, error: failures.append((row, error)))
    assert (done.stored, done.failed, done.failed_by_code) == (1, 3, {"INVALID_ID": 3})
    assert sorted(row for row, _ in failures) == [1, 2, 3] and all(isinstance(error, fjord.InvalidId) for _, error in failures)
    assert client.get("id:ids:item::good")["price"] == 1
    with pytest.raises(fjord.InvalidArgument, match="no id begins with"):
        client.import_arrow(table, type="item", namespace="a:b")


# --- Parquet


def test_parquet_files_hold_every_value(client, tmp_path):
    from fjord.parquet import export_parquet, open_parquet

    client.put("id:a:thing::1", FULL)
    client.put("id:a:other::2", {"name": [1], "price": 4})
    client.put("id:a:item::3", {"name": "tea"})
    file = tmp_path / "all.parquet"
    assert export_parquet(client, file).documents == 3
    with pytest.raises(fjord.AlreadyExists):
        export_parquet(client, file)
    for name in ("thing", "other", "item"):
        client.remove_where("true", type=name)
    assert client.import_arrow(open_parquet(file)).stored == 3
    assert client.get("id:a:thing::1") == FULL
    assert client.get("id:a:other::2") == {"name": [1], "price": 4}
    assert client.get("id:a:item::3") == {"name": "tea"}
    assert [path.name for path in tmp_path.iterdir()] == ["all.parquet"]


def test_an_interrupted_export_goes_on_and_holds_each_document_once(client, tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    from fjord import parquet

    monkeypatch.setattr(parquet, "PART_BYTES", 20000)
    feed_items(client, 3000)
    file = tmp_path / "items.parquet"
    seen = []

    def interrupt(done, documents):
        seen.append(documents)
        if documents >= 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parquet.export_parquet(client, file, type="item", batch_rows=200, on_progress=interrupt)
    assert not file.exists()
    rest = []
    summary = parquet.export_parquet(client, file, type="item", batch_rows=200, mode="resume",
                                     on_progress=lambda done, documents: rest.append(documents))
    assert rest[0] > 1000 and summary.documents == 3000
    ids = pq.read_table(file)["_id"].to_pylist()
    assert sorted(ids) == sorted(f"id:a:item::{i}" for i in range(3000))


def test_times_and_decimals_of_other_tables_become_texts_and_numbers(client, tmp_path):
    import decimal

    import pyarrow.parquet as pq

    from fjord.parquet import open_parquet

    file = tmp_path / "table.parquet"
    pq.write_table(pa.table({"_id": ["1"], "text": [datetime.datetime(2026, 11, 22)], "real": [decimal.Decimal("1.50")]}), file)
    assert client.import_arrow(open_parquet(file), type="thing").stored == 1
    assert client.get("id:thing:thing::1") == {"text": "2026-11-22T00:00:00", "real": 1.5}


def test_times_of_any_year_become_texts():
    from fjord.parquet import _plain_column

    def texts(values, kind):
        return _plain_column(pa.array(values, kind)).to_pylist()

    # Within the years of Python its own words are the judge.
    moments = [datetime.datetime(1, 1, 1), datetime.datetime(1600, 2, 29, 1, 2, 3), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
               datetime.datetime(2026, 11, 22, 12, 0, 0, 5), datetime.datetime(9999, 12, 31, 23, 59, 59)]
    assert texts(moments, pa.timestamp("us")) == [one.isoformat() for one in moments]
    days = [datetime.date(1, 1, 1) + datetime.timedelta(step) for step in range(0, 3652058, 997)]
    assert texts(days, pa.date32()) == [one.isoformat() for one in days]
    assert texts(days[:50], pa.date64()) == [one.isoformat() for one in days[:50]]
    clocks = [datetime.time(0), datetime.time(23, 59, 59, 7), None]
    assert texts(clocks, pa.time64("us")) == ["00:00:00", "23:59:59.000007", None]
    assert texts([0, 253402300800000, 2**63 - 1], pa.timestamp("ms"))[:2] == ["1970-01-01T00:00:00", "+10000-01-01T00:00:00"]
    assert texts([-62135596801, -62167219201], pa.timestamp("s")) == ["0000-12-31T23:59:59", "-0001-12-31T23:59:59"]
    assert texts([2**63 - 1], pa.timestamp("us")) == ["+294247-01-10T04:00:54.775807"]
    assert texts([1, 1000], pa.timestamp("ns")) == ["1970-01-01T00:00:00.000000001", "1970-01-01T00:00:00.000001"]
    assert texts([0], pa.timestamp("s", "Europe/Prague")) == ["1970-01-01T00:00:00+00:00"]
    assert texts([2**31 - 1], pa.date32()) == ["+5881580-07-11"]
    assert texts([[datetime.date(2026, 1, 2)], None, []], pa.list_(pa.date32())) == [["2026-01-02"], None, []]
    inner = pa.struct([("when", pa.timestamp("s")), ("n", pa.int64())])
    assert texts([{"when": 253402300800, "n": 2**53 + 1}, None], inner) == [{"when": "+10000-01-01T00:00:00", "n": 2**53 + 1}, None]
    assert texts([[("a", datetime.date(2026, 1, 2))]], pa.map_(pa.string(), pa.date32())) == [[("a", "2026-01-02")]]
    assert _plain_column(pa.array([1, 2])).type == pa.int64()


def test_one_value_that_does_not_fit_costs_its_row(client, tmp_path):
    import decimal

    import pyarrow.parquet as pq

    from fjord.parquet import open_parquet

    file = tmp_path / "table.parquet"
    pq.write_table(pa.table({"_id": ["1", "2", "3"], "text": pa.array([0, 253402300800000, None], pa.timestamp("ms")),
                             "large": [decimal.Decimal(2**53 + 1), decimal.Decimal(2**63), None]}), file)
    refused = []
    summary = client.import_arrow(open_parquet(file), type="thing", on_failure=lambda row, error: refused.append((row, str(error))))
    assert (summary.stored, summary.failed) == (2, 1)
    assert [row for row, _ in refused] == [1] and "9223372036854775808 does not fit" in refused[0][1]
    assert client.get("id:thing:thing::1") == {"text": "1970-01-01T00:00:00", "large": 2**53 + 1}
    client.import_arrow(pa.table({"_id": ["4", "5"], "text": pa.array([2**64 - 1, 7], pa.uint64())}), type="thing")
    assert client.get("id:thing:thing::4") == {"text": "18446744073709551615"}


def test_the_column_of_ids_is_no_unknown_field(client):
    warnings = []
    table = pa.table({"key": ["a"], "price": [1]})
    assert client.import_arrow(table, type="item", id_column="key", on_warning=warnings.append).stored == 1
    assert warnings == []
    with pytest.raises(fjord.InvalidField, match="column key: Arrow's type double makes no ids"):
        client.import_arrow(pa.table({"key": [1.5], "price": [1]}), type="item", id_column="key")
    for kind, name in ((pa.duration("us"), r"duration\[us\]"), (pa.float16(), "halffloat"), (pa.binary(16), r"fixed_size_binary\[16\]")):
        with pytest.raises(fjord.InvalidField, match=f"column price: Arrow's type {name} has no values of type int"):
            client.import_arrow(pa.table({"_id": ["a"], "price": pa.array([None], kind)}), type="item")


def test_an_import_that_only_creates(client):
    client.put("id:item:item::a", {"price": 1})
    table = pa.table({"key": ["a", "b"], "price": [2, 2]})
    summary = client.import_arrow(table, type="item", id_column="key", create_only=True)
    assert (summary.stored, summary.existing, summary.replaced, summary.failed) == (1, 1, 0, 0)
    assert client.get("id:item:item::a")["price"] == 1
    summary = client.import_arrow(table, type="item", id_column="key")
    assert (summary.stored, summary.existing, summary.replaced, summary.failed) == (2, 0, 2, 0)


def test_the_twin_of_the_command_line(client, cluster, tmp_path, capsys):
    from fjord.__main__ import main

    feed_items(client, 10)
    file = str(tmp_path / "items.parquet")
    options = ["--cluster", cluster.address]
    assert main(["export", file, "--type", "item", *options]) == 0
    assert main(["export", file, "--type", "item", *options]) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert main(["export", file, "--type", "item", "--overwrite", "--fields", "price", *options]) == 0
    assert main(["export", file, "--type", "nothing", "--overwrite", *options]) == 3
    assert main(["export", file, "--selection", "item.price >", "--overwrite", *options]) == 2
    client.remove_where("true", type="item")
    assert main(["import", file, *options]) == 0
    assert '"ok": 10' in capsys.readouterr().out
    assert client.get("id:a:item::3") == {"price": 3}
    assert main(["import", file, "--type", "item", "--id-row", "--namespace", "rows", *options]) == 0
    assert client.get("id:rows:item::10", None) is not None
    assert main(["import", str(tmp_path / "missing.parquet"), *options]) == 3
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 is no table")
    assert main(["import", str(tmp_path / "broken.parquet"), *options]) == 1
    for part in ("0/2", "3/2", "2", "a/b", "-1/2"):
        with pytest.raises(SystemExit) as refused:
            main(["export", file, f"--slice={part}", "--overwrite", *options])
        assert refused.value.code == 2


def test_slices_of_the_twin_hold_each_document_once(client, cluster, tmp_path):
    import pyarrow.parquet as pq

    from fjord.__main__ import main

    feed_items(client, 100)
    ids = []
    for part in ("1/3", "2/3", "3/3"):
        file = tmp_path / f"{part[0]}.parquet"
        assert main(["export", str(file), "--type", "item", "--slice", part, "--cluster", cluster.address]) == 0
        ids += pq.read_table(file)["_id"].to_pylist()
    assert sorted(ids) == sorted(f"id:a:item::{i}" for i in range(100))


def test_an_interrupted_import_goes_on_behind_its_position(client, tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    from fjord import parquet

    monkeypatch.setattr(parquet, "BATCH_ROWS", 50)
    monkeypatch.setattr(parquet, "PORTION_BATCHES", 2)
    file, position = tmp_path / "rows.parquet", tmp_path / "position"
    rows = [{"_id": f"id:a:item::{row}", "price": 2**40 if row == 310 else row} for row in range(420)]
    pq.write_table(pa.Table.from_pylist(rows), file)
    failures = []

    def store(on_progress=lambda done: None):
        return parquet.import_parquet(
            client, [str(file)], type=None, id_field=None, id_row=False, namespace=None, progress_file=str(position),
            max_inflight="auto", timeout=None, priority=None, on_warning=pytest.fail, on_progress=on_progress,
            on_failure=lambda name, row, error: failures.append((name, row)))

    def interrupt(done):
        if done > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(BaseException):
        store(interrupt)
    start = f"fjord-import-2 {file} 200 "
    kept = position.read_text()
    assert kept == f"{start}{zlib.crc32(start.encode()):08x}\n"
    for damaged in (kept.replace(" 200 ", " 300 "), kept[:-1], kept[:-5], f"fjord-import-1 {file} 200"):
        position.write_text(damaged)
        with pytest.raises(fjord.InvalidArgument, match=str(position)):
            store()
    position.write_text(kept)
    stored = store()
    assert (stored.stored, stored.failed) == (219, 1)
    assert failures == [(str(file), 310)]
    assert not position.exists()
    position.write_text(f"fjord-import-1 {file}x 200\n")
    with pytest.raises(fjord.InvalidArgument):
        store()
    assert position.exists()
    position.write_text(f"fjord-import-1 {file} 420\n")
    assert store().stored == 0
    assert not position.exists()
