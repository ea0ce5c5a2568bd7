"""Parts of AsyncClient whose twins wait: each call runs on a thread of its own and is awaited."""

import asyncio
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, List, Mapping, Optional, Tuple

from . import _core
from .aggregate import AggregateRows, Relation, StoredRows

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from .aio import AsyncClient


class AsyncRelation:
    """The twin of fjord.aggregate.Relation, from AsyncClient.aggregate(). `relation` is what it awaits.

    >>> await client.aggregate("item").group_by("name").agg("count()").fetchall()
    [('tea', 1)]
    """

    def __init__(self, client: "AsyncClient", relation: Relation) -> None:
        self._client = client
        self.relation = relation

    def filter(self, condition: str) -> "AsyncRelation":
        """As Relation.filter()."""
        return AsyncRelation(self._client, self.relation.filter(condition))

    def group_by(self, *expressions: str) -> "AsyncRelation":
        """As Relation.group_by()."""
        return AsyncRelation(self._client, self.relation.group_by(*expressions))

    def agg(self, *aggregates: str, **named: str) -> "AsyncRelation":
        """As Relation.agg()."""
        return AsyncRelation(self._client, self.relation.agg(*aggregates, **named))

    def having(self, condition: str) -> "AsyncRelation":
        """As Relation.having()."""
        return AsyncRelation(self._client, self.relation.having(condition))

    def order_by(self, *columns: str) -> "AsyncRelation":
        """As Relation.order_by()."""
        return AsyncRelation(self._client, self.relation.order_by(*columns))

    def limit(self, rows: int) -> "AsyncRelation":
        """As Relation.limit()."""
        return AsyncRelation(self._client, self.relation.limit(rows))

    def incremental(self) -> "AsyncRelation":
        """As Relation.incremental()."""
        return AsyncRelation(self._client, self.relation.incremental())

    async def run(self) -> AggregateRows:
        """Runs the aggregation. Cancelling the task cancels its job."""
        relation = self.relation
        if relation._rows is None:
            def work(stop: _core.Stop) -> _core.AggregateResult:
                return relation._run(relation._values, None, stop)

            relation._rows = AggregateRows(await self._client._stoppable(work))
        return relation._rows

    async def fetchall(self) -> List[Tuple[Any, ...]]:
        """As Relation.fetchall()."""
        return (await self.run()).fetchall()

    async def fetchone(self) -> Optional[Tuple[Any, ...]]:
        """As Relation.fetchone()."""
        rows = await self.fetchall()
        return rows[0] if rows else None

    async def arrow(self) -> "pyarrow.Table":
        """As Relation.arrow()."""
        return (await self.run()).table()

    async def df(self) -> "pandas.DataFrame":
        """As Relation.df()."""
        return (await self.run()).df()

    async def pl(self) -> "polars.DataFrame":
        """As Relation.pl()."""
        return (await self.run()).pl()

    async def into(self, type: str, **options: Any) -> StoredRows:
        """As Relation.into()."""
        return await asyncio.to_thread(lambda: self.relation.into(type, **options))


class AsyncCalls:
    """An object whose methods are awaited: AsyncClient.jobs, admin and tune, and the jobs that they return.

    >>> (await client.admin.status()).health
    'healthy'
    """

    def __init__(self, twin: Any) -> None:
        self._twin = twin

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._twin, name)
        if not callable(value):
            return value
        return _awaited(value)

    def __repr__(self) -> str:
        return repr(self._twin)


def _awaited(call: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    from .jobs import Job

    async def later(*arguments: Any, **options: Any) -> Any:
        def work() -> Any:
            result = call(*arguments, **_plain(options))
            return list(result) if hasattr(result, "__next__") else result

        result = await asyncio.to_thread(work)
        return AsyncCalls(result) if isinstance(result, Job) else result

    return later


def _plain(options: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value.relation if isinstance(value, AsyncRelation) else value for name, value in options.items()}
