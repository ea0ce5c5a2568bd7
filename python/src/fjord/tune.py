"""The tuner: advice on settings, and changes that it can take back."""

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _core
from ._options import fill, listed, mapping, seconds, text
from .admin import _text

if TYPE_CHECKING:
    from .client import Client


class PlannedChange(NamedTuple):
    """A piece of advice."""

    setting: str
    old: str
    new: str
    reason: str
    effect: str
    may_be_applied: bool
    why_not: str
    moved_bytes: float


class TuningPlan(NamedTuple):
    """Advice on several settings."""

    changes: List[PlannedChange]
    values: Dict[str, str]
    """The permitted changes, for apply()."""
    moved_bytes: float
    seconds: float


class AppliedTuning(NamedTuple):
    """A change that the tuner has made, or a revert of one: `id` is then that of the change."""

    id: str
    version: int
    unix_us: int
    who: str
    values: Dict[str, Tuple[str, str]]
    """For each setting its values before and after; "": the default."""
    is_revert: bool = False


class TuningEvent(NamedTuple):
    """Something that happened during apply_and_watch() or run()."""

    event: str
    """"started", "advice", "changed", "kept", "taken back", "failed", ..."""
    loop: str
    """The controller; "": none."""
    setting: str
    old: Optional[str]
    new: Optional[str]
    id: str
    """Of the change, for revert()."""
    version: int
    """The new version of the settings; 0: unchanged."""
    text: str


_LOOPS = ("visitors", "maintenance", "split", "entries", "cache")


def _texts(values: Mapping[str, Any]) -> Dict[str, str]:
    return {name: _text(value) for name, value in mapping("values", values).items()}


def _to_event(on_event: Optional[Callable[[TuningEvent], object]]) -> Optional[Callable[[Dict[str, Any]], object]]:
    return None if on_event is None else lambda members: on_event(TuningEvent(**members))


class Tune:
    """The tuner of a cluster, as `client.tune`.

    >>> change = client.tune.apply({"storage.visitors_max": "32"}, reason="a try")
    >>> change.values
    {'storage.visitors_max': ('', '32')}
    >>> client.tune.revert(change.id).values
    {'storage.visitors_max': ('32', '')}
    """

    def __init__(self, client: "Client") -> None:
        self._client = client

    def plan(self, *, metrics: Sequence[str] = (), sample: float = 10.0, workload: Optional[str] = None,
             only: Sequence[str] = ()) -> TuningPlan:
        """Returns advice. `metrics` are addresses of the nodes' metrics, from which rates are measured for `sample` seconds.
        `workload` is the YAML text of another workload than the cluster's. `only` names the wanted settings.

        >>> plan = client.tune.plan()
        """
        members = _core.tuning_plan(self._client._core, listed("metrics", metrics), seconds(sample, "sample"),
                                    text("workload", workload or ""), listed("only", only))
        return TuningPlan(**{**members, "changes": [PlannedChange(**change) for change in members["changes"]]})

    def apply(self, values: Mapping[str, Any], *, reason: str = "") -> AppliedTuning:
        """Changes live settings, all or none, as one change that revert() takes back.

        >>> change = client.tune.apply({"storage.visitors_max": 32}, reason="a try")
        >>> client.tune.revert(change.id).is_revert
        True
        """
        applied = AppliedTuning(**_core.tuning_apply(self._client._core, _texts(values), text("reason", reason)))
        # The answer has the id; what the settings were before is in the history.
        return next((change for change in self.history() if change.id == applied.id), applied)

    def apply_and_watch(self, values: Mapping[str, Any], *, metrics: Sequence[str], reason: str = "", period: float = 10.0,
                        target: float = 0.02, scan_share: float = 0.2,
                        on_event: Optional[Callable[[TuningEvent], object]] = None) -> str:
        """Observes the cluster for some periods, makes the change, observes again, and takes it back if the objective gets worse.

        Returns "kept", "taken back", "unknown" (too few operations to judge it; it stays), "left" (another client has changed a
        setting again) or "not made" (too few operations before). `metrics` are addresses of the nodes' metrics, `period` is in
        seconds, `target` the wanted p99 of reads and writes in seconds, `scan_share` the weight of visits from 0 to 1. After an
        exception, such as KeyboardInterrupt, the observation goes on without the caller.

        >>> client.tune.apply_and_watch({"storage.visitors_max": 32}, metrics=metrics, period=0.2)
        'not made'
        """
        options = fill(_core.TuningWatchOptions(), metrics=listed("metrics", metrics), period=seconds(period, "period"), target=target,
                       scan_share=scan_share)
        return _core.tuning_apply_and_watch(self._client._core, _texts(values), text("reason", reason), options, _to_event(on_event))

    def run(self, *, metrics: Sequence[str], controllers: Optional[Mapping[str, str]] = None, period: float = 10.0,
            periods: int = 0, target: float = 0.02, on_event: Optional[Callable[[TuningEvent], object]] = None) -> None:
        """Reads the metrics in each period and changes settings, until KeyboardInterrupt or for `periods` periods.

        `controllers` gives a mode, "off", "advise" or "on", to "visitors", "maintenance", "split", "entries" and "cache"; without it,
        all advise. `on_event` is called for each piece of advice and each change. Only one run per cluster.

        >>> client.tune.run(metrics=metrics, periods=1, period=0.2, on_event=lambda event: None)
        """
        modes = dict.fromkeys(_LOOPS, "advise") if controllers is None else dict(mapping("controllers", controllers))
        options = fill(_core.AutoTuneOptions(), metrics=listed("metrics", metrics), controllers=modes, period=seconds(period, "period"),
                       periods=periods, target=target)
        _core.tuning_run(self._client._core, options, _to_event(on_event))

    def history(self) -> List[AppliedTuning]:
        """Returns the changes of the tuner and the reverts of them, oldest first.

        >>> [change.who for change in client.tune.history()][:0]
        []
        """
        return [AppliedTuning(**change) for change in _core.tuning_history(self._client._core)]

    def revert(self, id: str) -> AppliedTuning:
        """Gives the settings of a change their values of before.

        >>> change = client.tune.apply({"storage.visitors_max": 32})
        >>> client.tune.revert(change.id).values
        {'storage.visitors_max': ('32', '')}
        """
        return AppliedTuning(**_core.tuning_revert(self._client._core, text("id", id)))

    def __repr__(self) -> str:
        return f"<fjord.Tune of {self._client!r}>"
