"""Node processes that cannot outlive the program that started them."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Callable, Dict, List, Optional

_PR_SET_PDEATHSIG = 1
_libc: Any = None


def find_program(name: str) -> Path:
    """Returns the path of a program of Fjord: in the folder FJORD_BIN (or FJORD_BIN itself), else on the PATH."""
    wanted = os.environ.get("FJORD_BIN")
    if wanted:
        given = Path(wanted)
        path = given / name if given.is_dir() else given.with_name(name)
        if os.access(path, os.X_OK):
            return path.absolute()
        raise FileNotFoundError(f"FJORD_BIN is {wanted}, and there is no program {path}")
    for folder in os.get_exec_path():
        path = Path(folder) / name
        if os.access(path, os.X_OK) and path.is_file():
            return path.absolute()
    raise FileNotFoundError(f"{name} is neither in the folder FJORD_BIN nor on the PATH")


class _Starter:
    """Starts all child processes on one thread.

    Linux ends a child with its parent when the *thread* that started it ends (PR_SET_PDEATHSIG). This thread lives as long
    as the process, so that a cluster survives the thread of the test that made it, and nothing else.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._process_id = os.getpid()
        threading.Thread(target=self._run, name="fjord-testing", daemon=True).start()

    def _run(self) -> None:
        while True:
            self._jobs.get()()

    def start(self, command: List[str], log: Path, enter: Optional[Callable[[], None]]) -> subprocess.Popen[bytes]:
        started: Future[subprocess.Popen[bytes]] = Future()

        def job() -> None:
            try:
                started.set_result(_popen(command, log, enter))
            except BaseException as error:
                started.set_exception(error)

        self._jobs.put(job)
        return started.result()

    @property
    def is_of_this_process(self) -> bool:
        return self._process_id == os.getpid()


_starter: Optional[_Starter] = None
_starter_lock = threading.Lock()


def _popen(command: List[str], log: Path, enter: Optional[Callable[[], None]]) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def prepare() -> None:  # Runs in the child, before the program.
        os.setpgid(0, 0)  # Ctrl-C in the terminal is for the test, which then stops the nodes.
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # The parent ended before the kernel knew.
        if enter is not None:
            enter()

    with open(log, "ab") as out:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=prepare)


def start_process(command: List[str], log: Path, enter: Optional[Callable[[], None]] = None) -> subprocess.Popen[bytes]:
    """Starts a program that writes to `log` and ends with this process, however this process ends."""
    global _starter, _libc
    with _starter_lock:
        if _libc is None and sys.platform == "linux":
            _libc = ctypes.CDLL(None)
        if _starter is None or not _starter.is_of_this_process:
            _starter = _Starter()
        starter = _starter
    return starter.start(command, log, enter)


def wait_for_end(processes: Dict[str, subprocess.Popen[bytes]], seconds: float) -> List[str]:
    """Waits until one of the processes has ended, at most `seconds`. Returns the names of those that have ended."""
    ended = [name for name, process in processes.items() if process.poll() is not None]
    if ended:
        return ended
    files = {}
    for name, process in processes.items():
        try:
            files[os.pidfd_open(process.pid)] = name
        except OSError:
            continue
    try:
        if files:
            select.select(list(files), [], [], seconds)
    finally:
        for file in files:
            os.close(file)
    return [name for name, process in processes.items() if process.poll() is not None]
