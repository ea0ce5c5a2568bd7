"""Documents as columns of Arrow, for pandas, Polars, DuckDB and whatever else reads the Arrow C stream interface.

pyarrow is needed only by reader(), table() and df(), Polars only by pl().
"""

from typing import TYPE_CHECKING, Any, Dict, Iterator, Optional

from . import _core

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(f"{what} needs the package pyarrow: pip install pyarrow") from error
    return pyarrow


def _polars(what: str) -> Any:
    try:
        import polars
    except ImportError as error:
        raise ImportError(f"{what} needs the package polars: pip install polars") from error
    return polars


def _pandas_type(type: "pyarrow.DataType") -> Any:
    """Returns the type of pandas for a column that would lose digits in the usual one once a value is missing; else None."""
    import pandas
    import pyarrow

    if _has_struct(type):
        return pandas.ArrowDtype(type)
    return {pyarrow.int8(): pandas.Int8Dtype(), pyarrow.int32(): pandas.Int32Dtype(), pyarrow.int64(): pandas.Int64Dtype(),
            pyarrow.bool_(): pandas.BooleanDtype()}.get(type)


def _has_struct(type: "pyarrow.DataType") -> bool:
    from pyarrow import types

    return types.is_struct(type) or any(_has_struct(type.field(i).type) for i in range(type.num_fields))


class ArrowStream:
    """Something that gives batches of columns, once."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns a stream of the Arrow C stream interface, as other packages ask for it."""
        raise NotImplementedError

    def reader(self) -> "pyarrow.RecordBatchReader":
        """Returns the batches as they arrive.

        >>> with client.visit_arrow(type="item").reader() as reader:
        ...     rows = sum(batch.num_rows for batch in reader)
        """
        return _pyarrow("reader()").RecordBatchReader.from_stream(self)

    def table(self) -> "pyarrow.Table":
        """Returns all rows as a table.

        >>> client.visit_arrow(type="item", fields=["price"]).table().column_names
        ['_id', 'price']
        """
        reader = self.reader()
        try:
            return reader.read_all()
        except Exception:
            self._check_end()
            raise

    arrow = table
    to_arrow_table = table
    to_arrow_batches = reader

    def _check_end(self) -> None:
        """Raises why the stream has failed, if it is known: a reader of Arrow has only a text of it."""

    def df(self) -> "pandas.DataFrame":
        """Returns all rows as a data frame of pandas. Integers and booleans have types of pandas that know missing values, such
        as Int64, so that none is rounded, and structs are ArrowDtype. In a column of floats NaN stands for what is missing, too;
        table() tells them apart.

        >>> frame = client.visit_arrow(type="item").df()
        >>> float(frame["price"].mean())
        3.0
        >>> str(frame["price"].dtype)
        'Int32'
        """
        return self.table().to_pandas(types_mapper=_pandas_type)

    def pl(self) -> "polars.DataFrame":
        """Returns all rows as a data frame of Polars.

        >>> frame = client.visit_arrow(type="item").pl()
        """
        package = _polars("pl()")
        try:
            frame: "polars.DataFrame" = package.DataFrame(self)
        except Exception:
            self._check_end()
            raise
        return frame


class ArrowVisit(ArrowStream):
    """The documents that a selection matches, as columns, from Client.visit_arrow().

    The columns are "_id", "_version" if it was asked for, and one for each field. A field that is not set is null. Documents
    become columns in C++, without an object of Python for each. The storage nodes stop reading while the program does not take
    batches; close(), the end of a `with` block and the end of the reader end their work.

    >>> import pyarrow
    >>> with client.visit_arrow("item.price > 2", type="item") as visit:
    ...     pyarrow.table(visit)["name"].to_pylist()
    ['tea']
    """

    def __init__(self, core: _core.ArrowVisit) -> None:
        self._core = core

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns the stream. A visit can be read once."""
        return self._core.stream()

    def __arrow_c_schema__(self) -> Any:
        """Returns the schema of the batches."""
        return self._core.schema()

    def schema(self) -> "pyarrow.Schema":
        """Returns the columns and their types, without reading.

        >>> client.visit_arrow(type="item").schema().field("price").type
        DataType(int32)
        """
        schema = _pyarrow("schema()").schema(self)
        return schema

    def __iter__(self) -> Iterator["pyarrow.RecordBatch"]:
        """Gives the batches. An error of the cluster is raised as an exception of this package."""
        with self.reader() as reader:
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
                except Exception:
                    self._check_end()
                    raise
                yield batch

    def _check_end(self) -> None:
        self._core.check_end()

    def __enter__(self) -> "ArrowVisit":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the visit and the work of the storage nodes. What reads it raises Cancelled from then on.

        >>> client.visit_arrow(type="item").close()
        """
        self._core.stop()

    @property
    def cursor(self) -> str:
        """A text that says which documents the batches so far hold. A visit with `resume=` this text gives the others.

        >>> visit = client.visit_arrow(type="item")
        >>> first = next(iter(visit))
        >>> client.visit_arrow(type="item", resume=visit.cursor).table().num_rows
        0
        """
        return self._core.cursor

    @property
    def progress(self) -> Optional[float]:
        """The part of the buckets that were read, from 0 to 1; None: not known yet.

        >>> visit = client.visit_arrow(type="item")
        >>> table = visit.table()
        >>> visit.progress
        1.0
        """
        return self._core.fraction_done

    @property
    def statistics(self) -> Dict[str, int]:
        """What was read so far: buckets_total, buckets_done, buckets_done_before, buckets_repeated, documents_read,
        documents_matched, bytes.

        >>> visit = client.visit_arrow(type="item")
        >>> table = visit.table()
        >>> visit.statistics["documents_read"] >= table.num_rows
        True
        """
        return self._core.statistics

    def __repr__(self) -> str:
        done = self.progress
        return f"<fjord.ArrowVisit, {'not begun' if done is None else f'{done:.0%} of the buckets read'}>"
