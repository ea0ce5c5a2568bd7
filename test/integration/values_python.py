"""The ways of the Python package in and out of the store, for values_test.py, with the interpreter that has the package.

    values_python.py ADDRESS in|out|rows|results|names FOLDER

prints JSON. in: way -> number of a value -> error, null if Python has no such value. out, with ids on standard input: way -> id ->
canonical fields. rows, with aggregations on standard input: for each, way -> rows. results, with a job on standard input: key ->
canonical fields. names: class -> public names.
"""

import asyncio
import json
import math
import pathlib
import sys
from decimal import Decimal
from fractions import Fraction

import fjord
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
from fjord.aggregate import Relation
from fjord.jobs import Job
from fjord.parquet import export_parquet, open_parquet

from nasty_values import FIELDS, KEPT, VALUES, Number, canonical_fields, loads, to_python, without_floats

client = fjord.Client(sys.argv[1])
FOLDER = pathlib.Path(sys.argv[3])
LIMITS = {"byte": pa.int8(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
          "string": pa.string(), "bool": pa.bool_(), "raw": pa.binary()}


def is_exact(text, found):
    """Returns whether a program of Python can have the numbers of JSON as they are."""
    if isinstance(text, Number):
        return not (isinstance(found, float) and (math.isinf(found) or Fraction(found) != Fraction(Decimal(text))))
    if isinstance(text, list):
        return all(is_exact(one[1] if isinstance(one, tuple) else one, other)
                   for one, other in zip(text, found.values() if isinstance(found, dict) else found))
    return True


def given():
    """Returns (value, what Python has of it) for all values that Python can have."""
    pairs = []
    for value in VALUES:
        text = loads(value.text)
        try:
            found = to_python(FIELDS[value.field], text)
        except ValueError:  # A key 1.5 of a map of longs.
            continue
        if value.verdict == KEPT or is_exact(text, found):
            pairs.append((value, found))
    return pairs


PAIRS = given()


def each(way, call):
    errors = {value.number: None for value in VALUES if value not in [one for one, _ in PAIRS]}  # Not tried.
    for value, found in PAIRS:
        try:
            call(value.id(way), value.field, found)
        except fjord.Error as error:
            errors[value.number] = str(error)
    return errors


def feed(way):
    errors = each(way, lambda *_: None)
    numbers = {value.id(way): value.number for value, _ in PAIRS}

    def note(result):
        if result.error is not None:
            errors[numbers[result.id]] = str(result.error)

    client.feed(((value.id(way), {value.field: found}) for value, found in PAIRS), on_result=note)
    return errors


def put_async(way):
    errors = each(way, lambda *_: None)

    async def put_all():
        async with fjord.AsyncClient(sys.argv[1]) as other:
            for value, found in PAIRS:
                try:
                    await other.put(value.id(way), {value.field: found})
                except fjord.Error as error:
                    errors[value.number] = str(error)

    asyncio.run(put_all())
    return errors


def arrow_type(kind, values):
    """Returns the narrowest type that all these values have in Arrow."""
    if isinstance(kind, list):
        return pa.list_(arrow_type(kind[0], [one for value in values for one in value]))
    if isinstance(kind, tuple):
        return pa.map_(arrow_type(kind[0], [one for value in values for one in value]),
                       arrow_type(kind[1], [one for value in values for one in value.values()]))
    if isinstance(kind, dict):
        return pa.struct([(name, arrow_type(member, [value[name] for value in values if name in value])) for name, member in kind.items()])
    numbers = [one for one in values if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if not numbers:
        return LIMITS[kind]
    if all(isinstance(one, int) for one in numbers):
        return pa.uint64() if max(numbers) >= 2**63 else pa.int64()
    return pa.float64()


def tables(way):
    """Returns (numbers of the rows, table): one for each field and type of Arrow of its values."""
    groups = {}
    for value, found in PAIRS:
        try:
            groups.setdefault((value.field, str(arrow_type(FIELDS[value.field], [found]))), []).append((value, found))
        except (pa.ArrowInvalid, OverflowError):
            pass
    for (field, _), members in groups.items():
        kind = FIELDS[field]
        column = [list(found.items()) if isinstance(kind, tuple) else found for _, found in members]
        try:
            array = pa.array(column, arrow_type(kind, [found for _, found in members]))
        except (pa.ArrowInvalid, OverflowError):  # An integer that no type of Arrow holds.
            continue
        yield [value.number for value, _ in members], pa.table({"_id": [value.id(way) for value, _ in members], field: array})


def import_arrow(way, store=None):
    errors = {value.number: None for value in VALUES}
    for numbers, table in tables(way):
        for number in numbers:
            errors.pop(number)

        def note(row, error, numbers=numbers):
            errors[numbers[row]] = str(error)

        client.import_arrow(store(table) if store else table, type="thing", on_failure=note)
    return errors


def through_parquet(table):
    pq.write_table(table, FOLDER / "in.parquet")
    return open_parquet(FOLDER / "in.parquet")


def feed_arrow(way):
    errors = {value.number: None for value in VALUES}
    for numbers, table in tables(way):
        for number in numbers:
            errors.pop(number)

        def note(result, numbers=numbers):
            errors[numbers[result.row]] = str(result.error)

        client.feed(table, on_result=note)
    return errors


def update_where(way):
    client.feed((value.id(way), {}) for value in VALUES)

    def change(name, field, found):
        summary = client.update_where(f"id == '{name}'", {field: {"assign": found}}, type="thing")
        if summary.failed:
            raise fjord.Error(str(summary))

    return each(way, change)


def import_file(way):
    """Stores rows of JSON by their line, as `fjord import` does."""
    (FOLDER / "python.jsonl").write_text("".join(f'{{"_id":"{value.id(way)}","{value.field}":{value.text}}}\n' for value in VALUES))
    errors = {}
    client.import_file(FOLDER / "python.jsonl", type="thing", id_field="_id",
                       on_failure=lambda file, line, error: errors.__setitem__(line, error))
    return {VALUES[line - 1].number: str(error) for line, error in errors.items()}


WAYS_IN = {
    "python-put": lambda way: each(way, lambda name, field, found: client.put(name, {field: found})),
    "python-update": lambda way: each(way, lambda name, field, found: client.update(name, {field: {"assign": found}}, create=True)),
    "python-update-where": update_where,
    "python-feed": feed,
    "python-async-put": put_async,
    "python-import-arrow": import_arrow,
    "python-feed-arrow": feed_arrow,
    "python-import-file": import_file,
    "import-parquet": lambda way: import_arrow(way, through_parquet),
}


def of_rows(rows):
    return {row["_id"]: canonical_fields({name: one for name, one in row.items() if name != "_id"}) for row in rows}


def of_documents(documents):
    return {document.id: canonical_fields(dict(document)) for document in documents}


def of_table(table):
    return of_rows(table.to_pylist())


def parquet(_):
    export_parquet(client, FOLDER / "out.parquet", type="thing", mode="replace")
    return of_table(pq.read_table(FOLDER / "out.parquet"))


def of_frame(frame):
    rows = []
    for row in frame.to_dict("records"):
        rows.append({name: one for name, one in row.items() if not is_missing(one)})
    return of_rows(rows)


def is_missing(value):
    """Returns whether a cell of pandas holds nothing. NaN of a float is the same there, as docs/python/arrow.md says."""
    return value is None or value is pandas.NA or isinstance(value, float) and math.isnan(value)


def changes(_):
    found = {}
    with client.subscribe(type="thing") as subscription:
        for change in subscription:
            if change.kind == "caught_up":
                break
            found[change.id] = change.document
    return of_documents(one for one in found.values() if one is not None)


def export(_):
    client.export(FOLDER / "python.out.jsonl", type="thing", mode="replace")
    with open(FOLDER / "python.out.jsonl", encoding="utf-8", newline="") as file:
        rows = [dict(loads(line)) for line in file.read().split("\n") if line]
    return {row["put"]: canonical_fields(row["fields"]) for row in rows}


WAYS_OUT = {
    "python-get": lambda ids: of_documents(client.get(one) for one in ids),
    "python-get-many": lambda ids: of_documents(one for one in client.get_many(ids)),
    "python-visit": lambda _: of_documents(client.visit(type="thing")),
    "python-arrow-table": lambda _: of_table(client.visit_arrow(type="thing").table()),
    "python-arrow-df": lambda _: of_frame(client.visit_arrow(type="thing").df()),
    "python-arrow-pl": lambda _: of_rows(client.visit_arrow(type="thing").pl().to_dicts()),
    "python-subscribe": changes,
    "python-export": export,
    "export-parquet": parquet,
}


def rows(words):
    """Returns the cells of an aggregation, by way. Numbers are texts, so that none is changed on its way to the test."""
    relation = client.aggregate("thing").filter(words["selection"]).group_by(*words.get("group_by", [])).agg(*words["aggregates"])
    table = relation.arrow()
    frame = relation.df()
    return {"python-aggregate": [tagged(row) for row in relation.fetchall()],
            "python-aggregate-arrow": [tagged(row.values()) for row in table.to_pylist()],
            "python-aggregate-df": [tagged(None if is_missing(one) else one for one in row) for row in frame.itertuples(index=False)],
            "python-aggregate-pl": [tagged(row) for row in relation.pl().rows()]}


def tagged(cells):
    return [tag(cell) for cell in cells]


def tag(cell):
    if cell is None or isinstance(cell, str):
        return cell
    if type(cell).__name__ in ("bool", "bool_"):  # Of Python or NumPy.
        return bool(cell)
    return {"number": repr(float(cell)) if isinstance(cell, float) else str(cell)}


def main():
    if sys.argv[2] == "in":
        return {way: call(way) for way, call in WAYS_IN.items()}
    if sys.argv[2] == "out":
        ids = json.load(sys.stdin)
        return {way: call(ids) for way, call in WAYS_OUT.items()}
    if sys.argv[2] == "rows":
        return [rows(words) for words in json.load(sys.stdin)]
    if sys.argv[2] == "results":  # Of a job: key -> value, with the numbers that Python has of them.
        return {row.key: canonical_fields(without_floats(row.value)) for row in client.jobs.get(json.load(sys.stdin)).results()}
    return {name: sorted(one for one in dir(kind) if not one.startswith("_"))
            for name, kind in {"Client": fjord.Client, "AsyncClient": fjord.AsyncClient, "Relation": Relation, "Job": Job}.items()}


print(json.dumps(main()))
