"""A storage node takes no more memory of its own than docs/operating/memory.md says, whatever lies on its disk; and it works
when it may not hold its files in memory as well (needs a memory cgroup, version 1, and root)."""

import os
import pathlib
import re
import subprocess
import threading
import unittest

import harness

MIB = 1 << 20
DOCUMENTS = 300_000
SCHEMA = """document item {
  field number type int { header }
  field text type string { body }
}
"""
SETTINGS = {"storage.held_bytes_max": 8 * MIB, "mapreduce.incremental_bytes": 8 * MIB}
# The formula of the page.
FIXED_BYTES = 48 * MIB
ENTRY_BYTES = 72
CGROUPS = pathlib.Path("/sys/fs/cgroup/memory")


def own_bytes(pid):
    """Memory in RAM without files, as fjord_process_own_bytes shows it."""
    fields = (pathlib.Path("/proc") / str(pid) / "status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", fields)[1]) << 10


class Peak:
    """Watches the memory of a process while it is entered."""

    def __init__(self, pid):
        self.pid = pid
        self.bytes = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.ended.wait(0.01):
            self.bytes = max(self.bytes, own_bytes(self.pid))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


class MemoryLimit:
    """A cgroup in which a process gets no more memory than `limit`, files that it maps included."""

    def __init__(self, pid, limit):
        self.pid, self.limit = pid, limit
        self.folder = CGROUPS / f"fjord-test-{pid}"

    def __enter__(self):
        self.folder.mkdir()
        (self.folder / "memory.limit_in_bytes").write_text(str(self.limit))
        (self.folder / "cgroup.procs").write_text(str(self.pid))
        return self

    def killed(self):
        return int(re.search(r"^oom_kill (\d+)", (self.folder / "memory.oom_control").read_text(), re.M)[1])

    def peak(self):
        return int((self.folder / "memory.max_usage_in_bytes").read_text())

    def __exit__(self, *_):
        for pid in (self.folder / "cgroup.procs").read_text().split():
            (CGROUPS / "cgroup.procs").write_text(pid)
        harness.wait_until(self.remove, "the cgroup is removed")

    def remove(self):
        try:
            self.folder.rmdir()
        except OSError:
            return False
        return True


class MemoryTest(unittest.TestCase):
    def setUp(self):
        self.cluster = harness.Cluster(storage=1, redundancy=1)
        self.addCleanup(self.cluster.close)
        self.cluster.start()
        self.cluster.deploy(SCHEMA)
        self.cluster.must("config", "set", *(f"{name}={value}B" for name, value in SETTINGS.items()))
        self.pid = int((self.cluster.directory / "run" / "storage.0.pid").read_text().split()[0])

    def feed(self, count, text):
        lines = (f'{{"put": "id:memory:item::{i}", "fields": {{"number": {i}, "text": "{i} {text}"}}}}\n' for i in range(count))
        self.cluster.must("feed", self.cluster.file("feed.jsonl", "".join(lines)), timeout=200)

    def read(self, count):
        visited = self.cluster.begin("visit", "--type", "item", stdout=subprocess.PIPE)
        with visited.stdout as documents:
            self.assertEqual(sum(1 for _ in documents), count)
        self.assertEqual(visited.wait(), 0)
        said = self.cluster.must("aggregate", "--type", "item", "--group-by", "number % 100", "count()", "-o", "csv")
        self.assertEqual(sum(int(row.split(",")[1]) for row in said.out.splitlines()[1:]), count)

    def test_no_more_than_the_page_says(self):
        with Peak(self.pid) as peak:
            self.feed(DOCUMENTS, "x" * 40)
            self.read(DOCUMENTS)
        allowed = FIXED_BYTES + sum(SETTINGS.values()) + ENTRY_BYTES * DOCUMENTS
        print(f"{peak.bytes / MIB:.1f} MiB of {allowed / MIB:.1f}", flush=True)
        self.assertLess(peak.bytes, allowed)

    @unittest.skipUnless((CGROUPS / "memory.limit_in_bytes").exists() and os.access(CGROUPS, os.W_OK),
                         "no memory cgroup of version 1, or no right to make one")
    def test_files_need_not_be_in_memory(self):
        count, limit = 40_000, 64 * MIB
        with MemoryLimit(self.pid, limit) as memory:
            self.feed(count, "".join(f"{i:07x}" for i in range(700)))
            self.read(count)
            self.assertEqual(memory.killed(), 0)
            self.assertLessEqual(memory.peak(), limit)
        stored = sum(file.stat().st_size for file in self.cluster.directory.glob("storage.0/**/*") if file.is_file())
        self.assertGreater(stored, limit, "the files would have fitted into memory")


if __name__ == "__main__":
    harness.main()
