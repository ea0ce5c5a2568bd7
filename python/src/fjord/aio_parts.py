"""What AsyncClient gives beside documents: aggregations, jobs, administration and tuning, to be awaited."""

import functools
import itertools
from typing import (TYPE_CHECKING, Any, AsyncIterator, Callable, Coroutine, Dict, Generator, List, Mapping, Optional,
                    Sequence, Tuple, TypeVar, Union, cast)

from .admin import Admin
from .aggregate import AggregateRows, Relation, StoredRows
from .balance import Balancing
from .jobs import Job, JobRow, Jobs, Pass
from .tune import Tune

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from typing_extensions import Concatenate, ParamSpec

    from .aio import AsyncClient
    from .jobs import JobInfo

    P = ParamSpec("P")

R = TypeVar("R")
_ROWS_AT_ONCE = 1000


class _Twin:
    """Awaits the methods of `_twin`, an object of the plain client, which wait on another thread. Cancelling the task ends
    the wait as KeyboardInterrupt ends that of the plain method. Callbacks are called on the other thread."""

    def __init__(self, client: "AsyncClient", twin: Any) -> None:
        self._client = client
        self._twin = twin

    def __repr__(self) -> str:
        return repr(self._twin).replace("<fjord.", "<fjord.Async")


def _awaited(method: "Callable[Concatenate[Any, P], R]",
             example: str) -> "Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]":
    """Returns the twin of a method, with the same arguments. `example` is for its docstring."""
    @functools.wraps(method)
    async def later(self: Any, *arguments: "P.args", **options: "P.kwargs") -> R:
        client: "AsyncClient" = self._client
        return await client._stoppable(lambda: method(self._twin, *arguments, **options))

    later.__doc__ = f"As {method.__qualname__}(), to be awaited.\n\n{example}"
    return cast("Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]", later)


def _tried(call: str, why: str) -> str:
    """Returns an example of a call that may be refused, and why."""
    return f">>> try:\n...     {call}\n... except fjord.Error:\n...     pass  # {why}"


class AsyncRelation:
    """The twin of fjord.aggregate.Relation, from AsyncClient.aggregate(). `relation` is what it awaits.

    >>> await client.aggregate("item").group_by("name").agg("count()").fetchall()
    [('tea', 1)]
    """

    def __init__(self, client: "AsyncClient", relation: Relation) -> None:
        self._client = client
        self.relation = relation

    def filter(self, condition: str) -> "AsyncRelation":
        """As Relation.filter().

        >>> await client.aggregate("item").filter("price > 5").agg("count()").fetchall()
        [(0,)]
        """
        return AsyncRelation(self._client, self.relation.filter(condition))

    def group_by(self, *expressions: str) -> "AsyncRelation":
        """As Relation.group_by().

        >>> await client.aggregate("item").group_by("name").agg("count()").fetchall()
        [('tea', 1)]
        """
        return AsyncRelation(self._client, self.relation.group_by(*expressions))

    def agg(self, *aggregates: str, **named: str) -> "AsyncRelation":
        """As Relation.agg().

        >>> await client.aggregate("item").agg("count()", dear="max(price)").fetchall()
        [(1, 3)]
        """
        return AsyncRelation(self._client, self.relation.agg(*aggregates, **named))

    def having(self, condition: str) -> "AsyncRelation":
        """As Relation.having().

        >>> await client.aggregate("item").group_by("name").agg("count() as n").having("n > 1").fetchall()
        []
        """
        return AsyncRelation(self._client, self.relation.having(condition))

    def order_by(self, *columns: str) -> "AsyncRelation":
        """As Relation.order_by().

        >>> await client.aggregate("item").group_by("name").agg("count() as n").order_by("-n").fetchall()
        [('tea', 1)]
        """
        return AsyncRelation(self._client, self.relation.order_by(*columns))

    def limit(self, rows: int) -> "AsyncRelation":
        """As Relation.limit().

        >>> await client.aggregate("item").group_by("name").agg("count()").limit(1).fetchall()
        [('tea', 1)]
        """
        return AsyncRelation(self._client, self.relation.limit(rows))

    def incremental(self) -> "AsyncRelation":
        """As Relation.incremental().

        >>> await client.aggregate("item").agg("count()").incremental().fetchall()
        [(1,)]
        """
        return AsyncRelation(self._client, self.relation.incremental())

    async def run(self, *, on_progress: "Optional[Callable[[JobInfo], object]]" = None) -> AggregateRows:
        """As Relation.run(). Cancelling the task cancels its job. `on_progress` is called on another thread.

        >>> (await client.aggregate("item").agg("count()").run()).documents_read
        1
        """
        return await self._client._stoppable(lambda: self.relation.run(on_progress=on_progress))

    async def _result(self) -> AggregateRows:
        return await self._client._stoppable(self.relation._result)

    @property
    def columns(self) -> List[str]:
        """As Relation.columns, but after `await run()` only.

        >>> counts = client.aggregate("item").agg("count() as n")
        >>> rows = await counts.run()
        >>> counts.columns
        ['n']
        """
        return self._rows().columns

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """As that of Relation, but after `await run()` only."""
        return self._rows().__arrow_c_stream__(requested_schema)

    def _rows(self) -> AggregateRows:
        if self.relation._rows is None:
            raise RuntimeError("the aggregation has not run: await its run() first")
        return self.relation._rows

    async def fetchall(self) -> List[Tuple[Any, ...]]:
        """As Relation.fetchall().

        >>> await client.aggregate("item").agg("count()").fetchall()
        [(1,)]
        """
        return (await self._result()).fetchall()

    async def fetchone(self) -> Optional[Tuple[Any, ...]]:
        """As Relation.fetchone().

        >>> await client.aggregate("item").agg("count()").fetchone()
        (1,)
        """
        rows = await self.fetchall()
        return rows[0] if rows else None

    async def arrow(self) -> "pyarrow.Table":
        """As Relation.arrow().

        >>> (await client.aggregate("item").agg("count() as n").arrow()).to_pylist()
        [{'n': 1}]
        """
        return (await self._result()).table()

    async def to_arrow_table(self) -> "pyarrow.Table":
        """As Relation.to_arrow_table().

        >>> (await client.aggregate("item").agg("count() as n").to_arrow_table()).num_rows
        1
        """
        return await self.arrow()

    async def to_arrow_batches(self) -> "pyarrow.RecordBatchReader":
        """As Relation.to_arrow_batches().

        >>> [batch.num_rows for batch in await client.aggregate("item").agg("count()").to_arrow_batches()]
        [1]
        """
        return (await self._result()).reader()

    async def df(self) -> "pandas.DataFrame":
        """As Relation.df().

        >>> int((await client.aggregate("item").agg("count() as n").df())["n"][0])
        1
        """
        return (await self._result()).df()

    async def pl(self) -> "polars.DataFrame":
        """As Relation.pl().

        >>> (await client.aggregate("item").agg("count() as n").pl())["n"].to_list()
        [1]
        """
        return (await self._result()).pl()

    async def into(self, type: str, *, namespace: Optional[str] = None, name: Optional[str] = None) -> StoredRows:
        """As Relation.into().

        >>> (await client.aggregate("item").group_by("name").agg("count() as n").into("names")).put
        1
        """
        return await self._client._stoppable(lambda: self.relation.into(type, namespace=namespace, name=name))

    def request(self) -> Dict[str, Any]:
        """As Relation.request().

        >>> client.aggregate("item").agg("count()").request()
        {'type': 'item', 'aggregates': ['count()']}
        """
        return self.relation.request()

    def __repr__(self) -> str:
        return repr(self.relation).replace("fjord.Relation", "fjord.AsyncRelation")


class AsyncJobRows:
    """The results of a job, for `async for`; awaited, they are a list.

    >>> job = await client.jobs.submit(client.aggregate("item").agg("count()"))
    >>> [row.value async for row in job.results()]
    [[1]]
    >>> [row.value for row in await job.results()]
    [[1]]
    """

    def __init__(self, client: "AsyncClient", job: Job, wait: bool) -> None:
        self._client = client
        self._job = job
        self._wait = wait

    async def __aiter__(self) -> AsyncIterator[JobRow]:
        rows = await self._client._stoppable(lambda: self._job.results(wait=self._wait))
        while True:
            some = await self._client._stoppable(lambda: list(itertools.islice(rows, _ROWS_AT_ONCE)))
            for row in some:
                yield row
            if len(some) < _ROWS_AT_ONCE:
                return

    def __await__(self) -> Generator[Any, None, List[JobRow]]:
        return self._list().__await__()

    async def _list(self) -> List[JobRow]:
        return [row async for row in self]


_JOB = '>>> job = await client.jobs.submit(client.aggregate("item").agg("count()"))\n'
_ENDED = '>>> job = await client.jobs.run(client.aggregate("item").agg("count()"))\n'


class AsyncJob(_Twin):
    """The twin of fjord.jobs.Job. It goes on when the program ends.

    >>> job = await client.jobs.submit(client.aggregate("item").agg("count()"))
    >>> (await job.wait()).state
    'done'
    """

    _twin: Job

    @property
    def id(self) -> str:
        """The id of the job.

        >>> job = await client.jobs.submit(client.aggregate("item").agg("count()"))
        >>> (await client.jobs.get(job.id)).id == job.id
        True
        """
        return self._twin.id

    def results(self, *, wait: bool = True) -> AsyncJobRows:
        """As Job.results(), for `async for`.

        >>> job = await client.jobs.submit(client.aggregate("item").agg("count()"))
        >>> [row.value async for row in job.results()]
        [[1]]
        """
        return AsyncJobRows(self._client, self._twin, wait)

    status = _awaited(Job.status, _JOB + ">>> info = await job.status()")
    wait = _awaited(Job.wait, _JOB + ">>> (await job.wait()).state\n'done'")
    result = _awaited(Job.result, _JOB + ">>> (await job.result()).fetchall()\n[(1,)]")
    dead_letters = _awaited(Job.dead_letters, _ENDED + ">>> await job.dead_letters()\n[]")
    pause = _awaited(Job.pause, _JOB + _tried("await job.pause()", "It has ended."))
    resume = _awaited(Job.resume, _JOB + _tried("await job.resume()", "It was not paused."))
    set = _awaited(Job.set, _JOB + _tried('await job.set(priority="background")', "It has ended."))
    cancel = _awaited(Job.cancel, _JOB + _tried("await job.cancel()", "It has ended."))
    remove = _awaited(Job.remove, _ENDED + ">>> await job.remove()")
    remove_results = _awaited(Job.remove_results, _ENDED + ">>> await job.remove_results()")


AsyncPasses = Union[Pass, Relation, AsyncRelation, Sequence[Union[Pass, Relation, AsyncRelation]]]


def _plain(passes: Any) -> Any:
    """Returns passes with the plain relations in place of their twins."""
    if isinstance(passes, AsyncRelation):
        return passes.relation
    return [_plain(one) for one in passes] if isinstance(passes, (list, tuple)) and not isinstance(passes, Pass) else passes


class AsyncJobs(_Twin):
    """The twin of fjord.jobs.Jobs, as `client.jobs` of an AsyncClient.

    >>> job = await client.jobs.submit(client.aggregate("item").agg("count()"))
    >>> (await job.wait()).state
    'done'
    """

    _twin: Jobs

    async def _job(self, call: Callable[[], Job]) -> AsyncJob:
        return AsyncJob(self._client, await self._client._stoppable(call))

    async def submit(self, passes: AsyncPasses, *, settings: Optional[Mapping[str, Any]] = None, incremental: bool = False,
                     output_namespace: Optional[str] = None, output_buckets: Optional[int] = None,
                     visitors_per_node: Optional[int] = None, detached: bool = False) -> AsyncJob:
        """As Jobs.submit(). With `detached`, cancelling a task that waits for the job leaves it running.

        >>> job = await client.jobs.submit([client.aggregate("item").agg("count()")])
        """
        return await self._job(lambda: self._twin.submit(
            _plain(passes), settings=settings, incremental=incremental, output_namespace=output_namespace,
            output_buckets=output_buckets, visitors_per_node=visitors_per_node, detached=detached))

    async def run(self, passes: AsyncPasses, **options: Any) -> AsyncJob:
        """As Jobs.run().

        >>> job = await client.jobs.run(client.aggregate("item").agg("count()"))
        >>> (await job.status()).state
        'done'
        """
        return await self._job(lambda: self._twin.run(_plain(passes), **options))

    async def aggregate(self, where: Optional[str] = None, group_by: Sequence[str] = (),
                        aggs: Optional[Mapping[str, str]] = None, into: Optional[str] = None, *, type: str,
                        having: Optional[str] = None, order_by: Sequence[str] = (), limit: Optional[int] = None,
                        **options: Any) -> AsyncJob:
        """As Jobs.aggregate().

        >>> job = await client.jobs.aggregate("price > 1", aggs={"n": "count()"}, type="item")
        >>> (await job.result()).fetchall()
        [(1,)]
        """
        return await self._job(lambda: self._twin.aggregate(where, group_by, aggs, into, type=type, having=having,
                                                            order_by=order_by, limit=limit, **options))

    async def get(self, id: str) -> AsyncJob:
        """As Jobs.get().

        >>> job = await client.jobs.submit(client.aggregate("item").agg("count()"))
        >>> same = await client.jobs.get(job.id)
        """
        return await self._job(lambda: self._twin.get(id))

    list = _awaited(Jobs.list, ">>> jobs = await client.jobs.list()")


class AsyncBalancing(_Twin):
    """The twin of fjord.balance.Balancing, as `client.admin.balancing` of an AsyncClient.

    >>> (await client.admin.balancing.status(buckets=3)).algorithm
    'descent'
    """

    status = _awaited(Balancing.status, ">>> (await client.admin.balancing.status()).mode\n'advise'")
    plan = _awaited(Balancing.plan, _tried("plan = await client.admin.balancing.plan()", "The loads are not known yet."))
    apply = _awaited(Balancing.apply, _tried(
        "reasons = await client.admin.balancing.apply(await client.admin.balancing.plan())", "There is nothing to move."))
    history = _awaited(Balancing.history, ">>> await client.admin.balancing.history()\n[]")
    revert = _awaited(Balancing.revert, _tried("plan = await client.admin.balancing.revert(7)", "There is no step 7."))


class AsyncAdmin(_Twin):
    """The twin of fjord.admin.Admin, as `client.admin` of an AsyncClient.

    >>> (await client.admin.status()).health
    'healthy'
    """

    _twin: Admin

    @property
    def balancing(self) -> AsyncBalancing:
        """As Admin.balancing; its methods are awaited.

        >>> (await client.admin.balancing.status()).mode
        'advise'
        """
        return AsyncBalancing(self._client, self._twin.balancing)

    status = _awaited(Admin.status, ">>> (await client.admin.status()).health\n'healthy'")
    nodes = _awaited(Admin.nodes, ">>> nodes = await client.admin.nodes()")
    state = _awaited(Admin.state, ">>> (await client.admin.state()).leader\n'127.0.0.1:...'")
    history = _awaited(Admin.history, ">>> entries = await client.admin.history(10)")
    change_nodes = _awaited(Admin.change_nodes,
                            '>>> (await client.admin.change_nodes("stop_check", ["storage.0"])).done\nFalse')
    recover_state = _awaited(Admin.recover_state, _tried("await client.admin.recover_state()", "There is nothing to recover."))
    plugins = _awaited(Admin.plugins, ">>> (await client.admin.plugins()).problems\n[]")
    bucket_of = _awaited(Admin.bucket_of, '>>> buckets = await client.admin.bucket_of("id:shop:item::1")')
    bucket = _awaited(Admin.bucket, '>>> name = (await client.admin.bucket_of("id:shop:item::1"))[0].bucket\n'
                                    ">>> (await client.admin.bucket(name))[0].bucket == name\nTrue")
    unhealthy_buckets = _awaited(Admin.unhealthy_buckets, ">>> await client.admin.unhealthy_buckets()\n[]")
    lost_buckets = _awaited(Admin.lost_buckets, ">>> await client.admin.lost_buckets()\n[]")
    accept_loss = _awaited(Admin.accept_loss, ">>> await client.admin.accept_loss([])")
    settings = _awaited(Admin.settings, '>>> (await client.admin.settings())["storage.visitors_max"].type\n\'integer\'')
    set = _awaited(Admin.set, '>>> change = await client.admin.set({"storage.visitors_max": 64}, dry_run=True)')
    revert = _awaited(Admin.revert, '>>> change = await client.admin.set({"storage.visitors_max": 64})\n'
                                    ">>> change = await client.admin.revert()")
    deploy_schemas = _awaited(Admin.deploy_schemas, ">>> deployed = await client.admin.deploy_schemas("
                                                    '"document pet { field name type string {} }")')
    schemas = _awaited(Admin.schemas, ">>> texts = await client.admin.schemas()")


class AsyncTune(_Twin):
    """The twin of fjord.tune.Tune, as `client.tune` of an AsyncClient.

    >>> changes = await client.tune.history()
    """

    plan = _awaited(Tune.plan, ">>> plan = await client.tune.plan()")
    apply = _awaited(Tune.apply, '>>> change = await client.tune.apply({"storage.visitors_max": "32"})\n'
                                 ">>> reverted = await client.tune.revert(change.id)")
    apply_and_watch = _awaited(Tune.apply_and_watch, _tried(
        'await client.tune.apply_and_watch({"storage.visitors_max": "32"}, metrics=[])', "It needs the nodes' metrics."))
    run = _awaited(Tune.run, _tried("await client.tune.run(metrics=[], periods=1, period=1)", "It needs the nodes' metrics."))
    history = _awaited(Tune.history, ">>> changes = await client.tune.history()")
    revert = _awaited(Tune.revert, '>>> change = await client.tune.apply({"storage.visitors_max": "32"})\n'
                                   ">>> (await client.tune.revert(change.id)).values\n{'storage.visitors_max': ('32', '')}")
