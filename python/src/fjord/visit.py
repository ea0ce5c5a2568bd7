"""The iterators of Client."""

import time
from typing import Any, Dict, Iterator, Optional

from . import _core
from .documents import Change


class Visit:
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

    def __iter__(self) -> Iterator[Any]:
        return iter(self._core)

    def __next__(self) -> Any:
        return next(self._core)

    def __enter__(self) -> "Visit":
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
        """The part of the buckets that were read, from 0 to 1; None: not known yet."""
        return self._core.fraction_done

    @property
    def eta(self) -> Optional[float]:
        """Seconds that the rest may take; None: not known yet."""
        done = self._core.fraction_done
        return None if not done else (time.monotonic() - self._started) * (1 - done) / done

    @property
    def statistics(self) -> Dict[str, int]:
        """Counts of buckets, documents and bytes that were read."""
        return self._core.statistics

    def __repr__(self) -> str:
        done = self.progress
        return f"<fjord.Visit, {'not begun' if done is None else f'{done:.0%} of the buckets read'}>"


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
