"""Exports to Parquet files and imports from them. Needs pyarrow."""

import json
import os
import shutil
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple, Union

import pyarrow as pa
import pyarrow.parquet as pq

from .documents import ImportSummary
from .errors import AlreadyExists, Error, InvalidArgument

PART_BYTES = 1 << 30
"""A part of a file that is complete this soon need not be read again after a crash."""


class ParquetSummary(NamedTuple):
    """The result of export_parquet()."""

    documents: int
    bytes: int


class _Parts:
    """The parts of an export that has not ended, in the folder FILE.parts beside the file, and a record of what they hold."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._folder = file.with_name(file.name + ".parts")
        self._record = self._folder / "record.json"
        self.parts = 0
        self.cursor = ""
        self.documents = 0
        self._writer: Optional[pq.ParquetWriter] = None
        self._part_bytes = 0
        self._schema: Optional[pa.Schema] = None

    def begin(self, resume: bool) -> None:
        if resume and self._record.exists():
            record = json.loads(self._record.read_text(encoding="utf-8"))
            self.parts, self.cursor, self.documents = record["parts"], record["cursor"], record["documents"]
        else:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(exist_ok=True)

    def _part(self, number: int) -> Path:
        return self._folder / f"{number}.parquet"

    def write(self, batch: pa.RecordBatch, cursor: str) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._part(self.parts), batch.schema, compression="zstd")
            self._part_bytes = 0
        self._writer.write_batch(batch)
        self.documents += batch.num_rows
        self.cursor = cursor
        self._part_bytes += batch.nbytes
        if self._part_bytes >= PART_BYTES:
            self.close_part()

    def close_part(self) -> None:
        """Completes the part, so that a resumed export goes on behind it."""
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        self.parts += 1
        new = self._record.with_suffix(".new")
        new.write_text(json.dumps({"parts": self.parts, "cursor": self.cursor, "documents": self.documents}), encoding="utf-8")
        os.replace(new, self._record)

    def finish(self, schema: pa.Schema) -> None:
        """Makes one file of the parts."""
        self.close_part()
        if self.parts == 1:
            os.replace(self._part(0), self._file)
        else:
            whole = self._folder / "whole.parquet"
            with pq.ParquetWriter(whole, schema, compression="zstd") as writer:
                for number in range(self.parts):
                    for batch in pq.ParquetFile(self._part(number)).iter_batches():
                        writer.write_batch(batch)
            os.replace(whole, self._file)
        shutil.rmtree(self._folder)


def export_parquet(client: Any, file: Union[str, "PathLike[str]"], selection: Optional[str] = None, *, mode: str = "new",
                   on_progress: Optional[Callable[[Optional[float], int], object]] = None, **options: Any) -> ParquetSummary:
    """Writes the documents that a selection matches to a Parquet file. `options` are those of Client.visit_arrow().

    Without a type, the file has a column for each field of all types; a field that types declare differently is JSON text. `mode`
    is "new", "replace", or "resume", which goes on with an interrupted export.

    >>> from fjord.parquet import export_parquet
    >>> export_parquet(client, "items.parquet", type="item", mode="replace").documents
    1
    """
    path = Path(fspath(file))
    if mode not in ("new", "replace", "resume"):
        raise InvalidArgument(f"mode is {mode!r}: expected new, replace or resume")
    if mode == "new" and path.exists():
        raise AlreadyExists(f"{path} exists; --overwrite replaces it")
    parts = _Parts(path)
    parts.begin(resume=mode == "resume")
    with client.visit_arrow(selection, resume=parts.cursor or None, **options) as visit:
        schema = visit.schema()
        try:
            for batch in visit:
                parts.write(batch, visit.cursor)
                if on_progress is not None:
                    on_progress(visit.progress, parts.documents)
        except BaseException:
            parts.close_part()
            raise
    if parts.documents == 0:
        parts.write(pa.RecordBatch.from_pylist([], schema=schema), "")
    parts.finish(schema)
    return ParquetSummary(parts.documents, path.stat().st_size)


def _plain_column(column: pa.Array) -> pa.Array:
    """Returns times as texts in ISO 8601, and decimals as numbers, because documents have no types for them."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.array([None if value is None else value.isoformat() for value in column.to_pylist()], pa.string())
    if pa.types.is_decimal(kind):
        return column.cast(pa.int64() if kind.scale == 0 else pa.float64())
    return column


def _batches(file: pq.ParquetFile, names: List[str], rows_before: int, row_ids: Optional[str]) -> Iterator[Any]:
    for batch in file.iter_batches(batch_size=8192):
        columns = [_plain_column(column) for column in batch.columns]
        fields = [pa.field(name, column.type, metadata=field.metadata)
                  for name, column, field in zip(names, columns, batch.schema)]
        if row_ids is not None:
            numbers = range(rows_before + 1, rows_before + 1 + batch.num_rows)
            columns.append(pa.array([str(number) for number in numbers]))
            fields.append(pa.field(row_ids, pa.string()))
            rows_before += batch.num_rows
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def open_parquet(file: Union[str, "PathLike[str]"], row_ids: Optional[str] = None) -> pa.RecordBatchReader:
    """Returns the rows of a Parquet file as Client.import_arrow() takes them. `row_ids` names a column with the numbers of the
    rows, from 1, that is added.

    >>> from fjord.parquet import open_parquet
    >>> client.import_arrow(open_parquet("items.parquet")).stored
    1
    """
    source = pq.ParquetFile(fspath(file))
    batches = _batches(source, source.schema_arrow.names, 0, row_ids)
    first = next(batches, None)
    if first is None:
        return pa.RecordBatchReader.from_batches(source.schema_arrow, [])

    def all_batches() -> Iterator[Any]:
        yield first
        yield from batches

    return pa.RecordBatchReader.from_batches(first.schema, all_batches())


def import_parquet(client: Any, files: List[str], *, type: Optional[str], id_field: Optional[str], id_row: bool,
                   namespace: Optional[str], timeout: Optional[float], priority: Optional[str],
                   on_failure: Callable[[str, int, Error], object],
                   on_warning: Callable[[str], object]) -> Tuple[ImportSummary, float]:
    """Stores the rows of several files. Returns the sums of their summaries, and the seconds."""
    totals: Optional[ImportSummary] = None
    for file in files:
        row_ids = "(number)" if id_row else None
        summary = client.import_arrow(
            open_parquet(file, row_ids), type=type, id_column=row_ids or id_field, namespace=namespace, timeout=timeout,
            priority=priority, on_failure=lambda row, error, file=file: on_failure(file, row, error),
            on_warning=lambda text: None if "(number)" in text else on_warning(text))
        totals = summary if totals is None else _sum(totals, summary)
    assert totals is not None
    return totals, totals.seconds


def _sum(one: ImportSummary, other: ImportSummary) -> ImportSummary:
    codes = {code: one.failed_by_code.get(code, 0) + other.failed_by_code.get(code, 0)
             for code in {**one.failed_by_code, **other.failed_by_code}}
    return ImportSummary(one.stored + other.stored, one.failed + other.failed, codes, one.in_doubt + other.in_doubt,
                         one.retried + other.retried, one.bytes + other.bytes, one.seconds + other.seconds,
                         max(one.p50, other.p50), max(one.p99, other.p99))
