"""A progress bar for work that takes longer than two seconds, on a terminal or in a notebook."""

import sys
import time
from typing import Any, Optional

_DELAY_SECONDS = 2.0
_WIDTH = 30


def _notebook_display() -> Any:
    """Returns the function that shows text in a notebook; None elsewhere. Imports nothing that is not imported already."""
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return None
    shell = ipython.get_ipython()
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]
    return display


class Progress:
    """Shows how far some work is. `show`: None shows it only after two seconds, and only on a terminal or in a notebook.

    >>> from fjord.progress import Progress
    >>> with Progress("count", show=False) as progress:
    ...     progress.update(0.5)
    """

    def __init__(self, what: str, show: Optional[bool] = None) -> None:
        self._what = what
        self._started = time.monotonic()
        self._display = _notebook_display() if show is not False else None
        self._handle: Any = None
        if show is None:
            self._shows = self._display is not None or sys.stderr.isatty()
            self._delay = _DELAY_SECONDS
        else:
            self._shows, self._delay = show, 0.0
        self._was_shown = False

    def update(self, fraction: Optional[float], left: Optional[float] = None) -> None:
        """Shows a new state: a number from 0 to 1, and the estimated seconds that are left.

        >>> with Progress("count") as progress:
        ...     progress.update(0.5, 3)
        """
        if not self._shows or time.monotonic() - self._started < self._delay:
            return
        self._show(self._line(fraction, left))

    def _line(self, fraction: Optional[float], left: Optional[float]) -> str:
        done = min(max(fraction or 0.0, 0.0), 1.0)
        filled = round(done * _WIDTH)
        rest = "" if left is None else f", {left:.0f} s left"
        return f"{self._what} [{'#' * filled}{'.' * (_WIDTH - filled)}] {done:4.0%}{rest}"

    def _show(self, line: str) -> None:
        self._was_shown = True
        if self._display is None:
            sys.stderr.write(f"\r{line:<78}")
            sys.stderr.flush()
        elif self._handle is None:
            self._handle = self._display({"text/plain": line}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": line}, raw=True)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._was_shown and self._display is None:
            sys.stderr.write("\r" + " " * 78 + "\r")
            sys.stderr.flush()
