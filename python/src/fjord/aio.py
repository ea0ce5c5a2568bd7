"""The client for programs with an event loop."""

import asyncio
import queue
import time
from typing import (TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Callable, Dict, Generator, Generic, Iterable, List,
                    Literal, Mapping, Optional, Tuple, TypeVar, Union, overload)

from . import _core
from ._options import Fields, field_list, field_set, fill, in_flight, listed, seconds
from .client import _RAISE, Client, Path, _path
from .documents import (BulkSummary, Change, Document, ExportSummary, FeedResult, FeedStats, ImportSummary, Removed,
                        RetryPolicy, Written)
from .errors import Error, NotFound, UnknownType, WrongType
from .visit import seconds_left

if TYPE_CHECKING:
    from .aio_parts import AsyncAdmin, AsyncJobs, AsyncRelation, AsyncTune
    from .arrow import ArrowVisit
    from .search import SearchResult

T = TypeVar("T")

_ROWS_AT_ONCE = 1000
_END = object()


class AsyncClient:
    """The twin of Client for asyncio: the same methods with the same arguments, to be awaited.

    >>> async def main():
    ...     async with fjord.AsyncClient("127.0.0.1:19110") as client:
    ...         await client.put("id:shop:item::1", {"name": "tea"})
    ...         return await client.get("id:shop:item::1")
    >>> asyncio.run(main())["name"]
    'tea'

    It belongs to the event loop that uses it first. Cancelling the task that waits for a single operation leaves the operation
    alone; cancelling one that waits for an export, an import, a change of many documents or a feed ends it.
    """

    def __init__(self, addresses: Union[str, Iterable[str], None] = None, *, timeout: float = 30.0, priority: str = "default",
                 consistency: str = "default", retry: RetryPolicy = RetryPolicy()) -> None:
        self._sync = Client(addresses, timeout=timeout, priority=priority, consistency=consistency, retry=retry)
        self._core = self._sync._core
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._completions: Optional[_core.Completions] = None

    def __repr__(self) -> str:
        return repr(self._sync).replace("fjord.Client", "fjord.AsyncClient")

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """As Client.close().

        >>> await client.close()
        """
        await asyncio.to_thread(self._sync.close)
        if self._loop is not None and self._completions is not None:
            self._completions.drain()
            self._loop.remove_reader(self._completions.fileno())
            self._completions = None

    async def _ready(self) -> _core.Completions:
        """Connects if that has not been done, and returns what ends the futures of this loop."""
        loop = asyncio.get_running_loop()
        if self._completions is None or self._loop is not loop:
            if self._loop is not None and self._loop is not loop and not self._loop.is_closed():
                raise RuntimeError("this AsyncClient belongs to another event loop; make one for each loop")
            self._loop = loop
            self._completions = _core.Completions(loop)
            loop.add_reader(self._completions.fileno(), self._completions.drain)
        if not self._core.is_connected:
            await self._stoppable(self._core.ping)
        return self._completions

    async def ping(self) -> None:
        """As Client.ping().

        >>> await client.ping()
        """
        await self._stoppable(self._core.ping)

    async def types(self) -> Dict[str, Dict[str, str]]:
        """As Client.types().

        >>> (await client.types())["item"]["price"]
        'int'
        """
        return await self._stoppable(self._core.types)

    # --- One document

    @overload
    async def get(self, id: str, *, fields: Fields = None, consistency: str = "default", priority: str = "default",
                  timeout: Optional[float] = None) -> Document: ...
    @overload
    async def get(self, id: str, default: T, *, fields: Fields = None, consistency: str = "default",
                  priority: str = "default", timeout: Optional[float] = None) -> Union[Document, T]: ...
    async def get(self, id: str, default: Any = _RAISE, *, fields: Fields = None, consistency: str = "default",
                  priority: str = "default", timeout: Optional[float] = None) -> Any:
        """As Client.get().

        >>> (await client.get("id:shop:item::1"))["name"]
        'tea'
        """
        completions = await self._ready()
        try:
            return await self._core.get(id, field_set(fields), consistency, priority, timeout, completions)
        except NotFound:
            if default is _RAISE:
                raise
            return default

    async def get_many(self, ids: Iterable[str], *, fields: Fields = None, consistency: str = "default",
                       priority: str = "default", timeout: Optional[float] = None) -> List[Optional[Document]]:
        """As Client.get_many().

        >>> documents = await client.get_many(["id:shop:item::1", "id:shop:item::2"])
        """
        completions = await self._ready()
        wanted = field_set(fields)
        futures = [self._core.get(id, wanted, consistency, priority, timeout, completions) for id in listed("ids", ids)]
        documents: List[Optional[Document]] = []
        for found in await asyncio.gather(*futures, return_exceptions=True):
            if isinstance(found, BaseException) and not isinstance(found, NotFound):
                raise found
            documents.append(None if isinstance(found, NotFound) else found)
        return documents

    async def put(self, id: str, fields: Mapping[str, Any], *, condition: str = "", required_version: Optional[int] = None,
                  create: bool = False, durability: str = "default", priority: str = "default", idempotency_key: str = "",
                  timeout: Optional[float] = None) -> Written:
        """As Client.put().

        >>> await client.put("id:shop:item::1", {"name": "tea"})
        Written(version=..., existed=True)
        """
        completions = await self._ready()
        arguments = (id, fields, condition, required_version, create, durability, priority, idempotency_key, timeout)
        try:
            future = self._core.put(*arguments, completions)
        except UnknownType:
            await self._stoppable(lambda: self._core.load_types(id))
            future = self._core.put(*arguments, completions)
        written: Written = await future
        return written

    async def update(self, id: str, changes: Mapping[str, Any], *, condition: str = "", required_version: Optional[int] = None,
                     create: bool = False, durability: str = "default", priority: str = "default",
                     idempotency_key: str = "", timeout: Optional[float] = None) -> Written:
        """As Client.update().

        >>> await client.update("id:shop:item::1", {"price": {"increment": 1}})
        Written(version=..., existed=True)
        """
        completions = await self._ready()
        written: Written = await self._core.update(id, changes, condition, required_version, create, durability, priority,
                                                   idempotency_key, timeout, completions)
        return written

    async def remove(self, id: str, *, condition: str = "", required_version: Optional[int] = None,
                     durability: str = "default", priority: str = "default", idempotency_key: str = "",
                     timeout: Optional[float] = None) -> Written:
        """As Client.remove().

        >>> (await client.remove("id:shop:item::2")).existed
        True
        """
        completions = await self._ready()
        written: Written = await self._core.remove(id, condition, required_version, durability, priority, idempotency_key,
                                                   timeout, completions)
        return written

    # --- Many documents

    async def feed(self, rows: Union[Iterable[Any], AsyncIterable[Any]], *,
                   on_result: Optional[Callable[[FeedResult], object]] = None, max_inflight: Union[int, str] = "auto",
                   timeout: Optional[float] = None, priority: str = "default") -> FeedStats:
        """As Client.feed(); `rows` may be an asynchronous iterable, too. `on_result` is called on the event loop. A plain iterable
        is read on another thread.

        >>> (await client.feed([("id:shop:item::1", {"price": 3})])).ok
        1
        """
        loop = asyncio.get_running_loop()
        await self._ready()
        is_table = hasattr(rows, "__arrow_c_stream__")
        feeding = _Rows(() if is_table else rows, on_result)
        report = None if on_result is None else lambda result: loop.call_soon_threadsafe(feeding.report, result)
        source: Any = rows if is_table else feeding
        stop = _core.Stop()
        running = loop.run_in_executor(None, stop.run, lambda: self._sync.feed(
            source, on_result=report, max_inflight=max_inflight, timeout=timeout, priority=priority))
        feeding.on_stop = stop.stop
        try:
            if not is_table:
                await feeding.supply(running)
            stats = await asyncio.shield(running)  # The last results are reported before.
            feeding.check()
            return stats
        except BaseException:
            feeding.stop()
            running.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # No other code asks for it.
            feeding.check()
            raise

    @overload
    def visit(self, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None, slices: int = 1,
              slice: Optional[Tuple[int, int]] = None, resume: Optional[str] = None, ids_only: bool = False,
              include_removed: Literal[False] = False, since: Optional[int] = None, until: Optional[int] = None,
              snapshot: bool = False, buffer_bytes: Optional[int] = None, priority: Optional[str] = None,
              no_progress_limit: Optional[float] = None) -> "AsyncVisit[Document]": ...
    @overload
    def visit(self, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None, slices: int = 1,
              slice: Optional[Tuple[int, int]] = None, resume: Optional[str] = None, ids_only: bool = False,
              include_removed: bool, since: Optional[int] = None, until: Optional[int] = None,
              snapshot: bool = False, buffer_bytes: Optional[int] = None, priority: Optional[str] = None,
              no_progress_limit: Optional[float] = None) -> "AsyncVisit[Union[Document, Removed]]": ...
    def visit(self, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None, slices: int = 1,
              slice: Optional[Tuple[int, int]] = None, resume: Optional[str] = None, ids_only: bool = False,
              include_removed: bool = False, since: Optional[int] = None, until: Optional[int] = None,
              snapshot: bool = False, buffer_bytes: Optional[int] = None, priority: Optional[str] = None,
              no_progress_limit: Optional[float] = None) -> "AsyncVisit[Any]":
        """As Client.visit(), for `async for`.

        >>> [document["name"] async for document in client.visit("item.price > 2")]
        ['tea']
        """
        options = fill(_core.VisitOptions(), selection=selection, type=type, fields=field_list(fields), slices=slices,
                       slice=slice, resume=resume, ids_only=ids_only, include_removed=include_removed, since=since,
                       until=until, snapshot=snapshot, buffer_bytes=buffer_bytes, priority=priority,
                       no_progress_limit=no_progress_limit)
        return AsyncVisit(self, lambda: _core.visit(self._core, options))

    def subscribe(self, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None,
                  resume: Optional[str] = None, from_now: bool = False, poll_interval: Optional[float] = None,
                  buffer_bytes: Optional[int] = None) -> "AsyncSubscription":
        """As Client.subscribe(), for `async for`.

        >>> async for change in client.subscribe(type="item"):
        ...     if change.kind == "caught_up":
        ...         break
        """
        options = fill(_core.SubscribeOptions(), selection=selection, type=type, fields=field_list(fields), resume=resume,
                       from_now=from_now, poll_interval=poll_interval, buffer_bytes=buffer_bytes)
        return AsyncSubscription(self, lambda: _core.subscribe(self._core, options))

    async def update_where(self, selection: str, changes: Mapping[str, Any], *, type: Optional[str] = None,
                           all_types: bool = False, dry_run: bool = False, resume: Optional[str] = None,
                           slice: Optional[Tuple[int, int]] = None, timeout: Optional[float] = None,
                           time_limit: Optional[float] = None,
                           on_progress: Optional[Callable[[Optional[float], int], object]] = None,
                           on_cursor: Optional[Callable[[str], object]] = None,
                           on_failure: Optional[Callable[[str, Error], object]] = None) -> BulkSummary:
        """As Client.update_where(). The callbacks are called on another thread.

        >>> (await client.update_where("item.price > 2", {"price": {"increment": 1}}, type="item")).applied
        1
        """
        if not isinstance(changes, Mapping):
            raise WrongType("changes", "a mapping of paths", changes)
        return await self._stoppable(lambda: self._sync._bulk(
            selection, changes, type=type, all_types=all_types, dry_run=dry_run, resume=resume, slice=slice,
            timeout=timeout, time_limit=time_limit, on_progress=on_progress, on_cursor=on_cursor, on_failure=on_failure))

    async def remove_where(self, selection: str, *, type: Optional[str] = None, all_types: bool = False,
                           dry_run: bool = False, resume: Optional[str] = None, slice: Optional[Tuple[int, int]] = None,
                           timeout: Optional[float] = None, time_limit: Optional[float] = None,
                           on_progress: Optional[Callable[[Optional[float], int], object]] = None,
                           on_cursor: Optional[Callable[[str], object]] = None,
                           on_failure: Optional[Callable[[str, Error], object]] = None) -> BulkSummary:
        """As Client.remove_where(). The callbacks are called on another thread.

        >>> (await client.remove_where("item.price > 2", type="item", dry_run=True)).matched
        1
        """
        return await self._stoppable(lambda: self._sync._bulk(
            selection, None, type=type, all_types=all_types, dry_run=dry_run, resume=resume, slice=slice,
            timeout=timeout, time_limit=time_limit, on_progress=on_progress, on_cursor=on_cursor, on_failure=on_failure))

    async def export(self, path: Path, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None,
                     mode: str = "new", since: Optional[int] = None, until: Optional[int] = None, snapshot: bool = False,
                     slice: Optional[Tuple[int, int]] = None, priority: Optional[str] = None,
                     on_progress: Optional[Callable[[Optional[float], int], object]] = None) -> ExportSummary:
        """As Client.export(). `on_progress` is called on another thread.

        >>> (await client.export("items.jsonl", type="item", mode="replace")).documents
        2
        """
        return await self._stoppable(lambda: self._sync._export(
            path, selection, on_progress, type=type, fields=field_set(fields), mode=mode, since=since, until=until,
            snapshot=snapshot, slice=slice, priority=priority))

    async def import_file(self, *paths: Path, type: Optional[str] = None, id_field: Optional[str] = None,
                          id_namespace: Optional[str] = None, is_feed: bool = False, progress_file: Optional[Path] = None,
                          ignore_unknown: bool = False, create_only: bool = False, convert_values: bool = False, max_inflight: Union[int, str] = "auto",
                          timeout: Optional[float] = None, priority: Optional[str] = None,
                          on_progress: Optional[Callable[[Optional[float], int, int], object]] = None,
                          on_failure: Optional[Callable[[str, int, Error], object]] = None,
                          on_warning: Optional[Callable[[str], object]] = None) -> ImportSummary:
        """As Client.import_file(). The callbacks are called on another thread.

        >>> (await client.import_file("items.jsonl")).stored
        1
        """
        return await self._stoppable(lambda: self._sync._import(
            paths, on_progress, on_failure, on_warning, type=type, id_field=id_field, id_namespace=id_namespace,
            is_feed=is_feed, ignore_unknown=ignore_unknown, create_only=create_only, convert_values=convert_values, progress_file=None if progress_file is None else _path("progress_file", progress_file),
            in_flight=in_flight(max_inflight), timeout=timeout, priority=priority))

    async def visit_arrow(self, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None,
                          slices: int = 1, slice: Optional[Tuple[int, int]] = None, resume: Optional[str] = None,
                          ids_only: bool = False, since: Optional[int] = None, until: Optional[int] = None,
                          snapshot: bool = False, buffer_bytes: Optional[int] = None, priority: Optional[str] = None,
                          no_progress_limit: Optional[float] = None, visitors_per_node: Optional[int] = None,
                          buckets_per_visitor: Optional[int] = None, buckets_at_once: Optional[int] = None,
                          batch_rows: int = 65536, batch_bytes: Optional[int] = None,
                          version: bool = False) -> "ArrowVisit":
        """As Client.visit_arrow(). The visit itself is read by a thread: `await asyncio.to_thread(visit.table)`.

        >>> visit = await client.visit_arrow(type="item")
        >>> table = await asyncio.to_thread(visit.table)
        """
        return await self._stoppable(lambda: self._sync.visit_arrow(
            selection, type=type, fields=fields, slices=slices, slice=slice, resume=resume, ids_only=ids_only, since=since,
            until=until, snapshot=snapshot, buffer_bytes=buffer_bytes, priority=priority,
            no_progress_limit=no_progress_limit, visitors_per_node=visitors_per_node,
            buckets_per_visitor=buckets_per_visitor, buckets_at_once=buckets_at_once, batch_rows=batch_rows,
            batch_bytes=batch_bytes, version=version))

    async def import_arrow(self, table: Any, *, type: Optional[str] = None, id_column: Optional[str] = None,
                           namespace: Optional[str] = None, create_only: bool = False, max_inflight: Union[int, str] = "auto",
                           timeout: Optional[float] = None, priority: Optional[str] = None,
                           on_failure: Optional[Callable[[int, Error], object]] = None,
                           on_warning: Optional[Callable[[str], object]] = None) -> ImportSummary:
        """As Client.import_arrow(). The functions are called on another thread.

        >>> import pyarrow
        >>> (await client.import_arrow(pyarrow.table({"_id": ["a"], "price": [5]}), type="item")).stored
        1
        """
        return await self._stoppable(lambda: self._sync._import_arrow(
            table, on_failure, on_warning, type=type, id_column=id_column, id_namespace=namespace, create_only=create_only,
            in_flight=in_flight(max_inflight), timeout=timeout, priority=priority))

    def aggregate(self, type: str, *, settings: Optional[Mapping[str, Any]] = None,
                  timeout: Optional[float] = None, progress: Optional[bool] = None) -> "AsyncRelation":
        """As Client.aggregate(); what runs the aggregation is awaited. Cancelling the task cancels its job.

        >>> await client.aggregate("item").agg("count()").fetchall()
        [(2,)]
        """
        from .aio_parts import AsyncRelation
        return AsyncRelation(self, self._sync.aggregate(type, settings=settings, timeout=timeout, progress=progress))

    async def search(self, query: str, *, context: Optional[Mapping[str, Any]] = None, limit: int = 4,
                     timeout: Optional[float] = None, session: bool = False) -> "SearchResult":
        """As Client.search().

        >>> (await client.search("green tea")).places
        []
        """
        return await self._stoppable(
            lambda: self._sync.search(query, context=context, limit=limit, timeout=timeout, session=session))

    @property
    def jobs(self) -> "AsyncJobs":
        """As Client.jobs; its methods, and those of the jobs that they return, are awaited.

        >>> job = await client.jobs.submit(client.aggregate("item").agg("count()"))
        >>> (await job.wait()).state
        'done'
        """
        from .aio_parts import AsyncJobs
        return AsyncJobs(self, self._sync.jobs)

    @property
    def admin(self) -> "AsyncAdmin":
        """As Client.admin; its methods are awaited.

        >>> (await client.admin.status()).health
        'healthy'
        """
        from .aio_parts import AsyncAdmin
        return AsyncAdmin(self, self._sync.admin)

    @property
    def tune(self) -> "AsyncTune":
        """As Client.tune; its methods are awaited.

        >>> changes = await client.tune.history()
        """
        from .aio_parts import AsyncTune
        return AsyncTune(self, self._sync.tune)

    async def _stoppable(self, call: Callable[[], T]) -> T:
        """Runs a call that waits on another thread. A cancellation stops it, and is passed on when it has ended."""
        stop = _core.Stop()
        running = asyncio.ensure_future(asyncio.to_thread(stop.run, call))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop.stop()
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # No other code asks for it.
            raise


class _Rows:
    """Takes rows from an iterable of either kind to the thread that feeds them."""

    def __init__(self, rows: Union[Iterable[Any], AsyncIterable[Any]],
                 on_result: Optional[Callable[[FeedResult], object]]) -> None:
        self._rows = rows
        self._on_result = on_result
        self._failure: Optional[BaseException] = None
        self._is_stopped = False
        self.on_stop: Callable[[], object] = lambda: None
        self._chunks: "queue.Queue[Any]" = queue.Queue(maxsize=4)

    def __iter__(self) -> Any:
        if not isinstance(self._rows, AsyncIterable):
            rows = iter(self._rows)
            for row in rows:
                if self._is_stopped:
                    if isinstance(rows, Generator):
                        rows.close()
                    raise asyncio.CancelledError
                yield row
            return
        while True:
            try:
                chunk = self._chunks.get(timeout=0.05)
            except queue.Empty:
                chunk = ()
            if self._is_stopped:
                raise asyncio.CancelledError
            if chunk is _END:
                return
            yield from chunk

    async def supply(self, running: "asyncio.Future[Any]") -> None:
        """Reads an asynchronous iterable; returns at its end, or when the feed has ended."""
        if not isinstance(self._rows, AsyncIterable):
            return
        chunk: List[Any] = []
        async for row in self._rows:
            chunk.append(row)
            if len(chunk) == _ROWS_AT_ONCE:
                await self._pass(chunk, running)
                chunk = []
                await asyncio.sleep(0)  # An iterable that never waits would keep the loop for itself.
                if running.done() or self._is_stopped:
                    return
        await self._pass(chunk, running)
        await self._pass(_END, running)

    async def _pass(self, chunk: Any, running: "asyncio.Future[Any]") -> None:
        while not running.done():
            try:
                return self._chunks.put_nowait(chunk)
            except queue.Full:
                await asyncio.wait([running], timeout=0.005)

    def report(self, result: FeedResult) -> None:
        """Calls on_result on the event loop. What it raises ends the feed."""
        if self._on_result is None or self._failure is not None:
            return
        try:
            self._on_result(result)
        except BaseException as error:
            self._failure = error
            self.stop()

    def check(self) -> None:
        """Raises what on_result has raised."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._is_stopped = True
        self.on_stop()


_Core = TypeVar("_Core", _core.Visit, _core.Subscription)
Row = TypeVar("Row")


class _AsyncStream(Generic[_Core, Row]):
    """What comes over time, without blocking the event loop. The request is made when the first is asked for."""

    def __init__(self, client: AsyncClient, open: Callable[[], _Core]) -> None:
        self._client = client
        self._open: Callable[[], _Core] = open
        self._core: Optional[_Core] = None
        self._wait: Optional["asyncio.Future[None]"] = None
        self._started = time.monotonic()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[Row]:
        return self

    async def __anext__(self) -> Row:
        completions = await self._client._ready()
        core = self._core
        if core is None:
            core = self._core = await self._client._stoppable(self._open)
        while True:
            if self._wait is not None:
                await asyncio.shield(self._wait)
                self._wait = None
            found: Any = core.try_next()
            if found is not None:
                row: Row = found
                return row
            if core.is_over:
                core.check_end()
                raise StopAsyncIteration
            # A cancelled task leaves the wait to the next one.
            self._wait = core.ready(completions)

    def close(self) -> None:
        """Ends it, and the work of the nodes for it. Works at any time.

        >>> visit = client.visit(type="item")
        >>> visit.close()
        """
        if self._core is not None:
            self._core.stop()

    @property
    def cursor(self) -> str:
        """A text that says what was given; "" before the first.

        >>> visit = client.visit(type="item")
        >>> visit.cursor
        ''
        """
        return "" if self._core is None else self._core.cursor


class AsyncVisit(_AsyncStream[_core.Visit, Row]):
    """The documents that a selection matches, from AsyncClient.visit(). See Visit.

    >>> async with client.visit("item.price > 2") as visit:
    ...     async for document in visit:
    ...         print(document["name"])
    tea
    """

    async def __aenter__(self) -> "AsyncVisit[Row]":
        return self

    @property
    def progress(self) -> Optional[float]:
        """The part of the buckets that were read, from 0 to 1; None: not known yet.

        >>> visit = client.visit(type="item")
        >>> names = [document["name"] async for document in visit]
        >>> visit.progress
        1.0
        """
        return None if self._core is None else self._core.fraction_done

    @property
    def eta(self) -> Optional[float]:
        """Seconds that the rest may take; None: not known yet.

        >>> visit = client.visit(type="item")
        >>> names = [document["name"] async for document in visit]
        >>> visit.eta
        0.0
        """
        return None if self._core is None else seconds_left(self._started, self._core.fraction_done)

    @property
    def statistics(self) -> Dict[str, int]:
        """Counts of buckets, documents and bytes that were read; empty before the first document.

        >>> visit = client.visit("item.price > 2")
        >>> names = [document["name"] async for document in visit]
        >>> visit.statistics["documents_matched"]
        1
        """
        return {} if self._core is None else self._core.statistics


class AsyncSubscription(_AsyncStream[_core.Subscription, Change]):
    """The changes of documents, from AsyncClient.subscribe(). See Subscription.

    >>> async with client.subscribe(type="item") as changes:
    ...     async for change in changes:
    ...         if change.kind == "caught_up":
    ...             break
    """

    async def __aenter__(self) -> "AsyncSubscription":
        return self

    async def next(self, timeout: float) -> Optional[Change]:
        """Returns the next change; None if there is none within `timeout` seconds.

        >>> changes = client.subscribe(type="item")
        >>> change = await changes.next(timeout=5)
        """
        try:
            return await asyncio.wait_for(self.__anext__(), seconds(timeout))
        except asyncio.TimeoutError:
            return None
