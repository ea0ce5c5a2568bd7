"""What a peer without rights can do to a cluster: idle connections, half messages, lists that grow in memory, many headers,
readers that never end, forged lines of logs, and folders that another user has prepared. Each with bounds of time and memory."""

import contextlib
import http.client
import os
import pathlib
import signal
import socket
import stat
import subprocess
import time
import unittest

import harness
from harness import run_program, wait_until
from http_documents import ROOT, HttpCluster
from memory_test import MIB, Peak, own_bytes

FRAME_TIMEOUT_S = 2
CLIENTS_MAX = 64
OTHER_USER = 65534
SETTINGS = f"""rpc:
  connections_max: {CLIENTS_MAX}
  frame_timeout_ms: {1000 * FRAME_TIMEOUT_S}
"""
FORGED = "x\n2026-11-28T00:00:00.000000+00:00 info controller: FORGED\x1b[31m"


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def frame(call, fields):
    """One framed call in the compact protocol whose argument has these encoded fields."""
    message = b"\x82\x21\x01" + varint(len(call)) + call.encode() + b"\x1c" + fields + b"\x00\x00"
    return len(message).to_bytes(4, "big") + message


def text_field(number, text):
    return bytes([number << 4 | 8]) + varint(len(text)) + text


def list_of_empty_structs(number, count):
    return bytes([number << 4 | 9, 0xFC]) + varint(count) + bytes(count)


class AttackTest(HttpCluster):
    @classmethod
    def setUpClass(cls):
        cls.port = harness.free_ports(1)[0]
        cls.cluster = harness.Cluster(storage=2, settings=f"gateways:\n  - address: 127.0.0.1:{cls.port}\n" + SETTINGS)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.cluster.deploy(cls.schema)

    def process(self, node):
        return int((self.cluster.directory / "run" / f"{node}.pid").read_text().split()[0])

    def address(self, node):
        """Returns host and port of a node's port for calls."""
        shown = self.cluster.local("status").out
        line = next(line for line in shown.splitlines() if line.split()[0] == node)
        host, port = next(word for word in line.split() if word.startswith("127.0.0.1:")).rsplit(":", 1)
        return host, int(port)

    def put_and_get(self, name):
        self.must(200, "POST", ROOT + name, {"fields": {"title": name}})
        self.assertEqual(self.must(200, "GET", ROOT + name)["fields"]["title"], name)

    def test_idle_connections(self):
        """They cost neither descriptors nor the work of others, however many there are."""
        self.put_and_get("before")
        with contextlib.ExitStack() as idle:
            for node in ("storage.0", "distributor.0"):
                address, files = self.address(node), pathlib.Path("/proc") / str(self.process(node)) / "fd"
                before = len(list(files.iterdir()))
                for _ in range(10 * CLIENTS_MAX):
                    idle.enter_context(socket.create_connection(address, timeout=30))
                wait_until(lambda: len(list(files.iterdir())) <= before + CLIENTS_MAX + 20, f"{node} has closed most of them")
            self.put_and_get("beside")
            self.assertEqual(self.cluster.fjord("status").code, 0)
            self.assertEqual(self.cluster.fjord("get", "id:shop:item::beside").code, 0)

    def test_a_process_may_open_many_files(self):
        limits = (pathlib.Path("/proc") / str(self.process("storage.0")) / "limits").read_text()
        line = next(line for line in limits.splitlines() if line.startswith("Max open files"))
        soft, hard = (int(word) for word in line.split()[3:5])
        self.assertGreaterEqual(soft, min(hard, 65536))

    def test_half_frames(self):
        """They take a bounded part of the memory, and none after the time for the rest."""
        process = self.process("distributor.0")
        before = own_bytes(process)
        with Peak(process) as peak, contextlib.ExitStack() as open_ones:
            for _ in range(8):
                one = open_ones.enter_context(socket.create_connection(self.address("distributor.0"), timeout=30))
                with contextlib.suppress(OSError):  # It may be closed while it sends.
                    one.sendall((64 * MIB - 4).to_bytes(4, "big") + bytes(60 * MIB))
            self.put_and_get("beside_half_frames")
            wait_until(lambda: own_bytes(process) < before + 32 * MIB, "the memory is free again", 20 * FRAME_TIMEOUT_S)
        self.assertLess(peak.bytes - before, 300 * MIB)

    def test_lists_that_grow_in_memory(self):
        process = self.process("storage.0")
        before = own_bytes(process)
        calls = frame("apply", list_of_empty_structs(3, 250_000)) * 40
        with Peak(process) as peak, socket.create_connection(self.address("storage.0"), timeout=30) as one:
            with contextlib.suppress(OSError):
                one.sendall(calls)
                while one.recv(65536):  # The end of the connection.
                    pass
        self.assertLess(peak.bytes - before, 64 * MIB)
        self.put_and_get("after_lists")

    def test_many_headers(self):
        head = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"a%d:\r\n" % i for i in range(28_000)) + b"\r\n"
        begun = time.monotonic()
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as one:
                with contextlib.suppress(OSError):
                    one.sendall(head)
                self.assertTrue(one.recv(65536).startswith(b"HTTP/1.1 431 "))
        self.assertLess(time.monotonic() - begun, 5)

    def test_readers_that_never_end(self):
        """Those of one client leave room for its other streams, and for the same streams of others."""
        with contextlib.ExitStack() as readers:
            def read(path, source="127.0.0.1"):
                one = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=(source, 0))
                readers.callback(one.close)
                one.request("GET", path)
                return one.getresponse().status

            self.assertEqual([read("/changes/v1?type=item") for _ in range(32)], [200] * 32)
            self.assertEqual(read("/changes/v1?type=item"), 429)
            self.assertEqual(read("/changes/v1?type=item", "127.0.0.2"), 200)
            self.assertEqual(read("/document/v1/shop/item/docid/?stream=true"), 200)
            self.assertEqual(read("/cluster/v1/tuner/advice"), 200)

    def test_forged_lines(self):
        with socket.create_connection(self.address("storage.0"), timeout=30) as one:
            one.sendall(frame("poll", text_field(7, FORGED.encode())))
            one.recv(65536)
        self.http.send("POST", "/cluster/v1/nodes", {"nodes": ["storage.0"], "action": "up", "reason": FORGED, "dry_run": False})
        wait_until(lambda: "FORGED" in self.cluster.logs(), "logged")
        for path in (self.cluster.directory / "logs").iterdir():
            for line in path.read_bytes().decode().splitlines():
                self.assertNotRegex(line, "^2026-11-28T00:00:00.000000.*FORGED")
                self.assertNotIn("\x1b", line)

    def test_files_are_for_one_user(self):
        """Also with a umask that says something else."""
        self.put_and_get("on_disk")
        for folder, _, names in os.walk(self.cluster.directory):
            for path in [folder] + [os.path.join(folder, name) for name in names]:
                self.assertEqual(oct(stat.S_IMODE(os.lstat(path).st_mode) & 0o077), "0o0", path)

    def test_logs_rotate(self):
        log = self.cluster.directory / "logs" / "storage.1.log"
        moved = log.with_suffix(".moved")
        log.rename(moved)
        os.kill(self.process("storage.1"), signal.SIGHUP)
        wait_until(log.exists, "the log is opened again")
        self.assertEqual(stat.S_IMODE(log.stat().st_mode), 0o600)
        before = moved.stat().st_size
        with socket.create_connection(self.address("storage.1"), timeout=30) as one:
            one.sendall(b"GET / HTTP/1.1\r\n\r\n")
            wait_until(lambda: log.stat().st_size > 0, "a line in the new file")
        self.assertEqual(moved.stat().st_size, before)


class PreparedFolderTest(unittest.TestCase):
    """What `fjord local` does with a folder in which another user has been."""

    def setUp(self):
        self.cluster = harness.Cluster(storage=1, redundancy=1)
        self.addCleanup(self.cluster.close)
        self.folder = self.cluster.directory

    def local(self, *arguments):
        return run_program("fjord", "local", arguments[0], "--dir", self.folder, *arguments[1:])

    def create(self):
        made = self.local("create", "--storage", "1", "--redundancy", "1", "--gateways", "0", "--ports", "any")
        self.assertEqual(made.code, harness.OK, made)

    def test_a_folder_that_others_can_change(self):
        self.create()
        self.folder.chmod(0o777)
        for command in ("start", "stop", "status"):
            refused = self.local(command)
            self.assertNotEqual(refused.code, harness.OK, refused)
            self.assertIn("chmod go-rwx", refused.err)
        self.folder.chmod(0o700)

    @unittest.skipIf(os.geteuid() != 0, "only root can give a folder away")
    def test_a_folder_of_another_user(self):
        self.create()
        os.chown(self.folder, OTHER_USER, OTHER_USER)
        refused = self.local("start")
        os.chown(self.folder, 0, 0)
        self.assertNotEqual(refused.code, harness.OK, refused)
        self.assertIn(f"belongs to user {OTHER_USER}", refused.err)
        self.assertFalse((self.folder / "logs").exists())

    def test_a_link_in_the_place_of_a_log(self):
        self.create()
        target = self.cluster.file("precious", "mine\n")
        (self.folder / "logs").mkdir(mode=0o700)
        for link in (os.symlink, os.link):
            log = self.folder / "logs" / "storage.0.log"
            link(target, log)
            refused = self.local("start")
            self.assertNotEqual(refused.code, harness.OK, refused)
            self.assertEqual(target.read_text(), "mine\n")
            log.unlink()
            self.local("stop")

    def test_a_process_id_of_another_program(self):
        self.create()
        (self.folder / "run").mkdir(mode=0o700)
        with subprocess.Popen(["sleep", "600"]) as other:
            self.addCleanup(other.kill)
            started = (pathlib.Path("/proc") / str(other.pid) / "stat").read_text().rsplit(")", 1)[1].split()[19]
            (self.folder / "run" / "storage.0.pid").write_text(f"{other.pid} {started}\n")
            self.local("kill", "storage.0")
            self.assertEqual(self.local("stop").code, harness.OK)
            self.assertIsNone(other.poll())
            other.kill()


if __name__ == "__main__":
    harness.main()
