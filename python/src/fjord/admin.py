"""Administration of a cluster: nodes, buckets, settings, schemas."""

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _core
from ._options import fill, listed, mapping, seconds, text, whole
from .errors import WrongType

if TYPE_CHECKING:
    from .balance import Balancing
    from .client import Client

Schema = Union[str, "PathLike[str]"]


class NodeInfo(NamedTuple):
    """A node of the cluster."""

    name: str
    """"storage.2"."""
    address: str
    state: str
    """"up", "down", "retired", "maintenance", ..."""
    reason: str
    wanted: str
    """The state that an operator has asked for; "": none."""
    group: str
    capacity: str
    slow: str
    """Why the node is marked as slow; "": it is not."""
    space: str
    buckets: int
    documents: int
    bytes: int
    state_version: int
    config_version: int
    answered_ago: Optional[float]
    """Seconds since its last answer; None: it never answered."""


class ClusterStatus(NamedTuple):
    """The state of the cluster as a whole."""

    health: str
    """"healthy", "degraded" or "unavailable"."""
    reasons: List[str]
    """Why it is not healthy."""
    notes: List[str]
    state_version: int
    schema_version: int
    config_version: int
    state: str
    distribution: str
    buckets: int
    buckets_in_sync: int
    buckets_out_of_sync: int
    buckets_unavailable: int
    buckets_damaged: int
    buckets_under_replicated: int
    nodes_without_space: int
    document_replicas: int
    bytes: int
    nodes: List[NodeInfo]


class ClusterState(NamedTuple):
    """The cluster state that is in force, and the one that will be."""

    state: str
    distribution: str
    pending_state: str
    waits_for: str
    leader: str
    term: int
    schema_version: int
    config_version: int


class HistoryEntry(NamedTuple):
    """A line of the cluster's history."""

    version: int
    unix_us: int
    active_unix_us: int
    what: str
    why: str
    who: str


class NodePlan(NamedTuple):
    """The effect of a change of nodes; of a dry run, the effect that it would have."""

    done: bool
    refusals: List[str]
    """Why the change is refused."""
    warnings: List[str]
    nodes: List[str]
    buckets_total: int
    buckets_moved: int
    bytes_moved: int
    duration_seconds: int
    notes: List[str]


class RecoveredState(NamedTuple):
    """What a fleet controller without records has rebuilt from the reports of the nodes."""

    done: bool
    refusals: List[str]
    """Why nothing was recovered; empty: something was, or with dry_run would be."""
    warnings: List[str]
    found: List[str]
    """What each node reported."""
    state: str
    distribution: str
    state_version: int
    next_version: int
    term: int
    schema_version: int
    schemas: int
    config_version: int
    settings: int


class PluginFunction(NamedTuple):
    """A function that plugins offer."""

    name: str
    kind: str
    """"application": for jobs; "visitor": for visits."""
    version: str
    help: str
    nodes: List[str]


class PluginProblem(NamedTuple):
    """A library that a node does not use, or a node that does not answer."""

    node: str
    library: str
    """"": the node does not answer."""
    problem: str


class Plugins(NamedTuple):
    """The plugins of all nodes."""

    functions: List[PluginFunction]
    problems: List[PluginProblem]
    storage_nodes: int
    """Number of nodes that answered."""
    distributors: int


class ReplicaInfo(NamedTuple):
    """A replica of a bucket."""

    node: str
    state: str
    is_member: bool
    is_damaged: bool
    error: Optional[str]
    documents: int
    entries: int
    bytes: int
    checksum: int
    newest_us: int
    document_version: Optional[int]
    """Of the document of bucket_of(); None: the replica does not have it."""


class BucketInfo(NamedTuple):
    """A bucket and its replicas."""

    bucket: str
    bits: int
    distributor: str
    state: str
    """"in sync", "out of sync", "too few replicas", "damaged", "lost" or "unavailable"."""
    reason: str
    replica_set: List[str]
    replicas: List[ReplicaInfo]


class UnhealthyBucket(NamedTuple):
    """A bucket that is not in sync."""

    bucket: str
    state: str
    reason: str
    members: List[str]
    damaged: List[str]
    catching_up: List[str]


class Setting(NamedTuple):
    """A live setting."""

    name: str
    type: str
    default: str
    min: str
    max: str
    value: str
    source: str
    live_value: str
    elsewhere: List[str]
    """Nodes with other values."""
    meaning: str


class SettingsVersion(NamedTuple):
    """One version of the live settings."""

    version: int
    unix_us: int
    who: str
    values: List[str]


class Settings(NamedTuple):
    """The live settings of the cluster and their history."""

    version: int
    settings: List[Setting]
    history: List[SettingsVersion]
    waiting: List[str]
    """Nodes that have not applied the version yet."""
    errors: List[str]

    def __getitem__(self, name: Any) -> Any:
        """Returns a setting by its name."""
        if not isinstance(name, str):
            return tuple.__getitem__(self, name)
        for setting in self.settings:
            if setting.name == name:
                return setting
        raise KeyError(name)


class SettingsChange(NamedTuple):
    """A change of live settings."""

    version: int
    changes: List[str]
    """"storage.visitors_max: default -> 64"."""


class DeployedSchemas(NamedTuple):
    """The result of deploy_schemas()."""

    version: int
    warnings: List[str]


class Admin:
    """Administration, as `client.admin`. The history of the cluster records each change with the user's name.

    >>> client.admin.status().health
    'healthy'
    """

    def __init__(self, client: "Client") -> None:
        self._client = client

    # --- The cluster and its nodes

    def status(self) -> ClusterStatus:
        """Returns the health of the cluster and its nodes.

        >>> [node.name for node in client.admin.status().nodes if node.state != "up"]
        []
        """
        members = _core.admin_status(self._client._core)
        return ClusterStatus(**{**members, "nodes": [NodeInfo(**node) for node in members["nodes"]]})

    def nodes(self) -> List[NodeInfo]:
        """Returns the nodes of the cluster.

        >>> len(client.admin.nodes()) > 1
        True
        """
        return self.status().nodes

    def state(self) -> ClusterState:
        """Returns the cluster state that is in force, and the next one.

        >>> client.admin.state().leader
        '127.0.0.1:...'
        """
        return ClusterState(**_core.admin_state(self._client._core))

    def history(self, max: int = 0) -> List[HistoryEntry]:
        """Returns the newest `max` entries of the history, oldest first; 0: all.

        >>> entries = client.admin.history(10)
        """
        return [HistoryEntry(**entry) for entry in _core.admin_history(self._client._core, whole("max", max))]

    def change_nodes(self, action: str, nodes: Sequence[str] = (), *, dry_run: bool = True, force: bool = False,
                     reason: Optional[str] = None, address: Optional[str] = None, group: Optional[str] = None,
                     capacity: Optional[str] = None, balance_to: Optional[str] = None, wait: Optional[float] = None,
                     on_progress: Optional[Callable[[Optional[float], int, float], object]] = None) -> NodePlan:
        """Plans a change of nodes, and makes it with `dry_run=False`. `action` is up, maintenance, retire, down, add, remove,
        replace, capacity, stop_check, balance or accept_loss. `force` makes a change although it is unsafe.

        With `wait`, it waits up to that many seconds until the change is in force and nothing is left to move, or raises
        DeadlineExceeded; the change goes on. `on_progress` is called with the part that is done, the number of buckets that are
        left and the estimated seconds, about twice a second.

        >>> client.admin.change_nodes("stop_check", ["storage.0"]).done
        False
        """
        change = fill(_core.NodeChange(), action=action, nodes=listed("nodes", nodes), dry_run=dry_run, force=force, reason=reason,
                      address=address, group=group, capacity=capacity, balance_to=balance_to)
        limit = None if wait is None else seconds(wait, "wait")
        return NodePlan(**_core.admin_change_nodes(self._client._core, change, limit, on_progress))

    def recover_state(self, *, dry_run: bool = True, force: bool = False, controller: Optional[str] = None) -> RecoveredState:
        """Rebuilds the records of a fleet controller that has lost them (docs/operating/controllers.md), with
        `dry_run=False`. `force` does it although some nodes do not answer. `controller` is its address.

        >>> try:
        ...     client.admin.recover_state()
        ... except fjord.InvalidArgument as error:
        ...     print(error)
        127.0.0.1:... has its records, with cluster state ...: there is nothing to recover
        """
        options = fill(_core.RecoverOptions(), dry_run=dry_run, force=force, controller=controller)
        return RecoveredState(**_core.admin_recover_state(self._client._core, options))

    def plugins(self) -> Plugins:
        """Asks all nodes for the plugins that they use.

        >>> client.admin.plugins().problems
        []
        """
        members = _core.admin_plugins(self._client._core)
        return Plugins(**{**members, "functions": [PluginFunction(**one) for one in members["functions"]],
                          "problems": [PluginProblem(**one) for one in members["problems"]]})

    @property
    def balancing(self) -> "Balancing":
        """The balancer, which moves buckets between storage nodes by load (docs/operating/balancing.md).

        >>> client.admin.balancing.status().mode
        'advise'
        """
        from .balance import Balancing
        return Balancing(self._client)

    # --- Buckets

    def bucket_of(self, id: str) -> List[BucketInfo]:
        """Returns the bucket of a document, with each replica's version of it.

        >>> [bucket.state for bucket in client.admin.bucket_of("id:shop:item::1")]
        ['in sync']
        """
        return _buckets(_core.admin_bucket_of(self._client._core, text("id", id)))

    def bucket(self, name: str) -> List[BucketInfo]:
        """Returns a bucket by its name, its parts, or the bucket that contains it.

        >>> name = client.admin.bucket_of("id:shop:item::1")[0].bucket
        >>> client.admin.bucket(name)[0].bucket == name
        True
        """
        return _buckets(_core.admin_bucket(self._client._core, text("name", name)))

    def unhealthy_buckets(self, max: int = 100) -> List[UnhealthyBucket]:
        """Returns buckets that are not in sync, the worst first.

        >>> client.admin.unhealthy_buckets()
        []
        """
        return [UnhealthyBucket(**bucket) for bucket in _core.admin_unhealthy_buckets(self._client._core, whole("max", max))]

    def lost_buckets(self) -> List[UnhealthyBucket]:
        """Returns the buckets of which all replicas have lost entries.

        >>> client.admin.lost_buckets()
        []
        """
        return [UnhealthyBucket(**bucket) for bucket in _core.admin_lost_buckets(self._client._core)]

    def accept_loss(self, buckets: Sequence[str], *, timeout: float = 60.0) -> None:
        """Declares for lost buckets, by name, that what is left is all there is, and waits until they are served again.
        Documents that they have lost do not exist from then on. NotFound is raised for a bucket that is not lost.

        >>> client.admin.accept_loss([lost.bucket for lost in client.admin.lost_buckets()])
        """
        names = [text("buckets", name) for name in listed("buckets", buckets)]
        _core.admin_accept_loss(self._client._core, names, seconds(timeout))

    # --- Settings

    def settings(self) -> Settings:
        """Returns the live settings and their history.

        >>> client.admin.settings()["storage.visitors_max"].type
        'integer'
        """
        members = _core.admin_configuration(self._client._core)
        return Settings(**{**members, "settings": [Setting(**one) for one in members["settings"]],
                           "history": [SettingsVersion(**one) for one in members["history"]]})

    def set(self, values: Mapping[str, Any], *, dry_run: bool = False, if_version: Optional[int] = None,
            reason: Optional[str] = None) -> SettingsChange:
        """Changes live settings, all or none; None or "" restores a default. With `if_version`, ConditionFailed is raised if
        another change came between. An InvalidArgument has `setting` and `limit`.

        >>> client.admin.set({"storage.visitors_max": 64}, reason="more visits").changes
        ['storage.visitors_max: default -> 64']
        >>> client.admin.set({"storage.visitors_max": None}).changes
        ['storage.visitors_max: 64 -> default']
        """
        texts: Dict[str, str] = {name: _text(value) for name, value in mapping("values", values).items()}
        options = fill(_core.SetOptions(), dry_run=dry_run, if_version=if_version, reason=reason)
        return SettingsChange(**_core.admin_set(self._client._core, texts, options))

    def revert(self, to_version: int = 0, *, dry_run: bool = False, reason: Optional[str] = None) -> SettingsChange:
        """Restores the settings of an earlier version; 0: those before the last change.

        >>> change = client.admin.set({"storage.visitors_max": 64})
        >>> client.admin.revert().changes
        ['storage.visitors_max: 64 -> default']
        """
        options = fill(_core.SetOptions(), dry_run=dry_run, reason=reason)
        return SettingsChange(**_core.admin_revert(self._client._core, whole("to_version", to_version), options))

    # --- Schemas

    def deploy_schemas(self, schemas: Union[Schema, Sequence[Schema]], *, may_drop: Sequence[str] = ()) -> DeployedSchemas:
        """Adds or replaces document types: texts, or paths of .sd files. InvalidArgument is raised if stored documents would lose
        a field that `may_drop` ("song.title") does not name.

        >>> client.admin.deploy_schemas("document pet { field name type string {} }").warnings
        []
        """
        several = [schemas] if isinstance(schemas, (str, PathLike)) else listed("schemas", schemas, "the text or path of a schema, or a list of these")
        texts = [_schema_text(schema) for schema in several]
        drops = [text("may_drop", name) for name in listed("may_drop", may_drop)]
        return DeployedSchemas(**_core.admin_deploy_schemas(self._client._core, texts, drops))

    def schemas(self) -> List[str]:
        """Returns the texts of the deployed schemas.

        >>> any("document item" in text for text in client.admin.schemas())
        True
        """
        return _core.admin_schemas(self._client._core)

    def __repr__(self) -> str:
        return f"<fjord.Admin of {self._client!r}>"


def _buckets(buckets: Sequence[Dict[str, Any]]) -> List[BucketInfo]:
    return [BucketInfo(**{**one, "replicas": [ReplicaInfo(**replica) for replica in one["replicas"]]}) for one in buckets]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _schema_text(schema: Schema) -> str:
    if isinstance(schema, str) and "{" in schema:
        return schema
    if not isinstance(schema, (str, PathLike)):
        raise WrongType("schemas", "the text or path of a schema", schema)
    return Path(fspath(schema)).read_text(encoding="utf-8")
