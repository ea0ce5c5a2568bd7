"""Reads and writes Parquet files for `fjord import` and `fjord export`. Needs the package pyarrow.

    fjord-parquet check                                  exit code 0 if pyarrow is there
    fjord-parquet write LINES FILE.parquet WHICH TYPES   WHICH: a column for "all" fields of the types, or those "seen"
    fjord-parquet read FILE.parquet LINES

LINES is a file of {"put": ID, "fields": {...}}; TYPES is JSON, {document type: {field: type}}.
"""

import base64
import decimal
import json
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq

SIMPLE = {"string": pa.string(), "int": pa.int32(), "long": pa.int64(), "byte": pa.int8(), "float": pa.float32(),
          "double": pa.float64(), "bool": pa.bool_(), "raw": pa.binary()}
# A floating-point number without a fraction is an integer in JSON.
MAKERS = {"raw": base64.b64decode, "float": float, "double": float}
BATCH_ROWS = 20000


def documents(path):
    """Yields the id, the type and the fields of each document."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            if "put" not in document:
                continue
            name = document["put"]
            parts = name.split(":")
            type_in_id = parts[2] if parts[0] == "id" and len(parts) > 2 else None
            yield name, document.get("type") or type_in_id, document["fields"]


def column_of(kinds):
    """Returns the Parquet type of a field with these types, or None for JSON text, and what makes a value of it."""
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind in SIMPLE:
        return SIMPLE[kind], MAKERS.get(kind)
    element = kind[6:-1] if kind and kind.startswith("array<") else None
    if element in SIMPLE:
        make = MAKERS.get(element, lambda value: value)
        return pa.list_(SIMPLE[element]), lambda values: [None if value is None else make(value) for value in values]
    return None, lambda value: json.dumps(value, ensure_ascii=False)


def columns_of(source, which, types):
    """Returns the schema of the file, and what makes the values of each column that needs it.

    A field is JSON text, marked so in its column, if Parquet has no simple type for it or two document types declare it
    differently.
    """
    occurring, seen = set(), set()
    for _, document_type, fields in documents(source):
        occurring.add(document_type)
        seen.update(fields)
    kinds = {}
    for one in sorted(occurring & types.keys()):
        for field, kind in types[one].items():
            if which == "all" or field in seen:
                kinds.setdefault(field, set()).add(kind)
    columns, makers = [pa.field("_id", pa.string())], {}
    for field, its in kinds.items():
        column_type, maker = column_of(its)
        mark = None if column_type else {"fjord": "json"}
        columns.append(pa.field(field, column_type or pa.string(), metadata=mark))
        makers[field] = maker
    return pa.schema(columns, metadata={"fjord": "export"}), makers


def write(source, target, which, declared):
    """Reads the lines twice, because it knows the types only after the first pass."""
    schema, makers = columns_of(source, which, json.loads(declared))

    def cell(row, name):
        value = row.get(name)
        maker = makers.get(name)
        return maker(value) if maker and value is not None else value

    def write_batch(writer, batch):
        columns = [pa.array([cell(row, column.name) for row in batch], column.type) for column in schema]
        writer.write_table(pa.table(columns, schema=schema))

    with pq.ParquetWriter(target + ".new", schema, compression="zstd") as writer:
        batch = []
        for name, _, fields in documents(source):
            batch.append({"_id": name, **fields})
            if len(batch) == BATCH_ROWS:
                write_batch(writer, batch)
                batch = []
        write_batch(writer, batch)
    os.replace(target + ".new", target)


def plain(value):
    """Returns a value as JSON has it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"there is no field for a value of {type(value).__name__}")


def read(source, target):
    file = pq.ParquetFile(source)
    is_export = (file.schema_arrow.metadata or {}).get(b"fjord") == b"export"
    texts = {column.name for column in file.schema_arrow if (column.metadata or {}).get(b"fjord") == b"json"}
    with open(target, "w", encoding="utf-8") as out:
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            for row in batch.to_pylist():
                row = {name: json.loads(value) if name in texts else value
                       for name, value in row.items() if value is not None}
                if is_export:
                    row = {"put": row.pop("_id"), "fields": row}
                try:
                    out.write(json.dumps(row, ensure_ascii=False, allow_nan=False, default=plain) + "\n")
                except (TypeError, ValueError) as problem:
                    sys.exit(f"{source}: {problem}: {row}")


if __name__ == "__main__":
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "write":
        write(*arguments)
    elif command == "read":
        read(*arguments)
