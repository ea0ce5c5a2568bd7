"""MapReduce jobs: submitted, watched, changed, and their results read."""

import json
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _core
from ._options import fill
from .aggregate import Relation
from .errors import Error, InvalidArgument, WrongType
from .progress import Progress


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

    def __init__(self, client: Any, id: str, *, detached: bool = False) -> None:
        self._client = client
        self.id = id
        self._detached = detached

    def status(self) -> JobInfo:
        """Returns what is known of the job."""
        return job_info(_core.job_status(self._client._core, self.id))

    def wait(self, *, progress: Optional[bool] = None, on_progress: Optional[Callable[[JobInfo], object]] = None,
             check: bool = True) -> JobInfo:
        """Waits until the job has ended. Raises JobFailed if it failed or was cancelled, unless `check` is false.

        KeyboardInterrupt cancels the job, unless it was submitted with `detached=True`. A progress bar is shown after two
        seconds on a terminal or in a notebook; `progress=False` shows none. `on_progress` is called about twice a second.
        """
        with Progress(self.id, progress) as bar:
            def report(members: Dict[str, Any]) -> None:
                job = job_info(members)
                bar.update(job.fraction_done, job.left)
                if on_progress is not None:
                    on_progress(job)

            try:
                ended = job_info(_core.job_wait(self._client._core, self.id, report, None))
            except KeyboardInterrupt:
                if not self._detached:
                    self.cancel()
                raise
        if check and ended.state != "done":
            raise JobFailed(f"{self.id} {ended.state}: {ended.error or 'it was ended'}", ended)
        return ended

    def results(self, *, wait: bool = True) -> Iterator[JobRow]:
        """Returns the results by rising key. Waits for the end of the job first, unless `wait` is false."""
        if wait:
            self.wait()
        return self._results()

    def _results(self) -> Iterator[JobRow]:
        rows = _core.JobRows(self._client._core, self.id)
        while True:
            some = rows.next()
            if not some:
                return
            for key, value in some:
                yield JobRow(key, json.loads(value))

    def dead_letters(self) -> List[DeadLetter]:
        """Returns the documents that the map function failed on."""
        return [DeadLetter(*one) for one in _core.job_dead_letters(self._client._core, self.id)]

    def pause(self) -> None:
        """Ends the running tasks; resume() begins them again."""
        _core.job_pause(self._client._core, self.id)

    def resume(self) -> None:
        """Lets a paused job go on."""
        _core.job_resume(self._client._core, self.id)

    def set(self, **settings: Any) -> None:
        """Changes settings of the job, also while it runs: `job.set(priority="background")`."""
        _core.job_set(self._client._core, self.id, _settings(settings))

    def cancel(self) -> None:
        """Ends the job."""
        _core.job_cancel(self._client._core, self.id)

    def remove(self) -> None:
        """Removes an ended job with its record and results."""
        _core.job_remove(self._client._core, self.id)

    def remove_results(self) -> None:
        """Removes the results of an ended job, which stays in the list."""
        _core.job_remove_results(self._client._core, self.id)

    def __repr__(self) -> str:
        return f"<fjord.Job {self.id}>"


def _settings(settings: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    return {name: ("true" if value else "false") if isinstance(value, bool) else str(value)
            for name, value in (settings or {}).items()}


class Jobs:
    """The jobs of a cluster, as `client.jobs`.

    >>> job = client.jobs.submit(application("citycount", "item", parameters={"field": "name"}))
    >>> job.wait().state
    'done'
    >>> job.id in [one.id for one in client.jobs.list()]
    True
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, passes: Union[Pass, Relation, Sequence[Union[Pass, Relation]]], *,
               settings: Optional[Mapping[str, Any]] = None, incremental: bool = False,
               output_namespace: Optional[str] = None, output_buckets: Optional[int] = None,
               visitors_per_node: Optional[int] = None, detached: bool = False) -> Job:
        """Starts a job of one or more passes, each of which reads the rows of the one before.

        `settings` are limits: {"cpu_max": 2, "priority": "background"}. With `incremental`, the job reads only what changed since
        the last run of an equal job. With `detached`, KeyboardInterrupt in wait() leaves the job running.
        """
        if isinstance(passes, (Pass, Relation)):
            passes = [passes]
        if not passes:
            raise InvalidArgument("passes: a job has at least one")
        request = fill(_core.JobRequest(), settings=_settings(settings), incremental=incremental,
                       output_namespace=output_namespace, output_buckets=output_buckets,
                       visitors_per_node=visitors_per_node)
        for index, one in enumerate(passes):
            if isinstance(one, Relation):
                one = aggregation(one)
            if not isinstance(one, Pass):
                raise WrongType(f"passes[{index}]", "script(), application(), aggregation() or a relation", one)
            request.add_pass(one._core())
        return Job(self._client, _core.job_submit(self._client._core, request), detached=detached)

    def run(self, passes: Union[Pass, Relation, Sequence[Union[Pass, Relation]]], **options: Any) -> Job:
        """Starts a job and waits for its end. `options` are those of submit().

        >>> [row.value for row in client.jobs.run(client.aggregate("item").agg(n=count())).results()]
        [[1]]
        """
        job = self.submit(passes, **options)
        job.wait()
        return job

    def list(self) -> List[JobInfo]:
        """Returns all jobs, oldest first."""
        return [job_info(members) for members in _core.job_list(self._client._core)]

    def get(self, id: str) -> Job:
        """Returns a job by its id. Raises NotFound.

        >>> client.jobs.get(job.id).status().state
        'done'
        """
        found = Job(self._client, id)
        found.status()
        return found

    def __repr__(self) -> str:
        return f"<fjord.Jobs of {self._client!r}>"

