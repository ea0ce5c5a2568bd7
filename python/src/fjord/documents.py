"""What the methods of clients return."""

from typing import Any, Dict, List, NamedTuple, Optional

from .errors import Error


class Document(Dict[str, Any]):
    """A document: a dict of the fields that are set, with its id and version.

    >>> document = client.get("id:shop:item::1")
    >>> document["name"], document.id
    ('tea', 'id:shop:item::1')
    """

    __slots__ = ("id", "version")

    id: str
    version: int
    """The time of its write in microseconds since 1970, which names this version."""

    def __repr__(self) -> str:
        return f"Document({self.id!r}, {dict.__repr__(self)})"


class Removed(NamedTuple):
    """The record of a removed document, of a visit with include_removed."""

    id: str
    version: int


class RetryPolicy(NamedTuple):
    """How a client repeats operations that failed for a reason that may pass. Times are in seconds.

    The pause before the n-th retry is drawn from the upper half of `backoff_min * 2 ** (n - 1)`, at most `backoff_max`. The
    budget is that of the whole client. It limits retries after BUSY and after lost answers, so that clients do not add to an
    overload; an operation that would exceed it ends with the result of its last attempt.

    >>> client = fjord.Client(retry=fjord.RetryPolicy(attempt_timeout=0.5, backoff_max=10))
    """

    attempt_timeout: float = 5.0
    """Time limit of one attempt; after it a write counts as in doubt and is repeated with its idempotency key."""
    backoff_min: float = 0.005
    backoff_max: float = 1.0
    budget_percent: int = 20
    """Retries as a part of all operations."""
    budget_per_second: int = 10
    """Retries in addition to that."""
    budget_burst: int = 2048
    """Retries at once after a time without any."""


class Written(NamedTuple):
    """The result of a write that was applied."""

    version: int
    """The version of the written document."""
    existed: bool
    """Whether there was a document before."""


class Change(NamedTuple):
    """An event of a subscription."""

    kind: str
    """"put", "remove", "caught_up", or "resync" as the last: changes were forgotten, so discard all data and begin again."""
    id: Optional[str]
    """Of a put or remove."""
    version: int
    document: Optional[Document]
    """Of a put."""


class FeedResult(NamedTuple):
    """What became of one row of a feed."""

    row: int
    """The number of the row, from 0."""
    id: Optional[str]
    """None if the row has none."""
    version: Optional[int]
    """The version of the written document; None if it was not written."""
    error: Optional[Error]


class FeedStats(NamedTuple):
    """The totals of a feed."""

    ok: int
    failed: int
    """Rows that were not written, for sure."""
    in_doubt: int
    """Rows that were sent and may have been written."""
    retried: int
    bytes: int
    seconds: float
    p50: float
    """Latency of a write in seconds, retries included."""
    p99: float
    docs_s: float
    """Rows written in a second."""
    failed_by_code: Dict[str, int]
    errors: List[FeedResult]
    """The first 100 rows that failed."""


class BulkSummary(NamedTuple):
    """The result of update_where() and remove_where()."""

    has_more: bool
    """The time limit ended the run before the last document; `cursor` continues it."""
    matched: int
    applied: int
    skipped: int
    """Documents that did not match any more when the write arrived."""
    in_doubt: int
    failed: int
    failed_by_code: Dict[str, int]
    seconds: float
    cursor: str


class ExportSummary(NamedTuple):
    """The result of export()."""

    documents: int
    bytes: int
    seconds: float


class ImportSummary(NamedTuple):
    """The result of import_file()."""

    stored: int
    failed: int
    failed_by_code: Dict[str, int]
    in_doubt: int
    retried: int
    bytes: int
    seconds: float
    p50: float
    p99: float
    replaced: int
    """Documents among the stored ones that existed before."""
    existing: int
    """With create_only: documents that existed and were left as they are."""
