"""The iterators of Client."""

import time
from typing import Dict, Generic, Iterator, Optional, TypeVar, cast

from . import _core
from .documents import Change

Row = TypeVar("Row")


class Visit(Generic[Row]):
    """The documents that a selection matches, from Client.visit().

    >>> for document in client.visit("item.price > 2"):
    ...     print(document["name"])
    tea

    The storage nodes read ahead into a bounded buffer, and stop while it is full. The end of the iterator, close() and the end of
    a `with` block end their work.
    """

    def __init__(self, core: _core.Visit) -> None:
        self._core = core
        self._started = time.monotonic()

    def __iter__(self) -> Iterator[Row]:
        return cast("Iterator[Row]", self._core)

    def __next__(self) -> Row:
        row: Row = next(self._core)
        return row

    def __enter__(self) -> "Visit[Row]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the visit and the work of the storage nodes.

        >>> visit = client.visit(type="item")
        >>> visit.close()
        """
        self._core.stop()

    @property
    def cursor(self) -> str:
        """A text that says which documents were given. A visit with `resume=` this text gives the others.

        >>> visit = client.visit(type="item")
        >>> first = next(visit)
        >>> rest = list(client.visit(type="item", resume=visit.cursor))
        """
        return self._core.cursor

    @property
    def progress(self) -> Optional[float]:
        """The part of the buckets that were read, from 0 to 1; None: not known yet.

        >>> visit = client.visit(type="item")
        >>> names = [document["name"] for document in visit]
        >>> visit.progress
        1.0
        """
        return self._core.fraction_done

    @property
    def eta(self) -> Optional[float]:
        """Seconds that the rest may take; None: not known yet.

        >>> visit = client.visit(type="item")
        >>> names = [document["name"] for document in visit]
        >>> visit.eta
        0.0
        """
        return seconds_left(self._started, self._core.fraction_done)

    @property
    def statistics(self) -> Dict[str, int]:
        """Counts of buckets, documents and bytes that were read.

        >>> visit = client.visit("item.price > 2")
        >>> names = [document["name"] for document in visit]
        >>> visit.statistics["documents_matched"]
        1
        """
        return self._core.statistics

    def __repr__(self) -> str:
        done = self.progress
        return f"<fjord.Visit, {'not begun' if done is None else f'{done:.0%} of the buckets read'}>"


def seconds_left(started: float, done: Optional[float]) -> Optional[float]:
    """Returns the seconds that the rest of some work may take, which began at `started` and is `done` so far, 0 to 1."""
    return None if not done else (time.monotonic() - started) * (1 - done) / done


class Subscription:
    """The changes of documents, from Client.subscribe().

    >>> with client.subscribe("item.price > 2") as changes:
    ...     for change in changes:
    ...         if change.kind == "caught_up":
    ...             break
    """

    def __init__(self, core: _core.Subscription) -> None:
        self._core = core

    def __iter__(self) -> "Subscription":
        return self

    def __next__(self) -> Change:
        change = self._core.next(None)
        assert change is not None
        return change

    def next(self, timeout: float) -> Optional[Change]:
        """Returns the next change; None if there is none within `timeout` seconds.

        >>> changes = client.subscribe(type="item")
        >>> change = changes.next(timeout=5)
        """
        return self._core.next(timeout)

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the subscription.

        >>> changes = client.subscribe(type="item")
        >>> changes.close()
        """
        self._core.stop()

    @property
    def cursor(self) -> str:
        """A text that says which changes were given. A subscription with `resume=` this text goes on behind them.

        >>> changes = client.subscribe(type="item")
        >>> first = next(changes)
        >>> later = client.subscribe(type="item", resume=changes.cursor)
        """
        return self._core.cursor
