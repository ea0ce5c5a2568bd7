"""The exceptions of this package.

    Error
      Transient                   the cluster could not serve the operation now; it was not applied
        Throttled                 too much to do
        Unavailable, NotReady
      DeadlineExceeded            also a TimeoutError
      InDoubt                     a write was sent and may have been applied; repeat it with its key
      InvalidRequest              also a ValueError; a retry gives the same answer
        InvalidId, UnknownType, InvalidField, InvalidSelection, InvalidArgument, TooLarge
          WrongType               an InvalidField and a TypeError
      ConditionFailed             the stored document is not as the condition asks
      NotFound                    also a LookupError
      AlreadyExists
      NoSpace                     a node is full
      Unauthorized
      Corruption, IoError, Cancelled, NotImplementedByServer
      ClientClosed, ForkedProcess

    >>> try:
    ...     client.get("id:shop:item::9")
    ... except fjord.NotFound as error:
    ...     print(error.code)
    NOT_FOUND
"""

from typing import Any, Dict, Mapping, Optional, Tuple, Type


class Error(Exception):
    """The base of all exceptions of this package.

    An attribute is None if it is not known.

    >>> try:
    ...     client.put("id:shop:item::1", {"price": "much"})
    ... except fjord.Error as error:
    ...     print(error)
    price: expected int (int), got str 'much'
    """

    code: str = "UNKNOWN"
    message: str
    node: Optional[str] = None
    """The node that reported the error or did not answer: "storage.2"."""
    limit: Optional[str] = None
    """The limit that was exceeded, or the permitted values: "67108864", "1 to 256"."""
    setting: Optional[str] = None
    """The setting that is wrong or sets the limit."""
    idempotency_key: Optional[str] = None
    """Of a write in doubt: the key to repeat it with."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> Tuple[Any, ...]:
        # Pools of processes send exceptions; a subclass may take other arguments than the message.
        return _restored, (type(self), self.args, self.__dict__)


class Transient(Error):
    """The cluster could not serve the operation within its timeout, and did not apply it. A later try may succeed."""


class Throttled(Transient):
    """The cluster has too much to do."""

    code = "BUSY"


class Unavailable(Transient):
    """No replica of the document's bucket is up."""

    code = "UNAVAILABLE"


class NotReady(Transient):
    """No distributor answered; the message names each address and why."""

    code = "NOT_READY"


class DeadlineExceeded(Error, TimeoutError):
    """The operation did not end within its timeout."""

    code = "TIMEOUT"


class InDoubt(Error):
    """A write was sent and no answer came: it may have been applied.

    Repeat it with `idempotency_key=error.token`. Both attempts together apply it once at most.

    >>> key = ""
    >>> while True:
    ...     try:
    ...         client.update("id:shop:item::1", {"price": {"increment": 1}}, idempotency_key=key)
    ...         break
    ...     except fjord.InDoubt as error:
    ...         key = error.token
    Written(version=..., existed=True)
    """

    code = "TIMEOUT"

    @property
    def token(self) -> str:
        """The key to repeat the write with."""
        return self.idempotency_key or ""


class InvalidRequest(Error, ValueError):
    """The request is wrong; a retry gives the same answer."""

    code = "INVALID_ARGUMENT"


class InvalidArgument(InvalidRequest):
    """An argument is wrong."""


class InvalidId(InvalidRequest):
    """The text is not a document id."""

    code = "INVALID_ID"


class UnknownType(InvalidRequest):
    """The cluster has no such document type."""

    code = "UNKNOWN_TYPE"


class InvalidField(InvalidRequest):
    """There is no such field, or its value does not fit."""

    code = "INVALID_FIELD"


class InvalidSelection(InvalidRequest):
    """The condition or selection is malformed."""

    code = "INVALID_SELECTION"


class TooLarge(InvalidRequest):
    """The document or request exceeds a limit."""

    code = "TOO_LARGE"


class WrongType(InvalidField, TypeError):
    """A value of Python has a type that does not fit.

    >>> try:
    ...     client.put("id:shop:item::1", {"tags": ["a", 3]})
    ... except fjord.WrongType as error:
    ...     print(error.field, "|", error.expected, "|", error.got)
    tags[1] | str | int 3
    """

    field: str
    """The place of the value: "credits[0].name"."""
    expected: str
    got: str

    def __init__(self, field: str, expected: str, value: Any) -> None:
        shown = repr(value)
        self.field = field
        self.expected = expected
        self.got = f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '...'}"
        super().__init__(f"{field}: expected {expected}, got {self.got}")


class ConditionFailed(Error):
    """The stored document is not as `condition` or `required_version` asks."""

    code = "TEST_AND_SET_FAILED"
    current_version: int = 0
    """The version of the stored document; 0: there is none."""


class NotFound(Error, LookupError):
    """There is no such document."""

    code = "NOT_FOUND"


class AlreadyExists(Error):
    """What was to be made is there."""

    code = "ALREADY_EXISTS"


class NoSpace(Error):
    """A node has reached the limit of its disk. `node`, `limit` and `setting` say which."""

    code = "NO_SPACE"


class Unauthorized(Error):
    """The client may not do this."""

    code = "UNAUTHORIZED"


class Corruption(Error):
    """Stored bytes are damaged."""

    code = "CORRUPTION"


class IoError(Error):
    """The operating system reported an error."""

    code = "IO_ERROR"


class Cancelled(Error):
    """The call was stopped."""

    code = "CANCELLED"


class NotImplementedByServer(Error):
    """The cluster runs a version that does not support this."""

    code = "NOT_IMPLEMENTED"


class ClientClosed(Error):
    """The client was closed."""

    code = "CANCELLED"


class ForkedProcess(Error):
    """The client was connected before a fork, and its threads are in the other process. Make a client after the fork."""

    code = "INVALID_ARGUMENT"


_BY_CODE: Dict[str, Type[Error]] = {
    one.code: one
    for one in (Throttled, Unavailable, NotReady, DeadlineExceeded, InvalidArgument, InvalidId, UnknownType, InvalidField,
                InvalidSelection, TooLarge, ConditionFailed, NotFound, AlreadyExists, NoSpace, Unauthorized, Corruption, IoError,
                Cancelled, NotImplementedByServer)
}
_BY_CODE["WRONG_DISTRIBUTION"] = Transient


def _make(code: str, message: str, node: Optional[str], limit: Optional[str], setting: Optional[str], key: Optional[str],
          in_doubt: bool, current_version: Optional[int]) -> Error:
    """Returns the exception for an error of the C++ library."""
    error = (InDoubt if in_doubt else _BY_CODE.get(code, Error))(message)
    error.code = code
    error.node, error.limit, error.setting, error.idempotency_key = node, limit, setting, key
    if isinstance(error, ConditionFailed):
        error.current_version = current_version or 0
    return error


def _restored(kind: Type[Error], arguments: Tuple[Any, ...], members: Mapping[str, Any]) -> Error:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(members)
    return error


def _make_wrong_type(field: str, expected: str, value: Any) -> WrongType:
    return WrongType(field, expected, value)
