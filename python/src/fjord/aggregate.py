"""Aggregations: grouped where the documents are stored, returned as columns or rows."""

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _core
from ._options import fill, mapping
from .arrow import ArrowStream
from .errors import WrongType
from .progress import Progress

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from .client import Client
    from .jobs import JobInfo


class Aggregate(str):
    """The text of an aggregate, such as "avg(price)"."""


def count(expression: str = "") -> Aggregate:
    """Counts documents, or those that have a value of the expression.

    >>> from fjord.aggregate import count
    >>> client.aggregate("item").agg(n=count()).fetchall()
    [(1,)]
    """
    return Aggregate(f"count({expression})")


def sum(expression: str) -> Aggregate:  # noqa: A001: the name of the aggregate
    """The sum of an expression.

    >>> from fjord.aggregate import sum
    >>> client.aggregate("item").agg(x=sum("price")).fetchall()
    [(3,)]
    """
    return Aggregate(f"sum({expression})")


def avg(expression: str) -> Aggregate:
    """The mean of an expression.

    >>> from fjord.aggregate import avg
    >>> client.aggregate("item").agg(x=avg("price")).fetchall()
    [(3.0,)]
    """
    return Aggregate(f"avg({expression})")


def min(expression: str) -> Aggregate:  # noqa: A001
    """The smallest value of an expression.

    >>> from fjord.aggregate import min
    >>> client.aggregate("item").agg(x=min("price")).fetchall()
    [(3,)]
    """
    return Aggregate(f"min({expression})")


def max(expression: str) -> Aggregate:  # noqa: A001
    """The largest value of an expression.

    >>> from fjord.aggregate import max
    >>> client.aggregate("item").agg(x=max("price")).fetchall()
    [(3,)]
    """
    return Aggregate(f"max({expression})")


def distinct(expression: str) -> Aggregate:
    """The number of different values, beyond 1024 an estimate.

    >>> from fjord.aggregate import distinct
    >>> client.aggregate("item").agg(x=distinct("name")).fetchall()
    [(1,)]
    """
    return Aggregate(f"distinct({expression})")


def quantile(part: float, expression: str) -> Aggregate:
    """The smallest value so that a part, such as 0.5, of the values is not greater.

    >>> from fjord.aggregate import quantile
    >>> client.aggregate("item").agg(median=quantile(0.5, "price")).fetchall()
    [(3.0,)]
    """
    return Aggregate(f"quantile({part},{expression})")


def histogram(expression: str, width: float) -> Aggregate:
    """Counts of values in bins of this width; JSON text in columns of Arrow.

    >>> from fjord.aggregate import histogram
    >>> client.aggregate("item").agg(prices=histogram("price", 10)).fetchall()
    [([{'from': 0, 'to': 10, 'count': 1}],)]
    """
    return Aggregate(f"histogram({expression},{width})")


def top(number: int, expression: str) -> Aggregate:
    """The most frequent values with their counts; JSON text in columns of Arrow.

    >>> from fjord.aggregate import top
    >>> client.aggregate("item").agg(names=top(3, "name")).fetchall()
    [([{'value': 'tea', 'count': 1}],)]
    """
    return Aggregate(f"top({number},{expression})")


class StoredRows(NamedTuple):
    """The result of Relation.into()."""

    put: int
    removed: int
    """Documents of an earlier run of this name whose rows are not there any more."""
    job_id: str


class AggregateRows(ArrowStream):
    """The rows of an aggregation that has run. They can be read any number of times."""

    def __init__(self, core: _core.AggregateResult) -> None:
        self._core = core

    @property
    def columns(self) -> List[str]:
        """The names of the columns: groups first, then aggregates.

        >>> client.aggregate("item").group_by("name").agg(n=count()).run().columns
        ['name', 'n']
        """
        return self._core.columns

    @property
    def documents_read(self) -> int:
        """The number of documents that the aggregation has read.

        >>> client.aggregate("item").agg(n=count()).run().documents_read
        1
        """
        return self._core.documents_read

    @property
    def job_id(self) -> str:
        """The id of the job that ran it; "" for the rows of Job.result().

        >>> rows = client.aggregate("item").agg(n=count()).run()
        >>> client.jobs.get(rows.job_id).status().state
        'done'
        """
        return self._core.job_id

    def fetchall(self) -> List[Tuple[Any, ...]]:
        """Returns the rows as tuples.

        >>> client.aggregate("item").agg(n=count()).run().fetchall()
        [(1,)]
        """
        return self._core.rows()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns a stream of one batch."""
        return self._core.stream()


class Relation:
    """A lazy aggregation, from Client.aggregate(). Each method returns a new relation; nothing runs before the rows are asked
    for.

    >>> from fjord.aggregate import avg, count
    >>> prices = client.aggregate("item").filter("price > 1").group_by("name").agg(n=count(), mean=avg("price"))
    >>> prices.order_by("-mean").limit(10).fetchall()
    [('tea', 1, 3.0)]

    Expressions are those of docs/reference/aggregate.md.
    """

    def __init__(self, client: "Client", type: str, *, settings: Optional[Mapping[str, Any]] = None,
                 timeout: Optional[float] = None, progress: Optional[bool] = None) -> None:
        if not isinstance(type, str):
            raise WrongType("type", "str", type)
        self._client = client
        self._values: Dict[str, Any] = {"type": type}
        self._settings = {name: str(value) for name, value in mapping("settings", settings or {}).items()}
        self._timeout = timeout
        self._progress = progress
        self._rows: Optional[AggregateRows] = None

    def _with(self, **values: Any) -> "Relation":
        made = Relation(self._client, self._values["type"], settings=self._settings, timeout=self._timeout,
                        progress=self._progress)
        made._values = {**self._values, **values}
        return made

    def _and(self, name: str, condition: str) -> "Relation":
        if not isinstance(condition, str):
            raise WrongType(name, "str", condition)
        before = self._values.get(name)
        return self._with(**{name: f"({before}) and ({condition})" if before else condition})

    def filter(self, condition: str) -> "Relation":
        """Reads only documents that the condition holds for. Several conditions must all hold.

        >>> client.aggregate("item").filter("price > 5").agg(n=count()).fetchall()
        [(0,)]
        """
        return self._and("selection", condition)

    def group_by(self, *expressions: str) -> "Relation":
        """Groups by the values of expressions: "city", "price / 100 as hundred".

        >>> client.aggregate("item").group_by("name").agg(n=count()).fetchall()
        [('tea', 1)]
        """
        return self._with(group_by=[*self._values.get("group_by", []), *_texts("group_by", expressions)])

    def agg(self, *aggregates: str, **named: str) -> "Relation":
        """Computes aggregates of each group; the name of an argument is that of its column.

        >>> client.aggregate("item").agg("count()", dear=max("price")).fetchall()
        [(1, 3)]
        """
        texts = [*_texts("agg", aggregates), *(f"{_texts(name, [text])[0]} as {name}" for name, text in named.items())]
        return self._with(aggregates=[*self._values.get("aggregates", []), *texts])

    def having(self, condition: str) -> "Relation":
        """Returns only rows that the condition on their columns holds for.

        >>> client.aggregate("item").group_by("name").agg(n=count()).having("n > 1").fetchall()
        []
        """
        return self._and("having", condition)

    def order_by(self, *columns: str) -> "Relation":
        """Orders the rows: "n", and "-n" or "n desc" for the largest first.

        >>> client.aggregate("item").group_by("name").agg(n=count()).order_by("-n").fetchall()
        [('tea', 1)]
        """
        return self._with(order_by=[*self._values.get("order_by", []), *_texts("order_by", columns)])

    def limit(self, rows: int) -> "Relation":
        """Limits the number of rows.

        >>> client.aggregate("item").group_by("name").agg(n=count()).limit(1).fetchall()
        [('tea', 1)]
        """
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
            raise WrongType("limit", "int above 0", rows)
        return self._with(limit=rows)

    def incremental(self) -> "Relation":
        """Reads only what changed since the last run of the same aggregation.

        >>> client.aggregate("item").agg(n=count()).incremental().fetchall()
        [(1,)]
        """
        return self._with(incremental=True)

    def run(self, *, on_progress: "Optional[Callable[[JobInfo], object]]" = None) -> AggregateRows:
        """Runs the aggregation. KeyboardInterrupt cancels its job. The other methods run it when they are called first.

        >>> client.aggregate("item").agg(n=count()).run().documents_read
        1
        """
        self._rows = AggregateRows(self._run(self._values, on_progress))
        return self._rows

    def _run(self, values: Mapping[str, Any], on_progress: "Optional[Callable[[JobInfo], object]]" = None
             ) -> _core.AggregateResult:
        from .jobs import job_info

        request = fill(_core.AggregateRequest(), timeout=self._timeout, settings=self._settings, **values)
        with Progress("aggregate", self._progress) as progress:
            def report(members: Dict[str, Any]) -> None:
                job = job_info(members)
                progress.update(job.fraction_done, job.left)
                if on_progress is not None:
                    on_progress(job)

            return _core.aggregate(self._client._core, request, report)

    def _result(self) -> AggregateRows:
        return self.run() if self._rows is None else self._rows

    def fetchall(self) -> List[Tuple[Any, ...]]:
        """Returns the rows as tuples.

        >>> client.aggregate("item").group_by("name").agg(n=count()).fetchall()
        [('tea', 1)]
        """
        return self._result().fetchall()

    def fetchone(self) -> Optional[Tuple[Any, ...]]:
        """Returns the first row; None if there is none.

        >>> client.aggregate("item").agg(n=count()).fetchone()
        (1,)
        """
        rows = self.fetchall()
        return rows[0] if rows else None

    @property
    def columns(self) -> List[str]:
        """The names of the columns. Runs the aggregation.

        >>> client.aggregate("item").agg(n=count()).columns
        ['n']
        """
        return self._result().columns

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns the rows as a stream of the Arrow C stream interface."""
        return self._result().__arrow_c_stream__(requested_schema)

    def arrow(self) -> "pyarrow.Table":
        """Returns the rows as a table of pyarrow.

        >>> client.aggregate("item").agg(n=count()).arrow().to_pylist()
        [{'n': 1}]
        """
        return self._result().table()

    def to_arrow_table(self) -> "pyarrow.Table":
        """The same as arrow().

        >>> client.aggregate("item").agg(n=count()).to_arrow_table().num_rows
        1
        """
        return self.arrow()

    def to_arrow_batches(self) -> "pyarrow.RecordBatchReader":
        """Returns the rows as a reader of batches of pyarrow.

        >>> [batch.num_rows for batch in client.aggregate("item").agg(n=count()).to_arrow_batches()]
        [1]
        """
        return self._result().reader()

    def df(self) -> "pandas.DataFrame":
        """Returns the rows as a data frame of pandas.

        >>> int(client.aggregate("item").agg(n=count()).df()["n"][0])
        1
        """
        return self._result().df()

    def pl(self) -> "polars.DataFrame":
        """Returns the rows as a data frame of Polars.

        >>> client.aggregate("item").agg(n=count()).pl()["n"].to_list()
        [1]
        """
        return self._result().pl()

    def into(self, type: str, *, namespace: Optional[str] = None, name: Optional[str] = None) -> StoredRows:
        """Runs the aggregation and stores each row as a document of `type`, whose fields are the columns. A later run of the
        same name replaces the documents.

        >>> client.aggregate("item").group_by("name").agg(n=count()).into("names").put
        1
        """
        values = {**self._values, "into": type}
        if namespace is not None:
            values["into_namespace"] = namespace
        if name is not None:
            values["name"] = name
        result = self._run(values)
        return StoredRows(result.documents_put, result.documents_removed, result.job_id)

    def request(self) -> Dict[str, Any]:
        """Returns the aggregation as the members of its JSON form, for jobs of several passes.

        >>> client.aggregate("item").group_by("name").agg(n=count()).request()
        {'type': 'item', 'group_by': ['name'], 'aggregates': ['count() as n']}
        """
        return dict(self._values)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
        return f"<fjord.Relation {parts}, {'not run' if self._rows is None else 'has run'}>"


def _texts(name: str, values: Sequence[str]) -> List[str]:
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise WrongType(f"{name}[{index}]", "str", value)
    return list(values)
