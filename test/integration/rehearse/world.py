"""One rehearsal: a cluster, its load, the record, and the history of what was done to it."""

import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import time

import harness
from rehearse import cluster as clusters
from rehearse import looks, record
from rehearse.days import DAYS
from rehearse.isolation import Isolation

PATIENCE = 4 if harness.SANITIZED else 1  # Programs with a sanitizer are slow.
START_S = 60 * PATIENCE
DRAWS = 50
SERVED_S = 30 * PATIENCE  # After all nodes answer, every bucket is served within this time.
HEALTHY_S = 150 * PATIENCE  # After all faults have ended, the cluster is healthy within this time.
FAST_SCRUB, NO_SCRUB = "64MiB", "0"


class Failure(AssertionError):
    """A claim that does not hold. `claim`: its name; `seen`: what was seen."""

    def __init__(self, claim, seen):
        super().__init__(f"{claim}: {seen}")
        self.claim, self.seen = claim, seen


def draw_shape(random_, may_mount, days):
    """Draws until one of these days is possible; None: any shape will do."""
    for _ in range(DRAWS):
        shape = draw_any_shape(random_, may_mount)
        if not days or any(DAYS[name].is_possible(shape) for name in days):
            break
    return shape


def draw_any_shape(random_, may_mount):
    storage = random_.choice((3, 4, 4, 5))
    groups = "(root (a 0 1) (b 2 3))" if storage == 4 and random_.random() < 0.5 else ""
    small = random_.randrange(storage) if may_mount and random_.random() < 0.5 else None
    return clusters.Shape(storage=storage, distributors=random_.choice((1, 2)), redundancy=2, bits=random_.choice((4, 5, 6)), groups=groups,
                          stripes=random_.choice((1, 2)), small=small)


def may_mount():
    """True if this program may mount a small file system."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


def is_served(status):
    """True if the cluster says that every bucket is served."""
    buckets = status["buckets"]
    return status["health"] != "unavailable" and buckets["unavailable"] == 0 and buckets["collecting"] == 0


def is_healthy(status):
    """True if the cluster says that it is healthy; a node that is slow beside this much work is."""
    buckets = status["buckets"]
    is_bad = any(buckets[name] for name in ("out_of_sync", "unavailable", "damaged", "under_replicated", "collecting", "failing", "unplaced"))
    return not is_bad and all(" is slow: " in reason for reason in status["reasons"])


def describe(status):
    return "no answer" if status is None else f"{status['health']}, {status['buckets']}, reasons {status['reasons'][:6]}"


def wait_for(cluster, condition, seconds):
    """Waits until the status meets the condition. Returns whether it did, and the last status."""
    seen = []

    def is_met():
        seen[:] = [cluster.status()[1]]
        return seen[0] is not None and condition(seen[0])
    return bool(harness.poll(is_met, seconds, 0.2)), seen[0]


class World:
    """Use it in a with statement; it begins with a healthy cluster under load.

    `scrub`: the setting of the scrub. Threads: one, beside that of the load.
    """

    def __init__(self, seed, folder, shape=None, scrub=None, days=None, verbose=False):
        self.seed = seed
        self.random = random.Random(seed)
        self.shape = shape or draw_shape(self.random, may_mount(), days)
        self.scrub = scrub or self.random.choice((FAST_SCRUB, NO_SCRUB))
        self.folder = pathlib.Path(folder)
        self.verbose = verbose
        self.began = time.monotonic()
        self.history = []
        self.record = record.Record()
        self.cluster = None
        self.load = None
        self.copies = 0
        self.unnoticed = {}  # Storage node -> its process and counts at the time of a damage that it may not have noticed.
        self.damaged = []  # Storage nodes that were damaged, the last one at the end.
        self.in_maintenance = []
        self.keep = False

    def say(self, text):
        line = f"{time.monotonic() - self.began:7.1f} s  {text}"
        self.history.append(line)
        if self.verbose:
            print(line, flush=True)

    def __enter__(self):
        try:
            self.say(f"{self.shape}, scrub {self.scrub}")
            self.cluster = clusters.make(self.folder / "original", self.shape, self.say)
            self._mount()
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind, *_):
        self.keep = self.keep or kind is not None
        self.close()

    def close(self):
        if self.load is not None:
            self.load.close()
        if self.cluster is not None:
            self.cluster.close()
        self._unmount()
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _mount(self):
        if self.shape.small is None:
            return
        node = self.cluster.folder / f"storage.{self.shape.small}"
        node.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={clusters.SMALL_DISK}", "tmpfs", node], check=True, capture_output=True)
        self.say(f"storage.{self.shape.small} has a disk of {clusters.SMALL_DISK >> 20} MiB (tmpfs)")

    def _unmount(self):
        """Removes the small disk. If the folders are kept, its files are moved to where it was mounted."""
        if self.shape.small is None:
            return
        node = self.folder / "original" / f"storage.{self.shape.small}"
        if not node.is_mount():
            return
        aside = node.with_name(node.name + ".files")
        if self.keep:
            subprocess.run(["cp", "-r", "--sparse=always", node, aside], check=True)
        subprocess.run(["umount", "-l", node], check=True)
        if self.keep:
            node.rmdir()
            aside.rename(node)

    def _start(self):
        self.cluster.start(*self.cluster.names)
        is_up, status = wait_for(self.cluster, is_healthy, START_S)
        assert is_up, f"the new cluster is not healthy: {describe(status)}{self.cluster.ended_by_itself() or ''}"
        record.deploy(self.cluster)
        # Documents reach slotfiles soon, and nodes that crash often stay in the cluster.
        self.cluster.command("config", "set", "storage.held_bytes_max=64KiB", "storage.journal_bytes_max=1MiB", "controller.crashes_max=1000000",
                             f"storage.scrub_bytes_per_second={self.scrub}")
        self.load = record.Load(self.cluster, self.record, random.Random(self.random.random()))
        record.fill(self.load)
        self.load.start()

    # --- What days and claims use

    def check(self):
        """Errors: Failure if the load saw what cannot be, or a process has ended by itself."""
        if self.load.errors:
            raise Failure("not found", self.load.errors[0])
        ended = self.cluster.ended_by_itself()
        if ended:
            raise Failure("processes", ended)

    def let_pass(self, seconds):
        """Lets a fault last for this time, or the load go on. Errors: as check()."""
        harness.poll(self.check, seconds, 0.2)

    def pick(self, count=1):
        return self.random.sample(self.cluster.storage, count)

    def wait(self, claim, condition, seconds, what):
        """Waits until the status of the cluster meets the condition, else fails this claim."""
        is_so, status = wait_for(self.cluster, condition, seconds)
        self.check()
        if not is_so:
            raise Failure(claim, f"{what} after {seconds} s: {describe(status)}")
        return status

    def recover(self):
        """Ends all faults, and waits until the cluster is healthy."""
        cluster = self.cluster
        if cluster.paused:
            cluster.go_on(*cluster.paused)
        away = [name for name in cluster.names if name not in cluster.running]
        self.random.shuffle(away)
        cluster.start(*away)
        self.small_disk(None)
        if self.in_maintenance:
            self.wait("ends", lambda status: status["health"] is not None, SERVED_S, "no status")
            cluster.command("node", "up", *self.in_maintenance)
            self.in_maintenance = []
        self.wait("ends", is_served, SERVED_S, "all nodes run, and not every bucket is served")
        self.wait("ends", is_healthy, HEALTHY_S, "all nodes run, and the cluster is not healthy")
        self.look_for_damage()

    def small_disk(self, percent):
        """Fills the small disk up to this part of its space with a file; None: removes the file."""
        if self.shape.small is None:
            return
        folder = self.cluster.folder / f"storage.{self.shape.small}"
        ballast = folder / "ballast"
        if percent is None:
            if ballast.exists():
                self.say(f"storage.{self.shape.small}: rm ballast")
                ballast.unlink()
            return
        info = os.statvfs(folder)
        more = info.f_bavail * info.f_frsize - clusters.SMALL_DISK * (100 - percent) // 100
        if more > 0:
            self.say(f"storage.{self.shape.small}: ballast up to {percent} % of its disk")
            with open(ballast, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, more)

    # --- Damage

    def note_damage(self, node, path):
        """A file of a node is going to be damaged; `path`: None if it is going to be removed."""
        process = self.cluster.running.get(node)
        counts = (0, 0)
        if process:
            counts = (self.cluster.metric(node, "fjord_storage_damaged_total") or 0, self.cluster.metric(node, "fjord_slotfile_scrub_passes") or 0)
        self.unnoticed[node] = (process.pid if process else None, *counts, path)
        self.damaged.append(node)

    def look_for_damage(self):
        """Forgets which nodes may not have noticed damage yet, as far as they have."""
        for node, (pid, damaged, passes, path) in list(self.unnoticed.items()):
            process = self.cluster.running.get(node)
            if process is None:
                continue
            if path is not None and not path.exists():
                self.say(f"{node} has replaced the damaged file")
                del self.unnoticed[node]
                continue
            if process.pid != pid:
                damaged, passes = 0, 0
            now = self.cluster.metric(node, "fjord_storage_damaged_total")
            scrubbed = self.cluster.metric(node, "fjord_slotfile_scrub_passes")
            if now is not None and (now > damaged or scrubbed >= passes + 2 * self.shape.stripes):
                self.say(f"{node} has noticed its damage, or has been scrubbed: {now - damaged:.0f} times, {scrubbed - passes:.0f} passes")
                del self.unnoticed[node]

    # --- Copies

    @contextlib.contextmanager
    def copied(self):
        """A copy of the cluster, of which nothing runs yet, and what is possible in it: key -> values."""
        self.copies += 1
        before = self.record.possible()
        copy = self.cluster.copy(self.folder / f"copy{self.copies}", Isolation())
        after = self.record.possible()
        expected = {key: tuple(dict.fromkeys(before.get(key, (None,)) + values)) for key, values in after.items()}
        try:
            yield copy, expected
        except BaseException:
            copy.close()
            raise
        clusters.remove(copy)

    def look(self, claim, cluster, expected, what, ways=tuple(looks.WAYS)):
        """Reads everything in all these ways. Errors: Failure."""
        texts = looks.look(cluster, expected, ways)
        ended = cluster.ended_by_itself()
        if ended:
            texts.append(ended)
        if texts:
            _, status = cluster.status()
            raise Failure(claim, f"{what}: " + "\n    ".join(texts) + f"\n    status: {describe(status)}")


