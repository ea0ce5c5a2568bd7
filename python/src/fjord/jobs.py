"""MapReduce jobs: submitted, watched, changed, and their results read."""

import json
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _core
from ._options import fill, listed, mapping, text
from .aggregate import AggregateRows, Relation
from .arrow import ArrowStream, _pyarrow
from .errors import Cancelled, Error, InvalidArgument, WrongType
from .progress import Progress

if TYPE_CHECKING:
    from .client import Client


class JobPass(NamedTuple):
    """One pass of a job: one map and one reduce."""

    state: str
    """"waiting", "map", "reduce", "put", ... "done"."""
    application: str
    type: str
    selection: str
    parameters: Dict[str, str]
    into: str
    """The type of the documents that the rows are stored as; "": they are not."""
    map_tasks: int
    map_tasks_done: int
    reduce_tasks: int
    reduce_tasks_done: int
    tasks_repeated: int
    documents_read: int
    documents_reused: int
    bytes_read: int
    dead_letters: int
    tuples: int
    results: int
    documents_put: int
    documents_removed: int


class JobInfo(NamedTuple):
    """What is known of a job."""

    id: str
    state: str
    """"queued", "running", "paused", "orphaned", "done", "failed" or "cancelled"."""
    phase: str
    error: Optional[Error]
    """Why the job failed."""
    fraction_done: float
    left: Optional[float]
    """Estimated seconds until the end of the phase; None: no estimate."""
    bound_by: str
    """The resource or limit that the job waits for most."""
    passes: List[JobPass]
    passes_done: int
    dead_letters: int
    settings: Dict[str, str]
    output_namespace: str
    owner: str
    is_live: bool
    taken_over: int
    documents_read: int
    submitted_unix_us: int
    finished_unix_us: int
    results_removed: bool

    @property
    def has_ended(self) -> bool:
        """Whether the job is done, failed or cancelled."""
        return self.state in ("done", "failed", "cancelled")


class JobRow(NamedTuple):
    """A result of a job."""

    key: str
    value: Any
    """What its JSON text says."""


class DeadLetter(NamedTuple):
    """A document that the map function of a job failed on."""

    document: str
    error: str


def job_info(members: Mapping[str, Any]) -> JobInfo:
    """Makes a JobInfo of what the C++ library says."""
    return JobInfo(**{**members, "passes": [JobPass(**one) for one in members["passes"]]})


class JobFailed(Error):
    """A job that wait() waited for has failed. Its attribute `job` says more."""

    code = "JOB_FAILED"

    def __init__(self, message: str, job: JobInfo) -> None:
        super().__init__(message)
        self.job = job


class Pass(NamedTuple):
    """One pass of a job that is to be submitted. Make it with script(), application() or aggregation()."""

    members: Dict[str, Any]

    def _core(self) -> _core.JobPassRequest:
        members = dict(self.members)
        into = members.pop("into", None)
        if "aggregation" in members:
            request = _core.JobPassRequest.of_aggregation(
                fill(_core.AggregateRequest(), into=into, **members["aggregation"]))
        elif "script" in members:
            request = _core.JobPassRequest.of_script(members["script"], members["type"] or "", members["selection"] or "")
            if members["parameters"]:
                request.parameters = {**request.parameters, **members["parameters"]}
        else:
            request = fill(_core.JobPassRequest(), application=members["application"], type=members["type"],
                           selection=members["selection"], parameters=members["parameters"])
        if into is not None and "aggregation" not in members:
            request.into = fill(_core.JobTarget(), type=into)
        return request


def _parameters(parameters: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in (parameters or {}).items()}


def script(lua: str, type: Optional[str] = None, selection: Optional[str] = None, *,
           parameters: Optional[Mapping[str, Any]] = None, into: Optional[str] = None) -> Pass:
    '''A pass of a Lua program with functions map(document, emit) and reduce(key, values) (docs/operating/scripts.md).

    >>> from fjord.jobs import script
    >>> lua = """function map(doc, emit) emit(doc.fields.name, 1) end
    ... function reduce(key, values) return #values end"""
    >>> job = client.jobs.submit(script(lua, "item"))
    >>> [row.key for row in job.results()]
    ['tea']
    '''
    if not isinstance(lua, str):
        raise WrongType("lua", "str", lua)
    return Pass({"script": lua, "type": type, "selection": selection, "parameters": _parameters(parameters), "into": into})


def application(name: str, type: Optional[str] = None, selection: Optional[str] = None, *,
                parameters: Optional[Mapping[str, Any]] = None, into: Optional[str] = None) -> Pass:
    """A pass of an application that is built in or comes from a plugin of the cluster.

    >>> from fjord.jobs import application
    >>> job = client.jobs.submit(application("citycount", "item", parameters={"field": "name"}))
    >>> {row.key: row.value for row in job.results()}
    {'tea': 1}
    """
    if not isinstance(name, str):
        raise WrongType("name", "str", name)
    return Pass({"application": name, "type": type, "selection": selection, "parameters": _parameters(parameters),
                 "into": into})


def aggregation(relation: Optional[Relation] = None, *, into: Optional[str] = None, **members: Any) -> Pass:
    """A pass that aggregates: a relation of Client.aggregate(), or its members. A pass after the first has no type.

    >>> from fjord.jobs import aggregation
    >>> job = client.jobs.submit([aggregation(type="item", group_by=["name"], aggregates=["count() as n"]),
    ...                           aggregation(aggregates=["count() as names"])])
    >>> [row.value for row in job.results()]
    [[1]]
    """
    if relation is not None:
        members = {**relation.request(), **members}
    return Pass({"aggregation": members, "into": into})


class Job:
    """A job of the cluster. It goes on when the program ends.

    >>> job = client.jobs.submit(application("citycount", "item", parameters={"field": "name"}))
    >>> job.wait().state
    'done'
    >>> job.status().documents_read
    1
    """

    def __init__(self, client: "Client", id: str, *, detached: bool = False) -> None:
        self._client = client
        self.id = id
        self._detached = detached

    def status(self) -> JobInfo:
        """Returns what is known of the job.

        >>> job = client.jobs.run(client.aggregate("item").agg(n=count()))
        >>> job.status().state
        'done'
        """
        return job_info(_core.job_status(self._client._core, self.id))

    def wait(self, *, progress: Optional[bool] = None, on_progress: Optional[Callable[[JobInfo], object]] = None,
             check: bool = True) -> JobInfo:
        """Waits until the job has ended. Raises JobFailed if it failed or was cancelled, unless `check` is false.

        KeyboardInterrupt cancels the job, unless it was submitted with `detached=True`. A progress bar is shown after two
        seconds on a terminal or in a notebook; `progress=False` shows none. `on_progress` is called about twice a second.

        >>> client.jobs.submit(client.aggregate("item").agg(n=count())).wait(progress=False).state
        'done'
        """
        with Progress(self.id, progress) as bar:
            def report(members: Dict[str, Any]) -> None:
                job = job_info(members)
                bar.update(job.fraction_done, job.left)
                if on_progress is not None:
                    on_progress(job)

            try:
                ended = job_info(_core.job_wait(self._client._core, self.id, report))
            except (KeyboardInterrupt, Cancelled):  # Cancelled: of the task of an AsyncClient
                if not self._detached:
                    self.cancel()
                raise
        if check and ended.state != "done":
            raise JobFailed(f"{self.id} {ended.state}: {ended.error or 'it was ended'}", ended)
        return ended

    def results(self, *, wait: bool = True) -> Iterator[JobRow]:
        """Returns the results by rising key. Waits for the end of the job first, unless `wait` is false.

        >>> job = client.jobs.submit(application("citycount", "item", parameters={"field": "name"}))
        >>> [row.key for row in job.results()]
        ['tea']
        """
        if wait:
            self.wait()
        return self._results()

    def _results(self) -> Iterator[JobRow]:
        for key, value in self._texts():
            yield JobRow(key, json.loads(value))

    def _texts(self) -> Iterator[Tuple[str, str]]:
        rows = _core.JobRows(self._client._core, self.id)
        while True:
            some = rows.next()
            if not some:
                return
            yield from some

    def result(self) -> "Union[AggregateRows, JobTable]":
        """Waits for the end of the job and returns its rows as a table, with `.df()`, `.arrow()`, `.pl()` and `.fetchall()`: the
        columns of an aggregation, else "key" and "value".

        >>> client.jobs.submit(client.aggregate("item").group_by("name").agg(n=count())).result().fetchall()
        [('tea', 1)]
        """
        passes = self.wait().passes
        rows = list(self._texts())
        if not all(one.application == "aggregate" for one in passes):
            return JobTable(rows)
        specs = ", ".join(one.parameters["spec"] for one in passes)
        return AggregateRows(_core.result_of_job(self._client._core, f'{{"passes": [{specs}]}}', rows))

    def dead_letters(self) -> List[DeadLetter]:
        """Returns the documents that the map function failed on.

        >>> job = client.jobs.run(application("citycount", "item", parameters={"field": "name"}))
        >>> job.dead_letters()
        []
        """
        return [DeadLetter(*one) for one in _core.job_dead_letters(self._client._core, self.id)]

    def pause(self) -> None:
        """Ends the running tasks; resume() begins them again.

        >>> job = client.jobs.submit(client.aggregate("item").agg(n=count()))
        >>> try:
        ...     job.pause()
        ...     job.resume()
        ... except fjord.InvalidArgument:
        ...     pass  # The job has ended already.
        """
        _core.job_pause(self._client._core, self.id)

    def resume(self) -> None:
        """Lets a paused job go on.

        >>> job = client.jobs.submit(client.aggregate("item").agg(n=count()))
        >>> try:
        ...     job.pause()
        ...     job.resume()
        ... except fjord.InvalidArgument:
        ...     pass  # The job has ended already.
        """
        _core.job_resume(self._client._core, self.id)

    def set(self, /, **settings: Any) -> None:
        """Changes settings of the job, also while it runs.

        >>> job = client.jobs.submit(client.aggregate("item").agg(n=count()))
        >>> try:
        ...     job.set(priority="background")
        ... except fjord.InvalidArgument:
        ...     pass  # The job has ended already.
        """
        _core.job_set(self._client._core, self.id, _settings(settings))

    def cancel(self) -> None:
        """Ends the job.

        >>> job = client.jobs.submit(client.aggregate("item").agg(n=count()))
        >>> try:
        ...     job.cancel()
        ... except fjord.InvalidArgument:
        ...     pass  # The job has ended already.
        """
        _core.job_cancel(self._client._core, self.id)

    def remove(self) -> None:
        """Removes an ended job with its record and results.

        >>> client.jobs.run(client.aggregate("item").agg(n=count())).remove()
        """
        _core.job_remove(self._client._core, self.id)

    def remove_results(self) -> None:
        """Removes the results of an ended job, which stays in the list.

        >>> client.jobs.run(client.aggregate("item").agg(n=count())).remove_results()
        """
        _core.job_remove_results(self._client._core, self.id)

    def __repr__(self) -> str:
        return f"<fjord.Job {self.id}>"


class JobTable(ArrowStream):
    """The results of a job as a table, which can be read any number of times. Values of different kinds stay JSON text.

    >>> job = client.jobs.submit(application("citycount", "item", parameters={"field": "name"}))
    >>> job.result().fetchall()
    [('tea', 1)]
    """

    columns = ["key", "value"]

    def __init__(self, rows: Sequence[Tuple[str, str]]) -> None:
        self._rows = rows

    def fetchall(self) -> List[Tuple[Any, ...]]:
        """Returns the rows as tuples.

        >>> client.jobs.run(application("citycount", "item", parameters={"field": "name"})).result().fetchall()
        [('tea', 1)]
        """
        return [(key, json.loads(value)) for key, value in self._rows]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns a stream of one batch."""
        pyarrow = _pyarrow("a table of a job")
        keys = pyarrow.array([key for key, _ in self._rows], pyarrow.string())
        try:
            values = pyarrow.array([json.loads(value) for _, value in self._rows])
        except pyarrow.ArrowException:
            values = pyarrow.array([value for _, value in self._rows], pyarrow.string())
        return pyarrow.table({"key": keys, "value": values}).__arrow_c_stream__(requested_schema)


def _settings(settings: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    return {name: ("true" if value else "false") if isinstance(value, bool) else str(value)
            for name, value in mapping("settings", settings or {}).items()}


_PASS = "script(), application(), aggregation() or a relation"
Passes = Union[Pass, Relation, Sequence[Union[Pass, Relation]]]


class Jobs:
    """The jobs of a cluster, as `client.jobs`.

    >>> job = client.jobs.submit(application("citycount", "item", parameters={"field": "name"}))
    >>> job.wait().state
    'done'
    >>> job.id in [one.id for one in client.jobs.list()]
    True
    """

    def __init__(self, client: "Client") -> None:
        self._client = client

    def submit(self, passes: Passes, *,
               settings: Optional[Mapping[str, Any]] = None, incremental: bool = False,
               output_namespace: Optional[str] = None, output_buckets: Optional[int] = None,
               visitors_per_node: Optional[int] = None, detached: bool = False) -> Job:
        """Starts a job of one or more passes, each of which reads the rows of the one before.

        `settings` are limits: {"cpu_max": 2, "priority": "background"}. With `incremental`, the job reads only what changed since
        the last run of an equal job. With `detached`, KeyboardInterrupt in wait() leaves the job running.

        >>> client.jobs.submit(client.aggregate("item").agg(n=count()), settings={"priority": "background"}).wait().state
        'done'
        """
        passes = [passes] if isinstance(passes, (Pass, Relation)) else listed("passes", passes, f"{_PASS}, or a list of these")
        if not passes:
            raise InvalidArgument("passes: a job has at least one")
        request = fill(_core.JobRequest(), settings=_settings(settings), incremental=incremental,
                       output_namespace=output_namespace, output_buckets=output_buckets,
                       visitors_per_node=visitors_per_node)
        for index, one in enumerate(passes):
            if isinstance(one, Relation):
                one = aggregation(one)
            if not isinstance(one, Pass):
                raise WrongType(f"passes[{index}]", _PASS, one)
            request.add_pass(one._core())
        return Job(self._client, _core.job_submit(self._client._core, request), detached=detached)

    def run(self, passes: Passes, **options: Any) -> Job:
        """Starts a job and waits for its end. `options` are those of submit().

        >>> [row.value for row in client.jobs.run(client.aggregate("item").agg(n=count())).results()]
        [[1]]
        """
        job = self.submit(passes, **options)
        job.wait()
        return job

    def aggregate(self, where: Optional[str] = None, group_by: Sequence[str] = (),
                  aggs: Optional[Mapping[str, str]] = None, into: Optional[str] = None, *, type: str,
                  having: Optional[str] = None, order_by: Sequence[str] = (), limit: Optional[int] = None,
                  **options: Any) -> Job:
        """Starts an aggregation of the documents of a type as a job, which does not wait, unlike Client.aggregate(). `aggs` are
        the aggregates by the names of their columns. With `into`, each row is stored as a document of that type. `options` are
        those of submit().

        >>> job = client.jobs.aggregate("price > 1", group_by=["name"], aggs={"n": count()}, type="item")
        >>> job.result().df().to_dict("list")
        {'name': ['tea'], 'n': [1]}
        """
        relation = Relation(self._client, text("type", type)).group_by(*listed("group_by", group_by))
        relation = relation.agg(**mapping("aggs", aggs or {})).order_by(*listed("order_by", order_by))
        if where is not None:
            relation = relation.filter(where)
        if having is not None:
            relation = relation.having(having)
        if limit is not None:
            relation = relation.limit(limit)
        return self.submit(aggregation(relation, into=into), **options)

    def list(self) -> "List[JobInfo]":
        """Returns all jobs, oldest first.

        >>> job = client.jobs.run(client.aggregate("item").agg(n=count()))
        >>> client.jobs.list()[-1].id == job.id
        True
        """
        return [job_info(members) for members in _core.job_list(self._client._core)]

    def get(self, id: str) -> Job:
        """Returns a job by its id. Raises NotFound.

        >>> client.jobs.get(job.id).status().state
        'done'
        """
        found = Job(self._client, text("id", id))
        found.status()
        return found

    def __repr__(self) -> str:
        return f"<fjord.Jobs of {self._client!r}>"

