"""A storage node on a small file system that fills up: writes are refused in stages, reads and removes work, nothing
crashes or is lost, and writes come back by themselves (I14).

Needs to mount a tmpfs, so it is skipped for others than root.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import harness

MIB = 1 << 20
DISK_BYTES = 320 * MIB
SCHEMA = """document item {
  field number type int { header }
  field text type string { body }
}
"""
SETTINGS = """storage_options:
  engine: {engine}
  stripes: 1
  slotfile_bytes_max: 1048576
  space_reserve_bytes: 33554432
  space_throttle_percent: 90
  space_refuse_external_percent: 92
  space_refuse_all_percent: 97
"""


def id_of(number):
    return f"id:space:item::{number}"


def text_of(number):
    # Text that hardly compresses.
    return (os.urandom(6000).hex() + str(number))[:12000]


class SmallDisk:
    """A tmpfs in place of a folder; unmounted in all cases."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def __enter__(self):
        self.folder.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", self.folder], check=True,
                       capture_output=True, text=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)

    def free_bytes(self):
        info = os.statvfs(self.folder)
        return info.f_bavail * info.f_frsize

    def add_ballast(self, leave_bytes):
        with open(self.folder / "ballast", "wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, self.free_bytes() - leave_bytes)

    def remove_ballast(self):
        (self.folder / "ballast").unlink()


class SpaceTest(unittest.TestCase):
    def fill(self, begin):
        """Feeds until a put is refused. Returns the acknowledged texts and the message of a refusal."""
        stored = {}
        for batch in range(begin, begin + 40000, 250):
            texts = {number: text_of(number) for number in range(batch, batch + 250)}
            lines = [json.dumps({"put": id_of(number), "fields": {"number": number, "text": text}})
                     for number, text in texts.items()]
            path = self.cluster.file("feed.jsonl", "\n".join(lines) + "\n")
            fed = self.cluster.fjord("feed", path, "--timeout", 20, "--errors-shown", 1000)
            bad = {int(line): message for line, message in re.findall(r"feed\.jsonl:(\d+): (.*)", fed.err)}
            for line, (number, text) in enumerate(texts.items(), 1):
                if line not in bad:
                    stored[number] = text
            if bad:
                return stored, " ".join(sorted(set(bad.values()))[:3])
        self.fail("the disk never filled up")

    def can_put(self, number):
        path = self.cluster.file("one.jsonl", json.dumps({"put": id_of(number), "fields": {"number": number}}) + "\n")
        return self.cluster.fjord("feed", path, "--timeout", 5).code == harness.OK

    def check_stored(self, stored):
        found = self.cluster.documents()
        self.assertEqual({id_: fields["text"] for id_, fields in found.items() if "text" in fields},
                         {id_of(number): text for number, text in stored.items()})

    def check_told(self):
        """Checks that status, exit code, /health and metrics report the full disk."""
        harness.wait_until(lambda: self.cluster.status()["nodes_without_space"] == 1, "status tells of the space")
        self.assertEqual(self.cluster.fjord("status").code, harness.FAILED)
        reasons = " ".join(self.cluster.status()["reasons"])
        self.assertRegex(reasons, r"storage\.0 has no space and refuses puts: .* storage\.space_")
        self.assertIn("every put is refused", reasons)
        self.assertEqual(self.cluster.must("node", "list").code, 0)
        http = {process["node"]: process["http"]
                for process in self.cluster.local("status", "-o", "json").json()}["storage.0"]
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://{http}/health", timeout=10)
        self.assertEqual(refused.exception.code, 503)
        self.assertEqual(json.load(refused.exception)["status"], "no_space")

    def run_engine(self, engine):
        self.cluster = harness.Cluster(storage=1, redundancy=1, settings=SETTINGS.format(engine=engine))
        self.addCleanup(shutil.rmtree, self.cluster.folder, ignore_errors=True)  # Also the mount point.
        with SmallDisk(self.cluster.directory / "storage.0") as disk, self.cluster:
            self.cluster.wait_healthy()
            self.cluster.deploy(SCHEMA)

            # A file of another program takes the space; the state ends when that file is removed.
            disk.add_ballast(150 * MIB)
            stored, message = self.fill(0)
            print(f"{engine}: {len(stored)} documents beside the ballast; {message}", flush=True)
            self.assertRegex(message, r"NO_SPACE: storage\.0.* takes no writes but removes: .* bytes free; storage\.space_")
            self.assertGreater(len(stored), 500)
            self.check_told()
            self.check_stored(stored)
            for number in list(stored)[:20]:
                self.cluster.must("remove", id_of(number))
                del stored[number]
            self.check_stored(stored)
            disk.remove_ballast()
            harness.wait_until(lambda: self.can_put(1000000), "writes are taken again without the ballast", 30)
            self.cluster.must("remove", id_of(1000000))

            # The documents themselves take the space; the state ends when they are removed.
            more, message = self.fill(100000)
            print(f"{engine}: {len(more)} more; {message}", flush=True)
            stored.update(more)
            self.check_stored(stored)
            # The node also restarts on the full disk.
            self.cluster.kill("storage.0")
            self.cluster.restart("storage.0")
            harness.wait_until(lambda: self.cluster.status()["buckets"]["unavailable"] == 0, "all is served")
            self.check_stored(stored)
            more, _ = self.fill(200000)  # Space that opening the engine has regained, if any.
            stored.update(more)
            doomed = [number for number in stored if number % 5]
            lines = "".join(json.dumps({"remove": id_of(number)}) + "\n" for number in doomed)
            self.cluster.must("feed", self.cluster.file("removes.jsonl", lines), "--timeout", 60)
            for number in doomed:
                del stored[number]
            begin = time.monotonic()
            harness.wait_until(lambda: self.can_put(1000002), "writes are taken again after the removes", 120)
            print(f"{engine}: writes again {time.monotonic() - begin:.1f} s after the removes, "
                  f"{disk.free_bytes() // MIB} MiB free", flush=True)
            self.check_stored(stored)
            logs = self.cluster.logs()
            self.assertNotIn("CHECK", logs)

    def test_slotfile(self):
        self.run_engine("slotfile")

    def test_leveldb(self):
        self.run_engine("leveldb")


def reason_to_skip():
    if os.geteuid() != 0:
        return "only root can mount a small file system"
    with tempfile.TemporaryDirectory(prefix="fjord-test-") as folder:
        try:
            with SmallDisk(pathlib.Path(folder) / "disk"):
                return None
        except subprocess.CalledProcessError as error:
            return f"no tmpfs can be mounted here: {error.stderr}"


if __name__ == "__main__":
    reason = reason_to_skip()
    if reason:
        print(f"SKIPPED: {reason}", file=sys.stderr)
        sys.exit(harness.SKIPPED)
    harness.main()
