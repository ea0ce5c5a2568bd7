"""The client for programs that wait."""

from os import PathLike, fspath
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Literal, Mapping, Optional, Sequence, Tuple, TypeVar, Union,
                    overload)

from . import _core
from ._options import Fields, addresses_of, field_list, field_set, fill, in_flight, needs_scope, seconds, text
from .documents import (BulkSummary, Document, ExportSummary, FeedResult, FeedStats, ImportSummary, Removed, RetryPolicy,
                        Written)
from .errors import Error, NotFound, WrongType
from .visit import Subscription, Visit

if TYPE_CHECKING:
    from .admin import Admin
    from .aggregate import Relation
    from .arrow import ArrowVisit
    from .jobs import Jobs
    from .search import SearchResult
    from .tune import Tune

T = TypeVar("T")
Path = Union[str, "PathLike[str]"]

_RAISE: Any = object()
_ERRORS_KEPT = 100


def _path(name: str, path: Path) -> str:
    try:
        return fspath(path)
    except TypeError:
        raise WrongType(name, "str or a path", path) from None


class Client:
    """A connection to a cluster, for a whole program and all of its threads.

    `addresses` are those of distributors, "host:port,host:port"; one that answers is enough. Without them the environment
    variable FJORD_CLUSTER counts. The client connects at its first use. `timeout` is that of operations without one of their
    own, in seconds, retries included. `retry` says how operations are repeated until then.

    >>> with fjord.Client("127.0.0.1:19110", timeout=10) as client:
    ...     client.ping()

    Whatever waits, waits without the interpreter lock, and ends with KeyboardInterrupt. A client that was used may not be used
    in a forked process; make another one there.
    """

    def __init__(self, addresses: Union[str, Iterable[str], None] = None, *, timeout: float = 30.0, priority: str = "default",
                 consistency: str = "default", retry: RetryPolicy = RetryPolicy()) -> None:
        if not isinstance(retry, RetryPolicy):
            raise WrongType("retry", "fjord.RetryPolicy", retry)
        policy = fill(_core.RetryPolicy(), **retry._asdict())
        self._core = _core.Client(addresses_of(addresses), seconds(timeout), text("priority", priority),
                                  text("consistency", consistency), policy)

    def __repr__(self) -> str:
        core = self._core
        if core.is_closed:
            state = "closed"
        else:
            state = f"cluster state {core.state_version}" if core.is_connected else "not connected"
        return f"<fjord.Client {core.addresses}, {state}>"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all visits and subscriptions, and disconnects. Calls that wait raise ClientClosed.

        >>> client = fjord.Client()
        >>> client.close()
        """
        self._core.close()

    def ping(self) -> None:
        """Connects, and waits until a distributor has answered. Raises NotReady, which names each address and why not.

        >>> client.ping()
        """
        self._core.ping()

    def types(self) -> Dict[str, Dict[str, str]]:
        """Returns the document types of the cluster, with the fields of each and their types.

        >>> client.types()["item"]["price"]
        'int'
        """
        return self._core.types()

    # --- One document

    @overload
    def get(self, id: str, *, fields: Fields = None, consistency: str = "default", priority: str = "default",
            timeout: Optional[float] = None) -> Document: ...
    @overload
    def get(self, id: str, default: T, *, fields: Fields = None, consistency: str = "default", priority: str = "default",
            timeout: Optional[float] = None) -> Union[Document, T]: ...
    def get(self, id: str, default: Any = _RAISE, *, fields: Fields = None, consistency: str = "default",
            priority: str = "default", timeout: Optional[float] = None) -> Any:
        """Returns a document. If there is none, returns `default`, or raises NotFound without one.

        `fields` are names of fields, or a field set such as "[id]". `consistency="linearizable"` waits for writes of the
        document in flight.

        >>> client.get("id:shop:item::1", fields=["price"])
        Document('id:shop:item::1', {'price': 3})
        >>> print(client.get("id:shop:item::9", None))
        None
        """
        try:
            return self._core.get(id, "" if fields is None else field_set(fields), consistency, priority, timeout, None)
        except NotFound:
            if default is _RAISE:
                raise
            return default

    def get_many(self, ids: Iterable[str], *, fields: Fields = None, consistency: str = "default", priority: str = "default",
                 timeout: Optional[float] = None) -> List[Optional[Document]]:
        """Returns the documents in the order of the ids; None for one that is not there.

        >>> [document["name"] for document in client.get_many(["id:shop:item::1", "id:shop:item::2"])]
        ['tea', 'milk']
        """
        return self._core.get_many(ids, field_set(fields), consistency, priority, timeout)

    def put(self, id: str, fields: Mapping[str, Any], *, condition: str = "", required_version: Optional[int] = None,
            create: bool = False, durability: str = "default", priority: str = "default", idempotency_key: str = "",
            timeout: Optional[float] = None) -> Written:
        """Stores a document, and replaces the one of this id. A field that is None is not set.

        `condition` is a selection that must hold for the stored document, else ConditionFailed is raised; with `create`, there
        may also be no document. `required_version` is the version that the stored document must have; 0: there must be none.
        `durability="sync"` returns when the write survives a loss of power.

        >>> client.put("id:shop:item::1", {"name": "tea", "price": 3})
        Written(version=..., existed=True)
        >>> old = client.get("id:shop:item::1")
        >>> client.put(old.id, {**old, "price": 4}, required_version=old.version)
        Written(version=..., existed=True)
        """
        written: Written = self._core.put(id, fields, condition, required_version, create, durability, priority,
                                          idempotency_key, timeout, None)
        return written

    def update(self, id: str, changes: Mapping[str, Any], *, condition: str = "", required_version: Optional[int] = None,
               create: bool = False, durability: str = "default", priority: str = "default", idempotency_key: str = "",
               timeout: Optional[float] = None) -> Written:
        """Changes fields of a document. `changes` are paths and actions, as in a feed (document/FEED.md).

        >>> client.update("id:shop:item::1", {"price": {"increment": 1}, "name": {"assign": "green tea"}})
        Written(version=..., existed=True)
        """
        written: Written = self._core.update(id, changes, condition, required_version, create, durability, priority,
                                             idempotency_key, timeout, None)
        return written

    def remove(self, id: str, *, condition: str = "", required_version: Optional[int] = None, durability: str = "default",
               priority: str = "default", idempotency_key: str = "", timeout: Optional[float] = None) -> Written:
        """Removes a document. The result says whether there was one.

        >>> client.remove("id:shop:item::2").existed
        True
        """
        written: Written = self._core.remove(id, condition, required_version, durability, priority, idempotency_key, timeout,
                                             None)
        return written

    # --- Many documents

    def feed(self, rows: Iterable[Any], *, on_result: Optional[Callable[[FeedResult], object]] = None,
             max_inflight: Union[int, str] = "auto", timeout: Optional[float] = None,
             priority: str = "default") -> FeedStats:
        """Writes rows from any iterable, many at a time, with bounded memory.

        A row is `(id, fields)`, a Document, or a dict as in a feed: {"put": id, "fields": {...}}, {"update": id, ...},
        {"remove": id}. A row that is wrong or refused is counted and reported, and the feed goes on. `on_result` is called with
        a FeedResult for each row, on the calling thread. What it raises, and what the iterable raises, ends the feed; the rows
        before may be written then.

        A table of pyarrow, a data frame of pandas or Polars, or whatever else has __arrow_c_stream__, is written by columns: the
        column "_id" has the ids. `on_result` is called only for the rows that failed then. import_arrow() has more arguments.

        >>> stats = client.feed((f"id:shop:item::{n}", {"price": n}) for n in range(1000))
        >>> stats.ok, stats.failed
        (1000, 0)
        >>> client.feed([("id:shop:item::1", {"price": "much"})]).errors[0].error
        WrongType("price: expected int (int), got str 'much'")
        """
        if hasattr(rows, "__arrow_c_stream__"):
            return self._feed_arrow(rows, on_result, in_flight=in_flight(max_inflight), timeout=timeout,
                                    priority=text("priority", priority))
        return FeedStats(**_core.feed(self._core, rows, on_result, in_flight(max_inflight), timeout, priority))

    def _feed_arrow(self, table: Any, on_result: Optional[Callable[[FeedResult], object]], **options: Any) -> FeedStats:
        errors: List[FeedResult] = []

        def on_failure(row: int, error: Error) -> None:
            failed = FeedResult(row, None, None, error)
            if len(errors) < _ERRORS_KEPT:
                errors.append(failed)
            if on_result is not None:
                on_result(failed)

        done = self._import_arrow(table, on_failure, None, **options)
        return FeedStats(done.stored, done.failed, done.in_doubt, done.retried, done.bytes, done.seconds, done.p50, done.p99,
                         done.stored / done.seconds if done.seconds > 0 else 0.0, done.failed_by_code, errors)

    @overload
    def visit(self, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None, slices: int = 1,
              slice: Optional[Tuple[int, int]] = None, resume: Optional[str] = None, ids_only: bool = False,
              include_removed: Literal[False] = False, since: Optional[int] = None, until: Optional[int] = None,
              snapshot: bool = False, buffer_bytes: Optional[int] = None, priority: Optional[str] = None,
              no_progress_limit: Optional[float] = None) -> "Visit[Document]": ...
    @overload
    def visit(self, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None, slices: int = 1,
              slice: Optional[Tuple[int, int]] = None, resume: Optional[str] = None, ids_only: bool = False,
              include_removed: bool, since: Optional[int] = None, until: Optional[int] = None,
              snapshot: bool = False, buffer_bytes: Optional[int] = None, priority: Optional[str] = None,
              no_progress_limit: Optional[float] = None) -> "Visit[Union[Document, Removed]]": ...
    def visit(self, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None, slices: int = 1,
              slice: Optional[Tuple[int, int]] = None, resume: Optional[str] = None, ids_only: bool = False,
              include_removed: bool = False, since: Optional[int] = None, until: Optional[int] = None,
              snapshot: bool = False, buffer_bytes: Optional[int] = None, priority: Optional[str] = None,
              no_progress_limit: Optional[float] = None) -> "Visit[Any]":
        """Returns an iterator over all documents that a selection matches, in no order.

        `slices` parts are read at the same time. `slice=(index, count)` is one part, for one of several programs. `resume` is
        the `cursor` of an earlier visit of the same documents. `since` and `until` limit the time of writing, in microseconds
        since 1970. With `include_removed`, a Removed stands for each document that was removed. At most `buffer_bytes` wait in
        the program; the storage nodes stop reading meanwhile.

        >>> sorted(document["name"] for document in client.visit("item.price > 2", fields=["name"]))
        ['tea']
        """
        options = fill(_core.VisitOptions(), selection=selection, type=type, fields=field_list(fields), slices=slices,
                       slice=slice, resume=resume, ids_only=ids_only, include_removed=include_removed, since=since,
                       until=until, snapshot=snapshot, buffer_bytes=buffer_bytes, priority=priority,
                       no_progress_limit=no_progress_limit)
        return Visit(_core.visit(self._core, options))

    def subscribe(self, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None,
                  resume: Optional[str] = None, from_now: bool = False, poll_interval: Optional[float] = None,
                  buffer_bytes: Optional[int] = None) -> Subscription:
        """Returns an iterator over the changes of the documents that a selection matches: first those that are there, then, for
        ever, what is written and removed.

        Each change comes at least once, in order for each document. `resume` is the `cursor` of an earlier subscription. If the
        cluster does not remember all removes since then, a change of the kind "resync" ends the subscription.

        >>> for change in client.subscribe("item.price > 2"):
        ...     if change.kind == "put":
        ...         print(change.document["name"])
        ...     if change.kind == "caught_up":
        ...         break
        tea
        """
        options = fill(_core.SubscribeOptions(), selection=selection, type=type, fields=field_list(fields), resume=resume,
                       from_now=from_now, poll_interval=poll_interval, buffer_bytes=buffer_bytes)
        return Subscription(_core.subscribe(self._core, options))

    def update_where(self, selection: str, changes: Mapping[str, Any], *, type: Optional[str] = None,
                     all_types: bool = False, dry_run: bool = False, resume: Optional[str] = None,
                     slice: Optional[Tuple[int, int]] = None, timeout: Optional[float] = None,
                     time_limit: Optional[float] = None, on_progress: Optional[Callable[[Optional[float], int], object]] = None,
                     on_cursor: Optional[Callable[[str], object]] = None,
                     on_failure: Optional[Callable[[str, Error], object]] = None) -> BulkSummary:
        """Changes all documents that a selection matches, while others write, too.

        Each write is conditional on the selection. `dry_run` only counts. A run with `resume=` the cursor of an earlier run
        goes on without applying a change twice; `on_cursor` gets it before the first write and about each second.

        >>> client.update_where("item.price > 2", {"price": {"increment": 1}}, type="item").applied
        1
        """
        if not isinstance(changes, Mapping):
            raise WrongType("changes", "a mapping of paths", changes)
        return self._bulk(selection, changes, type=type, all_types=all_types, dry_run=dry_run, resume=resume,
                          slice=slice, timeout=timeout, time_limit=time_limit, on_progress=on_progress, on_cursor=on_cursor,
                          on_failure=on_failure)

    def remove_where(self, selection: str, *, type: Optional[str] = None, all_types: bool = False, dry_run: bool = False,
                     resume: Optional[str] = None, slice: Optional[Tuple[int, int]] = None,
                     timeout: Optional[float] = None, time_limit: Optional[float] = None,
                     on_progress: Optional[Callable[[Optional[float], int], object]] = None,
                     on_cursor: Optional[Callable[[str], object]] = None,
                     on_failure: Optional[Callable[[str, Error], object]] = None) -> BulkSummary:
        """Removes all documents that a selection matches. The arguments are those of update_where().

        >>> client.remove_where("item.price > 2", type="item", dry_run=True).matched
        1
        """
        return self._bulk(selection, None, type=type, all_types=all_types, dry_run=dry_run, resume=resume, slice=slice,
                          timeout=timeout, time_limit=time_limit, on_progress=on_progress, on_cursor=on_cursor,
                          on_failure=on_failure)

    def _bulk(self, selection: str, changes: Optional[Mapping[str, Any]], *,
              type: Optional[str], all_types: bool, on_progress: Optional[Callable[..., object]],
              on_cursor: Optional[Callable[[str], object]], on_failure: Optional[Callable[[str, Error], object]],
              **values: Any) -> BulkSummary:
        text("selection", selection)
        needs_scope(type, all_types)
        options = fill(_core.BulkOptions(), type=type, all_types=all_types, **values)
        return BulkSummary(**_core.bulk(self._core, selection, changes, options, on_progress, on_cursor, on_failure))

    def export(self, path: Path, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None,
               mode: str = "new", since: Optional[int] = None, until: Optional[int] = None, snapshot: bool = False,
               slice: Optional[Tuple[int, int]] = None, priority: Optional[str] = None,
               on_progress: Optional[Callable[[Optional[float], int], object]] = None) -> ExportSummary:
        """Writes all documents that a selection matches to a file: FILE.jsonl or FILE.csv, both also with .gz behind.

        If the file exists, `mode` is "new" (AlreadyExists is raised), "replace" or "resume", which goes on with an interrupted
        export. A CSV file needs `type`.

        >>> client.export("items.jsonl", type="item", mode="replace").documents
        2
        """
        return self._export(path, selection, on_progress, type=type, fields=field_set(fields), mode=mode, since=since,
                            until=until, snapshot=snapshot, slice=slice, priority=priority)

    def _export(self, path: Path, selection: Optional[str], on_progress: Optional[Callable[..., object]], **values: Any) -> ExportSummary:
        options = fill(_core.ExportOptions(), selection=selection, **values)
        return ExportSummary(**_core.export_to(self._core, _path("path", path), options, on_progress))

    def import_file(self, *paths: Path, type: Optional[str] = None, id_field: Optional[str] = None,
                    id_namespace: Optional[str] = None, is_feed: bool = False, progress_file: Optional[Path] = None,
                    ignore_unknown: bool = False, create_only: bool = False, convert_values: bool = False, max_inflight: Union[int, str] = "auto", timeout: Optional[float] = None,
                    priority: Optional[str] = None,
                    on_progress: Optional[Callable[[Optional[float], int, int], object]] = None,
                    on_failure: Optional[Callable[[str, int, Error], object]] = None,
                    on_warning: Optional[Callable[[str], object]] = None) -> ImportSummary:
        """Stores the documents of files: rows of FILE.csv and objects of FILE.jsonl are documents of `type`, whose ids end with
        the value of `id_field`. Without `type`, FILE.jsonl is a feed of puts, updates and removes.

        A column of FILE.csv that is no field of the type is refused; with `ignore_unknown` it is left out and reported to
        `on_warning`.

        With `convert_values` JSON may have texts with digits for numbers, and numbers for texts, as other systems write them.
        With `create_only` documents that exist stay as they are, and are counted as `existing`.

        A malformed or refused record is counted and reported to `on_failure` with file and line, and the import goes on.
        `progress_file` keeps the position, so that an interrupted import continues there.

        >>> client.import_file("items.jsonl").stored
        1
        """
        return self._import(paths, on_progress, on_failure, on_warning, type=type, id_field=id_field,
                            id_namespace=id_namespace, is_feed=is_feed, ignore_unknown=ignore_unknown, create_only=create_only, convert_values=convert_values,
                            progress_file=None if progress_file is None else _path("progress_file", progress_file),
                            in_flight=in_flight(max_inflight), timeout=timeout, priority=priority)

    def _import(self, paths: Sequence[Path], on_progress: Optional[Callable[..., object]],
                on_failure: Optional[Callable[[str, int, Error], object]], on_warning: Optional[Callable[[str], object]],
                **values: Any) -> ImportSummary:
        options = fill(_core.ImportOptions(), **values)
        return ImportSummary(**_core.import_from(self._core, [_path("paths", path) for path in paths], options, on_progress,
                                                 on_failure, on_warning))

    def visit_arrow(self, selection: Optional[str] = None, *, type: Optional[str] = None, fields: Fields = None,
                    slices: int = 1, slice: Optional[Tuple[int, int]] = None, resume: Optional[str] = None,
                    ids_only: bool = False, since: Optional[int] = None, until: Optional[int] = None,
                    snapshot: bool = False, buffer_bytes: Optional[int] = None, priority: Optional[str] = None,
                    no_progress_limit: Optional[float] = None, visitors_per_node: Optional[int] = None,
                    buckets_per_visitor: Optional[int] = None, buckets_at_once: Optional[int] = None,
                    batch_rows: int = 65536, batch_bytes: Optional[int] = None, version: bool = False) -> "ArrowVisit":
        """Returns all documents that a selection matches as columns, for pandas, Polars, DuckDB and pyarrow (docs/python/arrow.md).

        The arguments are those of visit(). A batch has at most `batch_rows` documents, and ends when they have `batch_bytes`.
        `version` adds the column "_version". Without `type`, the columns are the fields of all types.

        >>> client.visit_arrow("item.price > 2", type="item", fields=["price"]).table().to_pylist()
        [{'_id': 'id:shop:item::1', 'price': 3}]
        """
        from .arrow import ArrowVisit

        visit = fill(_core.VisitOptions(), selection=selection, type=type, fields=field_list(fields), slices=slices,
                     slice=slice, resume=resume, ids_only=ids_only, since=since, until=until, snapshot=snapshot,
                     buffer_bytes=buffer_bytes, priority=priority, no_progress_limit=no_progress_limit,
                     visitors_per_node=visitors_per_node, buckets_per_visitor=buckets_per_visitor,
                     buckets_at_once=buckets_at_once)
        options = fill(_core.ArrowVisitOptions(), batch_rows=batch_rows, batch_bytes=batch_bytes, version=version)
        return ArrowVisit(_core.visit_arrow(self._core, visit, options))

    def import_arrow(self, table: Any, *, type: Optional[str] = None, id_column: Optional[str] = None,
                     namespace: Optional[str] = None, create_only: bool = False, max_inflight: Union[int, str] = "auto",
                     timeout: Optional[float] = None, priority: Optional[str] = None,
                     on_failure: Optional[Callable[[int, Error], object]] = None,
                     on_warning: Optional[Callable[[str], object]] = None) -> ImportSummary:
        """Stores the rows of a table as documents: a table or reader of pyarrow, a data frame of pandas or Polars, or anything
        else with __arrow_c_stream__. Memory is bounded by a batch of it.

        `id_column` has the last part of each id; without it, the column "_id" has whole ids or last parts. Without `type`, the ids
        name the types. A row that does not fit is counted and reported to `on_failure` with its number, and the import goes on. A
        column that is not a field is reported to `on_warning`.

        >>> import pyarrow
        >>> client.import_arrow(pyarrow.table({"key": ["a"], "price": [5]}), type="item", id_column="key").stored
        1
        >>> client.get("id:item:item::a")["price"]
        5
        """
        return self._import_arrow(table, on_failure, on_warning, type=type, id_column=id_column,
                                  id_namespace=namespace, create_only=create_only, in_flight=in_flight(max_inflight), timeout=timeout,
                                  priority=priority)

    def _import_arrow(self, table: Any, on_failure: Optional[Callable[[int, Error], object]],
                      on_warning: Optional[Callable[[str], object]], **values: Any) -> ImportSummary:
        options = fill(_core.ArrowImportOptions(), **values)
        return ImportSummary(**_core.import_arrow(self._core, table, options, on_failure, on_warning))

    def aggregate(self, type: str, *, settings: Optional[Mapping[str, Any]] = None, timeout: Optional[float] = None,
                  progress: Optional[bool] = None) -> "Relation":
        """Returns a lazy aggregation of the documents of a type (docs/python/aggregation.md). `settings` are limits of its job.
        `progress=False` shows no bar.

        >>> from fjord.aggregate import avg, count
        >>> client.aggregate("item").filter("price > 1").agg(n=count(), mean=avg("price")).fetchall()
        [(1, 3.0)]
        """
        from .aggregate import Relation
        return Relation(self, type, settings=settings, timeout=timeout, progress=progress)

    def search(self, query: str, *, context: Optional[Mapping[str, Any]] = None, limit: int = 4,
               timeout: Optional[float] = None, session: bool = False) -> "SearchResult":
        """Finds the ads whose keywords match a query, and holds an auction among them (docs/operating/search.md). `context` says
        who searches: {"device": "phone"}. With `session`, the answer shows every write that was acknowledged before.

        >>> client.search("green tea").places
        []
        """
        from .search import search
        return search(self, query, context, limit, timeout, session)

    @property
    def jobs(self) -> "Jobs":
        """MapReduce jobs (docs/python/jobs.md).

        >>> client.jobs.run(client.aggregate("item").agg("count()")).status().state
        'done'
        """
        from .jobs import Jobs
        return Jobs(self)

    @property
    def admin(self) -> "Admin":
        """Nodes, buckets, settings and schemas.

        >>> client.admin.status().health
        'healthy'
        """
        from .admin import Admin
        return Admin(self)

    @property
    def tune(self) -> "Tune":
        """The tuner: advice on settings, and changes that it can take back.

        >>> changes = client.tune.history()
        """
        from .tune import Tune
        return Tune(self)
