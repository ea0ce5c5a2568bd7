"""Exports to Parquet files and imports from them. Needs pyarrow."""

import json
import os
import shutil
import zlib
from itertools import chain, islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Union

import pyarrow as pa
import pyarrow.parquet as pq

from .documents import ImportSummary
from .errors import AlreadyExists, Error, InvalidArgument

PART_BYTES = 1 << 30
"""A part of a file that is complete this soon need not be read again after a crash."""

BATCH_ROWS = 8192

PORTION_BATCHES = 16
"""Number of batches after which an import that can be continued waits for its writes and notes its position."""


class ParquetSummary(NamedTuple):
    """The result of export_parquet()."""

    documents: int
    bytes: int
    buckets: int
    """Buckets that this run has read."""
    buckets_done_before: int
    """Of a resumed export: buckets that an earlier run had read."""
    buckets_repeated: int
    """Number of restarts of a bucket after a failure."""


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _read_record(file: Path) -> Dict[str, Any]:
    """Returns the record of an export. One of a former version has no checksum."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        names = list(record)
        checksum = record.pop("checksum", None)
    except (ValueError, AttributeError, TypeError):
        names, checksum, record = [], None, {}
    is_former = names == ["parts", "cursor", "documents"]
    is_whole = names == ["parts", "cursor", "documents", "checksum"] and checksum == _checksum(json.dumps(record))
    if not is_former and not is_whole:
        raise InvalidArgument(f"{file}: the record of the export is damaged; restore this file, or begin again with --overwrite")
    return record  # type: ignore[no-any-return]


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

    def resume(self) -> None:
        """Goes on behind the parts that are complete, if there are any."""
        if self._record.exists():
            record = _read_record(self._record)
            self.parts, self.cursor, self.documents = record["parts"], record["cursor"], record["documents"]

    def _part(self, number: int) -> Path:
        return self._folder / f"{number}.parquet"

    def write(self, batch: pa.RecordBatch, cursor: str) -> None:
        if self._writer is None:
            if self.parts == 0:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder.mkdir()
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
        record = {"parts": self.parts, "cursor": self.cursor, "documents": self.documents}
        new.write_text(json.dumps({**record, "checksum": _checksum(json.dumps(record))}), encoding="utf-8")
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
    if mode == "resume":
        parts.resume()
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
        counts = visit.statistics
    if parts.documents == 0:
        parts.write(pa.RecordBatch.from_pylist([], schema=schema), "")
    parts.finish(schema)
    return ParquetSummary(parts.documents, path.stat().st_size, counts["buckets_done"], counts["buckets_done_before"],
                          counts["buckets_repeated"])


def _has_times(kind: pa.DataType) -> bool:
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind)
    return is_time or any(_has_times(kind.field(i).type) for i in range(kind.num_fields))


def _with_other(kind: pa.DataType, other: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Returns a type in which `other` replaces the types of times."""
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_with_other(kind.value_type, other))
    if types.is_map(kind):
        return pa.map_(_with_other(kind.key_type, other), _with_other(kind.item_type, other))
    if types.is_struct(kind):
        return pa.struct([(kind.field(i).name, _with_other(kind.field(i).type, other)) for i in range(kind.num_fields)])
    return other(kind) if _has_times(kind) else kind


def _number_type(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if kind.bit_width == 32 else pa.int64()


_PER_SECOND = {"s": 1, "ms": 1000, "us": 1000_000, "ns": 1000_000_000}


def _day_text(days: int) -> str:
    """Returns the day `days` after 1970-01-01, also if no calendar of Python has its year."""
    days += 719468  # From 0000-03-01; 146097 days are 400 years. See Hinnant, chrono-compatible date algorithms.
    era, day = divmod(days, 146097)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    of_month = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += 400 * era + (month <= 2)
    return f"{year:04}-{month:02}-{of_month:02}" if 0 <= year <= 9999 else f"{year:+05}-{month:02}-{of_month:02}"


def _clock_text(number: int, unit: str) -> str:
    """Returns the time of a day, with a fraction if it has one, as isoformat() does."""
    seconds, rest = divmod(number, _PER_SECOND[unit])
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    nanoseconds = rest * (_PER_SECOND["ns"] // _PER_SECOND[unit])
    if nanoseconds == 0:
        return text
    return f"{text}.{nanoseconds:09}" if nanoseconds % 1000 else f"{text}.{nanoseconds // 1000:06}"


def _time_text(kind: pa.DataType, number: int) -> str:
    """Returns a date, time or timestamp, given as Arrow stores it, in ISO 8601. Times with a zone are those of UTC."""
    if pa.types.is_date32(kind):
        return _day_text(number)
    if pa.types.is_date64(kind):
        return _day_text(number // 86400_000)
    if pa.types.is_time(kind):
        return _clock_text(number, kind.unit)
    days, rest = divmod(number, 86400 * _PER_SECOND[kind.unit])
    return f"{_day_text(days)}T{_clock_text(rest, kind.unit)}{'' if kind.tz is None else '+00:00'}"


def _with_texts(kind: pa.DataType, value: Any) -> Any:
    """Returns a value in which texts replace times, which are numbers in `value`."""
    if value is None or not _has_times(kind):
        return value
    if pa.types.is_map(kind):
        return [(_with_texts(kind.key_type, key), _with_texts(kind.item_type, item)) for key, item in value]
    if pa.types.is_struct(kind):
        return {kind.field(i).name: _with_texts(kind.field(i).type, value[kind.field(i).name]) for i in range(kind.num_fields)}
    if kind.num_fields > 0:
        return [_with_texts(kind.value_type, one) for one in value]
    return _time_text(kind, value)


def _plain_column(column: pa.Array) -> pa.Array:
    """Returns times as texts in ISO 8601, because documents have no type for them."""
    kind = column.type
    if not _has_times(kind):
        return column
    numbers = column.cast(_with_other(kind, _number_type)).to_pylist()
    return pa.array([_with_texts(kind, one) for one in numbers], _with_other(kind, lambda _: pa.string()))


def _with_row_ids(batch: pa.RecordBatch, name: str, rows_before: int) -> pa.RecordBatch:
    numbers = range(rows_before + 1, rows_before + 1 + batch.num_rows)
    column = pa.array([str(number) for number in numbers], pa.string())
    return pa.RecordBatch.from_arrays([*batch.columns, column], schema=batch.schema.append(pa.field(name, pa.string())))


def _batches(file: pq.ParquetFile, first_row: int, row_ids: Optional[str]) -> Iterator[Any]:
    """Gives the rows from `first_row` on, counted from 0."""
    end = 0
    for batch in file.iter_batches(batch_size=BATCH_ROWS):
        end += batch.num_rows
        if end <= first_row:
            continue
        batch = batch.slice(max(0, batch.num_rows - (end - first_row)))
        columns = [_plain_column(column) for column in batch.columns]
        fields = [pa.field(field.name, column.type, metadata=field.metadata) for field, column in zip(batch.schema, columns)]
        plain = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
        yield plain if row_ids is None else _with_row_ids(plain, row_ids, end - batch.num_rows)


def _reader(batches: Iterator[Any], file: pq.ParquetFile, row_ids: Optional[str]) -> pa.RecordBatchReader:
    """Returns a reader of batches, which have the schema of the first one."""
    first = next(batches, None)
    if first is None:
        schema = file.schema_arrow
        return pa.RecordBatchReader.from_batches(schema if row_ids is None else schema.append(pa.field(row_ids, pa.string())), [])
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def open_parquet(file: Union[str, "PathLike[str]"], row_ids: Optional[str] = None) -> pa.RecordBatchReader:
    """Returns the rows of a Parquet file as Client.import_arrow() takes them. `row_ids` names a column with the numbers of the
    rows, from 1, that is added.

    >>> from fjord.parquet import open_parquet
    >>> client.import_arrow(open_parquet("items.parquet")).stored
    1
    """
    source = pq.ParquetFile(fspath(file))
    return _reader(_batches(source, 0, row_ids), source, row_ids)


class _Position:
    """How many rows of a file are stored or refused, in a file beside it, which has the form of those of `fjord import`."""

    def __init__(self, progress_file: str, input_file: str) -> None:
        self._file = Path(progress_file)
        self._input = input_file

    def load(self) -> int:
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return 0
        advice = "restore this file, or remove it to begin again"
        former, start = (f"fjord-import-{version} {self._input} " for version in (1, 2))
        is_former = text.startswith(former)
        if not is_former and not text.startswith(start):
            raise InvalidArgument(f"{self._file}: not a progress file of {self._input}; {advice}")
        number = text[len(start):].split(" ")[0].rstrip("\n")
        if not number.isdecimal() or text != (f"{former}{number}\n" if is_former else self._text(int(number))):
            raise InvalidArgument(f"{self._file} is damaged: its checksum is wrong, or its end is missing; {advice}")
        return int(number)

    def _text(self, rows: int) -> str:
        start = f"fjord-import-2 {self._input} {rows} "
        return f"{start}{_checksum(start)}\n"

    def save(self, rows: int) -> None:
        new = self._file.with_name(self._file.name + ".new")
        new.write_text(self._text(rows), encoding="utf-8")
        os.replace(new, self._file)

    def remove(self) -> None:
        self._file.unlink(missing_ok=True)


class _FileImport:
    """The import of one file, whole or in portions whose ends a position file remembers."""

    def __init__(self, client: Any, file: str, row_ids: Optional[str], on_failure: Callable[[str, int, Error], object],
                 on_progress: Callable[[float], object], **options: Any) -> None:
        self._client = client
        self._file = file
        self._row_ids = row_ids
        self._source = pq.ParquetFile(file)
        self._on_failure = on_failure
        self._on_progress = on_progress
        self._options = options
        self._rows = 0

    def run(self) -> ImportSummary:
        return self._store(_batches(self._source, 0, self._row_ids))

    def run_with(self, position: _Position) -> ImportSummary:
        """Goes on behind the position. A portion with a write in doubt is repeated by the next run, and what is behind it, too."""
        self._rows = position.load()
        batches = _batches(self._source, self._rows, self._row_ids)
        total: Optional[ImportSummary] = None
        while total is None or self._rows < self._source.metadata.num_rows:
            summary = self._store(islice(batches, PORTION_BATCHES))
            total = summary if total is None else _sum(total, summary)
            if total.in_doubt == 0:
                position.save(self._rows)
        if total.in_doubt == 0:
            position.remove()
        return total

    def _store(self, batches: Iterator[Any]) -> ImportSummary:
        first_row = self._rows
        return self._client.import_arrow(  # type: ignore[no-any-return]
            _reader(self._counted(batches), self._source, self._row_ids),
            on_failure=lambda row, error: self._on_failure(self._file, first_row + row, error), **self._options)

    def _counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            self._rows += batch.num_rows
            self._on_progress(self._rows / self._source.metadata.num_rows)


def import_parquet(client: Any, files: List[str], *, type: Optional[str], id_field: Optional[str], id_row: bool,
                   namespace: Optional[str], create_only: bool = False, progress_file: Optional[str], max_inflight: Union[int, str],
                   timeout: Optional[float], priority: Optional[str], on_failure: Callable[[str, int, Error], object],
                   on_warning: Callable[[str], object], on_progress: Callable[[float], object]) -> ImportSummary:
    """Stores the rows of several files. Returns the sums of their summaries. `progress_file` is for one file: the import goes on
    behind the position in it, and keeps it up to date."""
    row_ids = "(number)" if id_row else None
    warned: Set[str] = set()

    def warn(text: str) -> None:  # Once for all files and portions.
        if "(number)" not in text and text not in warned:
            warned.add(text)
            on_warning(text)

    totals: Optional[ImportSummary] = None
    for file in files:
        one = _FileImport(client, file, row_ids, on_failure, on_progress, type=type, id_column=row_ids or id_field,
                          namespace=namespace, create_only=create_only, max_inflight=max_inflight, timeout=timeout, priority=priority,
                          on_warning=warn)
        summary = one.run() if progress_file is None else one.run_with(_Position(progress_file, file))
        totals = summary if totals is None else _sum(totals, summary)
    assert totals is not None
    return totals


def _sum(one: ImportSummary, other: ImportSummary) -> ImportSummary:
    codes = {code: one.failed_by_code.get(code, 0) + other.failed_by_code.get(code, 0)
             for code in {**one.failed_by_code, **other.failed_by_code}}
    return ImportSummary(one.stored + other.stored, one.failed + other.failed, codes, one.in_doubt + other.in_doubt,
                         one.retried + other.retried, one.bytes + other.bytes, one.seconds + other.seconds,
                         max(one.p50, other.p50), max(one.p99, other.p99), one.replaced + other.replaced, one.existing + other.existing)
