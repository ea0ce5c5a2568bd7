"""What clients were told, kept outside of the cluster, and the load that tells it."""

import contextlib
import json
import re
import subprocess
import threading

import harness
from rehearse import looks
from rehearse.documents import BATCH, FIRST, HOT, KEYS, PAUSE_S, READ, SCHEMA, fields_of, id_of

FEED_TIMEOUT_S = 4


class Record:
    """The values that each document can have: numbers of versions; None: it is not there.

    A document has one writer. So its value is that of the last acknowledged write, or of a later one that is in doubt or under way.
    Threads: every.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._possible = {}
        self.acknowledged = 0

    def begun(self, writes):
        """Writes, key -> value, are on their way."""
        with self._lock:
            for key, value in writes.items():
                self._possible[key] = [*self._possible.get(key, [None]), value]

    def ended(self, key, value, outcome):
        """`outcome`: "ok", "failed" (certainly not applied) or "in doubt"."""
        with self._lock:
            if outcome == "ok":
                self._possible[key] = [value]
                self.acknowledged += 1
            elif outcome == "failed":
                self._possible[key].reverse()
                self._possible[key].remove(value)  # The newest of equal ones.
                self._possible[key].reverse()

    def possible(self):
        """Returns key -> tuple of the values that are possible now."""
        with self._lock:
            return {key: tuple(values) for key, values in self._possible.items()}


class Load(threading.Thread):
    """Puts, removes and reads documents in batches until it is closed, and notes each answer that cannot be."""

    def __init__(self, cluster, record, random_):
        super().__init__(name="load", daemon=True)
        self._cluster, self.record, self._random = cluster, record, random_
        self._turn = threading.Lock()  # Held during a batch.
        self._closing = threading.Event()
        self._next = 1
        self.errors = []
        self.batches = 0

    def run(self):
        try:
            while not self._closing.is_set():
                with self._turn:
                    self.write(self._random.sample(range(HOT), BATCH), removes=0.1)
                    self.read(self._random.sample(range(KEYS), READ))
                    self.batches += 1
                self._closing.wait(PAUSE_S)
        except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as error:  # The rehearsal looks at `errors`.
            if not self.errors:
                self.errors.append(f"the load ended: {error!r}")

    @contextlib.contextmanager
    def held(self):
        """Nothing is under way in this context."""
        with self._turn:
            yield

    def close(self):
        self._closing.set()
        self.join(timeout=120)

    def write(self, keys, removes=0.0):
        operations = []
        for key in keys:
            if self._random.random() < removes:
                operations.append((key, None, {"remove": id_of(key)}))
            else:
                operations.append((key, self._next, {"put": id_of(key), "fields": fields_of(key, self._next)}))
                self._next += 1
        self.record.begun({key: value for key, value, _ in operations})
        fed = self._cluster.fjord("feed", "-", "--timeout", FEED_TIMEOUT_S, "--in-flight", 64, "--errors-shown", 1000000,
                                  stdin="".join(json.dumps(operation) + "\n" for _, _, operation in operations))
        bad = {int(line): text for line, text in re.findall(r"^fjord: (?:-|standard input|<?stdin>?):(\d+): (.*)$", fed.err, re.MULTILINE)}
        has_begun = fed.out.startswith("{")
        assert not has_begun or json.loads(fed.out)["ok"] + len(bad) == len(operations), str(fed)
        for line, (key, value, _) in enumerate(operations, 1):
            if line in bad:
                self.record.ended(key, value, "in doubt" if "in doubt" in bad[line] else "failed")
            else:
                self.record.ended(key, value, "ok" if has_begun else "failed")

    def read(self, keys):
        possible = self.record.possible()
        expected = {key: possible.get(key, (None,)) for key in keys}
        got = looks.get(self._cluster, keys, timeout=FEED_TIMEOUT_S)
        self.errors += [f"a get beside the load: {text}" for text in looks.wrong(expected, got)]
        if self.errors:
            raise AssertionError(self.errors[0])


def fill(load):
    """Writes the first documents. Errors: AssertionError if one is refused."""
    load.write(range(FIRST, KEYS))
    assert not any(None in values for values in load.record.possible().values()), "writes of the first documents were refused"


def deploy(cluster):
    path = cluster.folder / "item.sd"
    path.write_text(SCHEMA)
    finished = cluster.fjord("schema", "deploy", path)
    assert finished.code == harness.OK, str(finished)
