"""Balancing by load: what the storage nodes are asked to do, and plans that move buckets."""

from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional

from . import _core
from ._options import text, whole
from .errors import WrongType

if TYPE_CHECKING:
    from .client import Client


class BucketMove(NamedTuple):
    """The move of a replica from node to node, or of a part of a bucket's reads."""

    bucket: int
    source: str
    """"storage.4"."""
    target: str
    bytes: int
    load: float
    """The load that leaves `source`."""
    reason: str
    read_part: float
    """The part of all reads of the bucket that goes to `target`; 0: the replica moves."""


class BalancePlan(NamedTuple):
    """What is about to move."""

    state_version: int
    """The only cluster state in which the plan can be applied."""
    algorithm: str
    moves: List[BucketMove]
    bytes: int
    duration: float
    """Estimated seconds that the moves take."""
    imbalance_before: float
    """The load of the hottest node over the mean of all nodes."""
    imbalance_after: float
    rows: int
    notes: List[str]
    refusals: List[str]
    """Why nothing can be moved now; empty: moves are possible."""
    native: _core.BalancePlan
    """The plan as apply() needs it."""


class NodeLoad(NamedTuple):
    """What a storage node is asked to do."""

    node: str
    load: float
    over_mean: float
    reads_per_s: int
    writes_per_s: int
    bytes: int
    note: str
    """Why no replica may be moved to the node; "": it may."""


class BucketLoad(NamedTuple):
    """What a bucket is asked for."""

    bucket: int
    load: float
    reads_per_s: int
    writes_per_s: int
    bytes: int
    nodes: List[str]
    why_not: str
    """Why the bucket is not about to move; "": it is."""


class BalanceStatus(NamedTuple):
    """The loads of the last round, and what the balancer does."""

    mode: str
    """"off", "advise" or "on"."""
    algorithm: str
    unit: str
    """Of loads: "processor share" or "operations per second"."""
    imbalance: float
    """0: not known."""
    doing: str
    waits_for: List[str]
    state_version: int
    distribution_bits: int
    rows: int
    rows_max: int
    round: int
    round_time: float
    round_age: Optional[float]
    """Seconds since the last round; None: there was none."""
    moves_left: float
    nodes: List[NodeLoad]
    buckets: List[BucketLoad]
    """Hottest first."""


class BalanceStep(NamedTuple):
    """A change of the table of overrides."""

    step: int
    kind: str
    """"load", "bytes" or "revert"."""
    unix_us: int
    state_version: int
    moves: List[BucketMove]
    bytes: int
    rows_removed: int
    rows_added: int
    imbalance_before: float
    imbalance_after: float
    who: str
    why: str
    reverts: int


class Balancing:
    """The balancer of a cluster, as `client.admin.balancing`. Its settings, `balancer.*`, are set with Admin.set().

    >>> client.admin.balancing.status(buckets=3).algorithm
    'descent'
    """

    def __init__(self, client: "Client") -> None:
        self._client = client

    def status(self, buckets: int = 10) -> BalanceStatus:
        """Returns the loads of all nodes and of the hottest `buckets` buckets; 0: of all.

        >>> client.admin.balancing.status(buckets=3).mode
        'advise'
        """
        members = _core.balance_status(self._client._core, whole("buckets", buckets))
        return BalanceStatus(**{**members, "nodes": [NodeLoad(**node) for node in members["nodes"]],
                                "buckets": [BucketLoad(**bucket) for bucket in members["buckets"]]})

    def plan(self, algorithm: Optional[str] = None) -> BalancePlan:
        """Plans a step by the loads of the last round. InvalidArgument is raised in the mode "off", Unavailable while loads are
        not known.

        >>> try:
        ...     plan = client.admin.balancing.plan()
        ... except fjord.Unavailable:
        ...     pass  # The first round has not ended.
        """
        return _plan(_core.balance_plan(self._client._core, text("algorithm", algorithm or "")))

    def apply(self, plan: BalancePlan, *, reason: str = "") -> List[str]:
        """Carries out a plan. Returns the reasons against it; []: it is carried out. ConditionFailed is raised if the cluster
        state is not the one of the plan.

        >>> try:
        ...     reasons = client.admin.balancing.apply(client.admin.balancing.plan())
        ... except (fjord.Unavailable, fjord.ConditionFailed):
        ...     pass  # The first round has not ended, or was in another cluster state.
        """
        if not isinstance(plan, BalancePlan):
            raise WrongType("plan", "a BalancePlan of plan()", plan)
        return _core.balance_apply(self._client._core, plan.native, text("reason", reason))

    def history(self) -> List[BalanceStep]:
        """Returns the steps that are kept, oldest first.

        >>> client.admin.balancing.history()
        []
        """
        return [BalanceStep(**{**step, "moves": _moves(step)}) for step in _core.balance_history(self._client._core)]

    def revert(self, step: int, *, dry_run: bool = True, reason: str = "") -> BalancePlan:
        """Makes the placement what it was before a step, with `dry_run=False`. Returns what moves.

        >>> for step in client.admin.balancing.history()[-1:]:
        ...     client.admin.balancing.revert(step.step)
        """
        return _plan(_core.balance_revert(self._client._core, whole("step", step), bool(dry_run), text("reason", reason)))

    def __repr__(self) -> str:
        return f"<fjord.Balancing of {self._client!r}>"


def _moves(members: Dict[str, Any]) -> List[BucketMove]:
    return [BucketMove(**move) for move in members["moves"]]


def _plan(members: Dict[str, Any]) -> BalancePlan:
    return BalancePlan(**{**members, "moves": _moves(members)})
