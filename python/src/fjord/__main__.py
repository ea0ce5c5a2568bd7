"""The twin of the command line for Parquet: `fjord export FILE.parquet` runs `python3 -m fjord export FILE.parquet`.

    python -m fjord export FILE.parquet --type music
    python -m fjord import FILE.parquet
    python -m fjord check        exit code 0 if pyarrow is installed
"""

import argparse
import json
import signal
import sys
import time
from typing import Any, Dict, List, NoReturn, Optional

from . import Client
from .errors import (AlreadyExists, Cancelled, ConditionFailed, DeadlineExceeded, Error, InDoubt, InvalidRequest, NotFound,
                     NotImplementedByServer)

OK, FAILED, USAGE, NOT_FOUND, CONDITION_FALSE, PARTIAL, TIMEOUT, IN_DOUBT = 0, 1, 2, 3, 4, 5, 6, 7


def exit_code(error: Error) -> int:
    """Returns the exit code that the command line has for an error."""
    for kind, code in ((InvalidRequest, USAGE), (NotFound, NOT_FOUND), (ConditionFailed, CONDITION_FALSE),
                       (DeadlineExceeded, TIMEOUT), (InDoubt, IN_DOUBT), (Cancelled, PARTIAL),
                       (AlreadyExists, FAILED), (NotImplementedByServer, FAILED)):
        if isinstance(error, kind):
            return code
    return FAILED


def complain(text: str) -> None:
    print(f"fjord: {text}", file=sys.stderr)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fjord", description="Parquet files of documents.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="exit code 0 if pyarrow is installed")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--cluster", help="addresses of distributors; without it the environment variable FJORD_CLUSTER")
    shared.add_argument("--timeout", type=float, default=30.0, help="seconds without progress")
    shared.add_argument("--progress", choices=["auto", "on", "off"], default="auto")
    export = commands.add_parser("export", parents=[shared], help="write documents to a file")
    export.add_argument("file", metavar="FILE.parquet")
    export.add_argument("--type")
    export.add_argument("--selection")
    export.add_argument("--fields", help="NAME,NAME")
    export.add_argument("--since", type=int, help="only versions written then or later, in microseconds since 1970")
    export.add_argument("--until", type=int)
    export.add_argument("--slice", help="K/N: one of N parts, counted from 0")
    export.add_argument("--snapshot", action="store_true")
    export.add_argument("--overwrite", action="store_true")
    export.add_argument("--resume", action="store_true")
    export.add_argument("--visitors-per-node", type=int)
    export.add_argument("--buckets-at-once", type=int)
    export.add_argument("--priority", default="background")
    stored = commands.add_parser("import", parents=[shared], help="store the rows of files")
    stored.add_argument("files", metavar="FILE.parquet", nargs="+")
    stored.add_argument("--type")
    stored.add_argument("--id-field")
    stored.add_argument("--id-row", action="store_true")
    stored.add_argument("--namespace")
    stored.add_argument("--background", action="store_true")
    stored.add_argument("--in-flight", type=int, default=0)
    stored.add_argument("--errors-shown", type=int, default=100)
    return parser


def _progress(what: str, how: str) -> Any:
    from .progress import Progress
    return Progress(what, {"auto": None, "on": True, "off": False}[how])


def _slice(text: Optional[str]) -> Any:
    if text is None:
        return None
    index, _, count = text.partition("/")
    return int(index), int(count)


def run_export(arguments: argparse.Namespace) -> int:
    from .parquet import export_parquet

    began = time.monotonic()
    mode = "resume" if arguments.resume else "replace" if arguments.overwrite else "new"
    with Client(arguments.cluster, timeout=arguments.timeout) as client, _progress("export", arguments.progress) as progress:
        summary = export_parquet(
            client, arguments.file, arguments.selection, mode=mode, type=arguments.type, fields=arguments.fields,
            since=arguments.since, until=arguments.until, snapshot=arguments.snapshot, slice=_slice(arguments.slice),
            priority=arguments.priority, no_progress_limit=arguments.timeout,
            visitors_per_node=arguments.visitors_per_node, buckets_at_once=arguments.buckets_at_once,
            on_progress=lambda done, documents: progress.update(done))
    print(json.dumps({"documents": summary.documents, "bytes": summary.bytes,
                      "seconds": round(time.monotonic() - began, 3)}))
    return OK


def run_import(arguments: argparse.Namespace) -> int:
    from .parquet import import_parquet

    shown = 0

    def on_failure(file: str, row: int, error: Error) -> None:
        nonlocal shown
        shown += 1
        if shown <= arguments.errors_shown:
            complain(f"{file}: row {row + 1}: {error.code}: {error}")
        elif shown == arguments.errors_shown + 1:
            complain("further errors are only counted, see --errors-shown")

    with Client(arguments.cluster) as client:
        summary, seconds = import_parquet(
            client, arguments.files, type=arguments.type, id_field=arguments.id_field, id_row=arguments.id_row,
            namespace=arguments.namespace, timeout=arguments.timeout,
            priority="background" if arguments.background else None, on_failure=on_failure,
            on_warning=lambda text: complain("warning: " + text))
    members: Dict[str, Any] = {"ok": summary.stored, "failed": summary.failed, "failed_by_code": summary.failed_by_code,
                               "in_doubt": summary.in_doubt, "retried": summary.retried, "bytes": summary.bytes,
                               "seconds": round(seconds, 3), "docs_per_s": round(summary.stored / max(seconds, 1e-6), 1),
                               "latency_ms": {"p50": round(summary.p50 * 1e3, 2), "p99": round(summary.p99 * 1e3, 2)}}
    print(json.dumps(members))
    if summary.failed == 0 and summary.in_doubt == 0:
        return OK
    return PARTIAL if summary.stored > 0 else FAILED


def _end(number: int, _: Any) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(words: Optional[List[str]] = None) -> int:
    """Runs a command and returns its exit code."""
    arguments = _arguments().parse_args(words)
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        complain(f"Parquet needs the package pyarrow: pip install pyarrow ({error})")
        return FAILED
    if arguments.command == "check":
        return OK
    signal.signal(signal.SIGTERM, _end)
    try:
        return run_export(arguments) if arguments.command == "export" else run_import(arguments)
    except Error as error:
        complain(f"{error.code}: {error}")
        return exit_code(error)
    except OSError as error:
        complain(str(error))
        return FAILED
    except KeyboardInterrupt as ended:
        name = str(ended) or "SIGINT"
        complain(f"{name}: the export can be continued with --resume" if arguments.command == "export" else name)
        return PARTIAL


if __name__ == "__main__":
    sys.exit(main())
