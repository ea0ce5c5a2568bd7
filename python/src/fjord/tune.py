"""The tuner: advice on settings, and changes that it can take back."""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _core
from .admin import _text


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


class Tune:
    """The tuner of a cluster, as `client.tune`.

    >>> change = client.tune.apply({"storage.visitors_max": "32"}, reason="a try")
    >>> change.values
    {'storage.visitors_max': ('', '32')}
    >>> client.tune.revert(change.id).values
    {'storage.visitors_max': ('32', '')}
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def plan(self, *, metrics: Sequence[str] = (), sample: float = 10.0, workload: Optional[str] = None,
             only: Sequence[str] = ()) -> TuningPlan:
        """Returns advice. `metrics` are addresses of the nodes' metrics, from which rates are measured for `sample` seconds.
        `workload` is the YAML text of another workload than the cluster's. `only` names the wanted settings.

        >>> plan = client.tune.plan()
        """
        members = _core.tuning_plan(self._client._core, list(metrics), float(sample), workload or "", list(only))
        return TuningPlan(**{**members, "changes": [PlannedChange(**change) for change in members["changes"]]})

    def apply(self, values: Mapping[str, Any], *, reason: str = "") -> AppliedTuning:
        """Changes live settings, all or none, as one change that revert() takes back."""
        texts = {name: _text(value) for name, value in values.items()}
        applied = AppliedTuning(**_core.tuning_apply(self._client._core, texts, reason))
        # The answer has the id; what the settings were before is in the history.
        return next((change for change in self.history() if change.id == applied.id), applied)

    def history(self) -> List[AppliedTuning]:
        """Returns the changes of the tuner and the reverts of them, oldest first.

        >>> [change.who for change in client.tune.history()][:0]
        []
        """
        return [AppliedTuning(**change) for change in _core.tuning_history(self._client._core)]

    def revert(self, id: str) -> AppliedTuning:
        """Gives the settings of a change their values of before."""
        return AppliedTuning(**_core.tuning_revert(self._client._core, id))

    def __repr__(self) -> str:
        return f"<fjord.Tune of {self._client!r}>"
