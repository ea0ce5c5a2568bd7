#!/usr/bin/env python3
"""Keeps a full-text index (SQLite FTS5) of documents in step with a Fjord cluster, and searches it.

    search_index.py follow INDEX --type music --fields title,text     until Ctrl-C; goes on where it was
    search_index.py follow INDEX --type music --fields title,text --once
    search_index.py search INDEX 'yellow submarine'

Changes and the subscription's token go into the index file in one transaction, so it may be killed at any time. The
program needs nothing but Python's standard library and `fjord` in the path (or --fjord).
"""

import argparse
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

RESYNC = 8  # exit code of `fjord subscribe`


def open_index(path):
    index = sqlite3.connect(path)
    index.execute("CREATE VIRTUAL TABLE IF NOT EXISTS documents USING fts5(id UNINDEXED, text)")
    # The version of each document, so that a change that is told twice is done once.
    index.execute("CREATE TABLE IF NOT EXISTS versions(id TEXT PRIMARY KEY, row INTEGER, timestamp_us INTEGER)")
    index.execute("CREATE TABLE IF NOT EXISTS state(name TEXT PRIMARY KEY, value TEXT)")
    index.commit()
    return index


def texts(value):
    """All text in a value, whatever its shape."""
    if isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts(part)
    else:
        yield str(value)


def apply(index, change):
    """Does one line of `fjord subscribe`."""
    name = change.get("put") or change.get("remove")
    if name is None:
        return
    known = index.execute("SELECT row, timestamp_us FROM versions WHERE id = ?", (name,)).fetchone()
    if known and known[1] >= change["timestamp_us"]:
        return
    if known and known[0] is not None:
        index.execute("DELETE FROM documents WHERE rowid = ?", (known[0],))
    row = None
    if "put" in change:
        text = "\n".join(texts(change["fields"]))
        row = index.execute("INSERT INTO documents(id, text) VALUES (?, ?)", (name, text)).lastrowid
    index.execute("INSERT OR REPLACE INTO versions VALUES (?, ?, ?)", (name, row, change["timestamp_us"]))


def follow(args):
    index = open_index(args.index)
    kept = index.execute("SELECT value FROM state WHERE name = 'cursor'").fetchone()
    with tempfile.TemporaryDirectory() as folder:
        command = [args.fjord, "subscribe", "--print-cursors", "--type", args.type]
        if kept:
            cursor = pathlib.Path(folder) / "cursor"
            cursor.write_text(kept[0])
            command += ["--cursor", str(cursor)]
        command += ["--fields", args.fields] if args.fields else []
        command += ["--selection", args.selection] if args.selection else []
        command += ["--once"] if args.once else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        done = 0
        try:
            for line in process.stdout:
                change = json.loads(line)
                if "cursor" in change:  # All lines before it are in the index: both are kept together.
                    index.execute("INSERT OR REPLACE INTO state VALUES ('cursor', ?)", (change["cursor"],))
                    index.commit()
                else:
                    apply(index, change)
                    done += 1
            code = process.wait()
        except KeyboardInterrupt:
            process.terminate()
            code = 0
    index.rollback()  # What came after the last cursor comes again.
    if code == RESYNC:
        print("the index has to be made again: remove the file and start again", file=sys.stderr)
    print(f"{done} changes", file=sys.stderr)
    return code


def search(args):
    index = open_index(args.index)
    rows = index.execute("SELECT id, snippet(documents, 1, '[', ']', ' ... ', 8) FROM documents WHERE documents MATCH ? "
                         "ORDER BY rank LIMIT ?", (args.words, args.limit))
    for name, snippet in rows:
        print(f"{name}\t{snippet}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("follow", help="keep the index in step")
    one.add_argument("index")
    one.add_argument("--type", required=True)
    one.add_argument("--fields", default="")
    one.add_argument("--selection", default="")
    one.add_argument("--once", action="store_true", help="end when it is in step")
    one.add_argument("--fjord", default="fjord")
    one.set_defaults(run=follow)
    two = commands.add_parser("search", help="print the documents that hold these words")
    two.add_argument("index")
    two.add_argument("words")
    two.add_argument("--limit", type=int, default=20)
    two.set_defaults(run=search)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
