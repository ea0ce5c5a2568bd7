"""Ways to read a cluster, and the comparison with what is possible.

A way returns what it found: key -> number of the version, or the code of an error as a text. Keys that are not in it were
not found, which for get() is the answer NOT_FOUND.
"""

import collections
import csv
import json
import re
import subprocess

import harness
from rehearse.documents import SHELVES, fields_of, id_of, key_of

CHUNK = 2000
SHOWN = 6
WHOLE_S = 60  # A read of everything ends within this time.
LATER_S = 10  # The same after another read has failed, of which only the message is of interest.
NOT_FOUND = "NOT_FOUND"


class Unserved(AssertionError):
    """A read that failed as a whole."""


def _version_in(key, fields):
    """Returns the number of the version if the fields are those of one; else a text."""
    n = int(fields["n"])
    expected = fields_of(key, n)
    is_equal = int(fields["shelf"]) == expected["shelf"] and fields["text"] == expected["text"]
    return n if is_equal else f"MIXED {fields['n']} shelf {fields['shelf']} text {fields['text'][:40]!r}"


def _documents(lines):
    found = {}
    for line in lines.splitlines():
        document = json.loads(line)
        key = key_of(document["put"])
        if key in found:
            raise Unserved(f"{document['put']} came twice")
        found[key] = _version_in(key, document["fields"])
    return found


def _run(cluster, seconds, *arguments):
    try:
        finished = cluster.fjord(*arguments, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Unserved(f"`fjord {' '.join(map(str, arguments))}` did not end within {seconds} s") from None
    if finished.code != harness.OK:
        raise Unserved(f"`fjord {' '.join(map(str, arguments))}` ended with {finished.code}: {finished.err.strip()[-400:]}")
    return finished


def get(cluster, keys, node=None, timeout=8):
    """Gets documents one by one; with `node`, from this replica alone."""
    found, keys = {}, list(keys)
    for begin in range(0, len(keys), CHUNK):
        part = keys[begin:begin + CHUNK]
        finished = cluster.fjord("get", *map(id_of, part), "--timeout", timeout, *(["--node", node] if node else []))
        found.update(_documents(finished.out))
        for code, id_ in re.findall(r"^fjord: ([A-Z_]+): .*?(id:rehearse:item::\d+)", finished.err, re.MULTILINE):
            if code != NOT_FOUND:
                found[key_of(id_)] = code
        told = finished.out.count("\n") + finished.err.count("id:rehearse:item::")
        if told < len(part):
            raise Unserved(f"`fjord get` of {len(part)} documents said {told} of them, ended with {finished.code}: {finished.err.strip()[-400:]}")
    return found


def visit(cluster, seconds):
    return _documents(_run(cluster, seconds, "visit", "--type", "item").out)


def export_jsonl(cluster, seconds):
    path = cluster.folder / "export.jsonl"
    _run(cluster, seconds, "export", path, "--type", "item", "--overwrite")
    return _documents(path.read_text())


def export_csv(cluster, seconds):
    path = cluster.folder / "export.csv"
    _run(cluster, seconds, "export", path, "--type", "item", "--overwrite")
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {key_of(row["_id"]): _version_in(key_of(row["_id"]), row) for row in rows}


def sums_of(found):
    """Returns (count, sum of versions) by shelf of what a visit found."""
    sums = collections.defaultdict(lambda: [0, 0])
    for key, n in found.items():
        sums[key % SHELVES][0] += 1
        sums[key % SHELVES][1] += n
    return {shelf: tuple(both) for shelf, both in sums.items()}


def aggregate(cluster, seconds):
    out = _run(cluster, seconds, "aggregate", "--type", "item", "--group-by", "shelf", "count() AS c", "sum(n) AS s", "-o", "json").out
    return {int(row["shelf"]): (int(row["c"]), int(row["s"])) for row in map(json.loads, out.splitlines())}


def job(cluster, seconds):
    ran = _run(cluster, seconds, "job", "run", "fieldstats", "--type", "item", "--param", "group=shelf", "--param", "value=n", "--wait", "-o",
               "json")
    ended = json.loads(ran.out.splitlines()[-1])
    if ended["phase"] != "done":
        raise Unserved(f"a job ended as {ended['phase']}: {ended}")
    results = [json.loads(line) for line in _run(cluster, seconds, "job", "results", ended["job"], "-o", "json").out.splitlines()]
    return {int(one["key"]): (one["value"]["count"], one["value"]["sum"]) for one in results}


WAYS = {"get": None, "visit": visit, "export JSONL": export_jsonl, "export CSV": export_csv, "aggregate": aggregate, "job": job}


def wrong(expected, found):
    """Returns texts about what cannot be; an error code is not wrong here, only NOT_FOUND and values are."""
    texts = []
    for key, values in expected.items():
        value = found.get(key)
        if isinstance(value, str) and not value.startswith("MIXED"):
            continue
        if value not in values:
            texts.append(f"{key} is {NOT_FOUND if value is None else value}, possible are {values}")
    return texts


def unserved(expected, found):
    """Returns texts about documents that were answered with an error."""
    return [f"{key} is {found[key]}" for key in expected if isinstance(found.get(key), str)]


def _summary(way, texts, count):
    return [f"{way}: {len(texts)} of {count} documents: " + "; ".join(texts[:SHOWN])] if texts else []


def look(cluster, expected, ways=tuple(WAYS), first=False):
    """Reads everything in these ways, while nothing writes. Returns texts about all that is wrong or not served; `first`: about the first such
    way only."""
    texts, visited = [], None
    for way in ways:
        if first and texts:
            break
        cluster.say(f"look: {way}")
        try:
            if way == "get":
                found = get(cluster, expected)
            else:
                found = WAYS[way](cluster, LATER_S if texts else WHOLE_S)
        except Unserved as error:
            texts.append(f"{way}: {error}")
            continue
        if way in ("aggregate", "job"):
            if visited is not None and found != sums_of(visited):
                texts.append(f"{way}: (count, sum) by shelf are {found}, and of a visit {sums_of(visited)}")
            continue
        texts += _summary(way, wrong(expected, found) + unserved(expected, found), len(expected))
        if way == "visit" and not any(isinstance(value, str) for value in found.values()):
            visited = found
    return texts
