"""The twin of the command line for Parquet: `fjord export FILE.parquet` runs `python3 -m fjord export FILE.parquet`.

    python -m fjord export FILE.parquet --type music
    python -m fjord import FILE.parquet
    python -m fjord check        exit code 0 if pyarrow is installed

Exit codes are those of the command line.
"""

import argparse
import importlib.util
import json
import signal
import sys
import time
from typing import Any, Dict, List, NoReturn, Optional, Tuple

from . import Client
from .errors import Cancelled, DeadlineExceeded, Error, InDoubt, InvalidRequest, NotFound, TooLarge, UnknownType

OK, FAILED, USAGE, NOT_FOUND, PARTIAL, TIMEOUT, IN_DOUBT = 0, 1, 2, 3, 5, 6, 7


def exit_code(error: Error) -> int:
    """Returns the exit code that the command line has for an error."""
    for kind, code in ((UnknownType, NOT_FOUND), (TooLarge, FAILED), (InvalidRequest, USAGE), (NotFound, NOT_FOUND),
                       (DeadlineExceeded, TIMEOUT), (InDoubt, IN_DOUBT), (Cancelled, PARTIAL)):
        if isinstance(error, kind):
            return code
    return FAILED


def complain(text: str) -> None:
    print(f"fjord: {text}", file=sys.stderr)


def _slice(text: str) -> Tuple[int, int]:
    """Returns (0, 4) for "1/4"."""
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f'not a slice: "{text}" (expected K/N, 1/4 to 4/4 for example)')
    return int(index) - 1, int(count)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fjord", description="Parquet files of documents.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="exit code 0 if pyarrow is installed")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--cluster", help="addresses of distributors; without it the environment variable FJORD_CLUSTER")
    shared.add_argument("--timeout", type=float, default=30.0, help="seconds without progress")
    shared.add_argument("--progress", choices=["auto", "always", "never"], default="auto")
    export = commands.add_parser("export", parents=[shared], help="write documents to a file")
    export.add_argument("file", metavar="FILE.parquet")
    export.add_argument("--type")
    export.add_argument("--selection")
    export.add_argument("--fields", help="NAME,NAME")
    export.add_argument("--since", type=int, help="only versions written then or later, in microseconds since 1970")
    export.add_argument("--until", type=int)
    export.add_argument("--slice", type=_slice, help="K/N: one of N parts, 1/4 to 4/4")
    export.add_argument("--snapshot", action="store_true")
    mode = export.add_mutually_exclusive_group()
    mode.add_argument("--overwrite", action="store_true")
    mode.add_argument("--resume", action="store_true")
    export.add_argument("--visitors-per-node", type=int)
    export.add_argument("--buckets-per-visitor", type=int)
    export.add_argument("--buckets-at-once", type=int)
    export.add_argument("--priority", default="background")
    stored = commands.add_parser("import", parents=[shared], help="store the rows of files")
    stored.add_argument("files", metavar="FILE.parquet", nargs="+")
    stored.add_argument("--type")
    stored.add_argument("--id-field")
    stored.add_argument("--id-row", action="store_true")
    stored.add_argument("--namespace")
    stored.add_argument("--create-only", action="store_true", help="leave documents that exist as they are")
    stored.add_argument("--cursor", metavar="FILE", help="keep in this file how far it is, and go on from it if it is there")
    stored.add_argument("--resume", metavar="FILE", dest="cursor", help=argparse.SUPPRESS)  # Former name of --cursor.
    stored.add_argument("--background", action="store_true")
    stored.add_argument("--in-flight", type=int)
    stored.add_argument("--errors-shown", type=int, default=100)
    return parser


def _progress(what: str, when: str) -> Any:
    from .progress import Progress
    return Progress(what, {"auto": None, "always": True, "never": False}[when])


def run_export(arguments: argparse.Namespace) -> int:
    from .parquet import export_parquet

    began = time.monotonic()
    mode = "resume" if arguments.resume else "replace" if arguments.overwrite else "new"
    with Client(arguments.cluster, timeout=arguments.timeout) as client, _progress("export", arguments.progress) as progress:
        summary = export_parquet(
            client, arguments.file, arguments.selection, mode=mode, type=arguments.type, fields=arguments.fields,
            since=arguments.since, until=arguments.until, snapshot=arguments.snapshot, slice=arguments.slice,
            priority=arguments.priority, no_progress_limit=arguments.timeout,
            visitors_per_node=arguments.visitors_per_node, buckets_per_visitor=arguments.buckets_per_visitor,
            buckets_at_once=arguments.buckets_at_once, on_progress=lambda done, documents: progress.update(done))
    print(json.dumps({"documents": summary.documents, "bytes": summary.bytes, "buckets": summary.buckets,
                      "buckets_done_before": summary.buckets_done_before, "buckets_repeated": summary.buckets_repeated,
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

    with Client(arguments.cluster) as client, _progress("import", arguments.progress) as progress:
        summary = import_parquet(
            client, arguments.files, type=arguments.type, id_field=arguments.id_field, id_row=arguments.id_row,
            namespace=arguments.namespace, create_only=arguments.create_only, progress_file=arguments.cursor, max_inflight=arguments.in_flight or "auto",
            timeout=arguments.timeout, priority="background" if arguments.background else None, on_failure=on_failure,
            on_warning=lambda text: complain("warning: " + text), on_progress=progress.update)
    members: Dict[str, Any] = {"ok": summary.stored, "failed": summary.failed, "failed_by_code": summary.failed_by_code,
                               "in_doubt": summary.in_doubt, "retried": summary.retried, "replaced": summary.replaced,
                               "existing": summary.existing, "bytes": summary.bytes,
                               "seconds": round(summary.seconds, 3),
                               "docs_per_s": round(summary.stored / max(summary.seconds, 1e-6), 1),
                               "latency_ms": {"p50": round(summary.p50 * 1e3, 2), "p99": round(summary.p99 * 1e3, 2)}}
    print(json.dumps(members))
    if summary.failed == 0 and summary.in_doubt == 0:
        return OK
    return PARTIAL if summary.stored + summary.existing > 0 else FAILED


def _end(number: int, _: Any) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)


def _run(arguments: argparse.Namespace) -> int:
    import pyarrow

    try:
        return run_export(arguments) if arguments.command == "export" else run_import(arguments)
    except Error as error:
        complain(f"{error.code}: {error}")
        return exit_code(error)
    except FileNotFoundError as error:
        complain(str(error))
        return NOT_FOUND
    except (OSError, pyarrow.ArrowException) as error:  # The content of a file, too.
        complain(str(error))
        return FAILED
    except KeyboardInterrupt as ended:
        name = str(ended) or "SIGINT"
        how = "--resume" if arguments.command == "export" else f"--cursor {arguments.cursor}" if arguments.cursor else ""
        complain(f"{name}: the {arguments.command} can be continued with {how}" if how else name)
        return PARTIAL


def main(words: Optional[List[str]] = None) -> int:
    """Runs a command and returns its exit code."""
    arguments = _arguments().parse_args(words)
    if arguments.command == "check":
        return FAILED if importlib.util.find_spec("pyarrow") is None else OK
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        complain(f"Parquet needs the package pyarrow: pip install pyarrow ({error})")
        return FAILED
    signal.signal(signal.SIGTERM, _end)
    return _run(arguments)


if __name__ == "__main__":
    sys.exit(main())
