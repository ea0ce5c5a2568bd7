"""The gateway's connections on real processes: HTTP/2, TLS, many, idle, slow and hostile clients."""

import contextlib
import gzip
import json
import re
import resource
import socket
import ssl
import struct
import subprocess
import threading
import time
import unittest

from harness import Cluster, free_ports, wait_until

SCHEMA = "document item {\n  field title type string { }\n}"
ROOT = "/document/v1/shop/item/docid/"
GET = b"GET /status.html HTTP/1.1\r\nHost: localhost\r\n\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 1, 3, 4, 6, 7, 8, 9  # Types of frames.


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def get_of(path):
    """Returns the header block of a GET, without compression."""
    block = b"\x82\x86"  # :method GET, :scheme http
    for name, value in ((b":path", path), (b":authority", b"localhost")):
        block += b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
    return block


def resident_kb(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1])


def read_all(one):
    """Returns everything until the server ends the connection."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while part := one.recv(65536):
            received += part
    return received


class HttpTransportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port, cls.tls_port = free_ports(2)
        cls.cluster = Cluster(storage=1, redundancy=1, settings=(
            f"gateways:\n  - address: 127.0.0.1:{cls.port}\n    tls_address: 127.0.0.1:{cls.tls_port}\n"
            "    certificate: cert.pem\n    key: key.pem\n"))
        cls.addClassCleanup(cls.cluster.close)
        cls.certificate = cls.cluster.directory / "cert.pem"
        cls.certificate.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", cls.certificate.parent / "key.pem", "-out", cls.certificate, "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        cls.cluster.start()
        schema = cls.cluster.folder / "item.sd"
        schema.write_text(SCHEMA)
        cls.cluster.must("schema", "deploy", schema)
        nodes = {one["node"]: one["pid"] for one in cls.cluster.local("status", "-o", "json").json()}
        cls.pid = nodes["gateway.0"]

    def connect(self, timeout=30):
        one = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        self.addCleanup(one.close)
        return one

    def status(self, one):
        """Reads the answer to GET and returns its status."""
        received = b""
        while b'{"status":' not in received and b'"message"' not in received:
            part = one.recv(65536)
            if not part:
                break
            received += part
        return int(received.split()[1]) if received else 0

    def check_serves(self):
        begun = time.monotonic()
        one = self.connect()
        one.sendall(GET)
        self.assertEqual(self.status(one), 200)
        self.assertLess(time.monotonic() - begun, 5)

    def refusals(self, reason):
        page = self.curl("/metrics")
        found = re.search(rf'fjord_http_refusals_total{{reason="{reason}"}} (\d+)', page.stdout)
        return int(found[1]) if found else 0

    def curl(self, path, *arguments, scheme="http", stdin=None):
        port = self.port if scheme == "http" else self.tls_port
        return subprocess.run(["curl", "-sS", "--max-time", "60", *arguments, f"{scheme}://127.0.0.1:{port}{path}"],
                              capture_output=True, text=True, input=stdin)

    # Protocols

    def test_http2_and_http1_on_one_port(self):
        big = json.dumps({"fields": {"title": "z" * 2_000_000}})
        for version, seen in (("--http2-prior-knowledge", "2"), ("--http1.1", "1.1"), ("--http2", "1.1")):
            path = ROOT + version
            put = self.curl(path, version, "-d", "@-", "-w", "%{http_code} %{http_version}", "-o", "/dev/null", stdin=big)
            self.assertEqual(put.stdout, f"200 {seen}", put.stderr)
            got = self.curl(path, version)
            self.assertEqual(json.loads(got.stdout)["fields"], {"title": "z" * 2_000_000}, got.stderr)
            missing = self.curl(ROOT + "missing", version, "-w", " %{http_code}")
            self.assertTrue(missing.stdout.endswith("} 404"), missing.stdout)

    def test_tls_chooses_by_alpn(self):
        for version, seen in (("--http2", "2"), ("--http1.1", "1.1"), ("--no-alpn", "1.1")):
            got = self.curl("/status.html", version, "--cacert", self.certificate, "-w", " %{http_version}", scheme="https")
            self.assertEqual(got.stdout, '{"status":{"code":"up"}} ' + seen, got.stderr)
        body = json.dumps({"fields": {"title": "t" * 1_000_000}})
        put = self.curl(ROOT + "tls", "--http2", "--cacert", self.certificate, "-d", "@-", scheme="https", stdin=body)
        self.assertEqual(json.loads(put.stdout)["id"], "id:shop:item::tls", put.stderr)
        shown = self.curl("/metrics").stdout
        end = float(re.search("^fjord_gateway_certificate_end_seconds ([0-9.e+]+)$", shown, re.M)[1])
        self.assertLess(abs(end - time.time() - 2 * 86_400), 3_600)
        got = self.curl(ROOT + "tls", "--http1.1", "--cacert", self.certificate, scheme="https")
        self.assertEqual(len(json.loads(got.stdout)["fields"]["title"]), 1_000_000)

    def test_tls_refuses_old_versions_and_cleartext(self):
        old = self.curl("/status.html", "--tls-max", "1.1", "--ciphers", "DEFAULT:@SECLEVEL=0", "--cacert", self.certificate,
                        scheme="https")
        self.assertEqual(old.returncode, 35, old.stderr)
        with socket.create_connection(("127.0.0.1", self.tls_port), timeout=30) as one:
            one.sendall(GET)
            self.assertNotIn(b"200", read_all(one))
        context = ssl.create_default_context(cafile=self.certificate)
        context.set_alpn_protocols(["spdy/3"])
        with socket.create_connection(("127.0.0.1", self.tls_port), timeout=30) as one:
            with self.assertRaises(ssl.SSLError):
                context.wrap_socket(one, server_hostname="127.0.0.1")

    def test_answers_are_compressed_for_those_who_take_it(self):
        self.curl(ROOT + "packed", "-d", "@-", stdin=json.dumps({"fields": {"title": "p" * 500_000}}))
        for version in ("--http2-prior-knowledge", "--http1.1"):
            got = self.curl(ROOT + "packed", version, "--compressed", "-w", "\n%{size_download}")
            text, size = got.stdout.split("\n")
            self.assertEqual(json.loads(text)["fields"]["title"], "p" * 500_000)
            self.assertLess(int(size), 20_000)

    def test_request_ids_are_in_answers_and_in_the_log(self):
        got = self.curl("/absent/path", "--http2-prior-knowledge", "-D", "-", "-o", "/dev/null")
        request_id = re.search("x-request-id: (.*)\r?\n", got.stdout)[1].strip()
        log = self.cluster.directory / "logs" / "gateway.0.log"
        lines = wait_until(lambda: [line for line in log.read_text().splitlines() if request_id in line], "logged")
        self.assertRegex(lines[0], f"{request_id} GET /absent/path 404 [0-9]+ us [0-9]+ bytes HTTP/2$")

    # Many, idle and slow clients

    def test_a_thousand_connections_in_one_second(self):
        begun = time.monotonic()
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=30)) for _ in range(1000)]
            for one in sockets:
                one.sendall(GET)
            self.assertEqual([self.status(one) for one in sockets], [200] * 1000)
        print(f"1,000 connections with a request each: {time.monotonic() - begun:.2f} s")

    def test_ten_thousand_idle_connections_are_small(self):
        wanted = min(10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 500)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted + 500, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        for opening, name in ((GET, "HTTP/1.1"), (PREFACE, "HTTP/2")):
            before = resident_kb(self.pid)
            with contextlib.ExitStack() as stack:
                sockets = []
                for _ in range(wanted):
                    sockets.append(stack.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=60)))
                    sockets[-1].sendall(opening)
                for one in sockets:
                    self.assertTrue(one.recv(10))
                self.check_serves()
                grown = resident_kb(self.pid) - before
                print(f"{wanted} idle connections of {name}: {grown} kB more, {resident_kb(self.pid)} kB in all")
                self.assertLess(grown, 30 * wanted)
            wait_until(lambda: self.open_connections() < 100, "the connections are gone")

    def open_connections(self):
        return float(re.search(r"\nfjord_http_connections (\S+)", self.curl("/metrics").stdout)[1])

    def test_a_slow_loris_keeps_nobody_out_and_gets_408(self):
        with contextlib.ExitStack() as stack:
            slow = []
            for i in range(500):
                one = stack.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=60))
                one.sendall((b"GET /status.html HTTP/1.1\r\nX: ", PREFACE[:10], b"P")[i % 3])
                slow.append(one)
            before = time.monotonic()
            while time.monotonic() < before + 3:
                self.check_serves()
                for one in slow[::3]:
                    one.sendall(b"a")
            self.assertEqual(slow[0].recv(100).split()[1], b"408")
            for one in slow[1:3]:
                self.assertEqual(one.recv(100).split()[1], b"408")
            self.assertLess(time.monotonic() - before, 20)

    def test_a_slow_reader_keeps_nobody_out(self):
        self.curl(ROOT + "large", "-d", "@-", stdin=json.dumps({"fields": {"title": "l" * 3_000_000}}))
        for i in range(30):
            one = self.connect()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            if i % 2:
                one.sendall(f"GET {ROOT}large HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            else:
                one.sendall(PREFACE + frame(HEADERS, 5, 1, get_of(ROOT.encode() + b"large")))
        for _ in range(20):
            self.check_serves()

    # Hostile clients

    def test_floods_of_frames_end_the_connection_only(self):
        request = get_of(b"/status.html")
        reset = b"".join(frame(HEADERS, 5, 2 * i + 1, request) + frame(RST_STREAM, 0, 2 * i + 1, b"\0\0\0\x08")
                         for i in range(20_000))
        floods = {"rapid reset": reset, "ping": frame(PING, 0, 0, b"12345678") * 100_000, "settings": frame(SETTINGS) * 100_000,
                  "window": frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1") * 100_000,
                  "continuation": frame(HEADERS, 1, 1, request) + frame(CONTINUATION, 0, 1, b"\0\1a\1b") * 100_000}
        for name, flood in floods.items():
            before = resident_kb(self.pid)
            one = self.connect()
            with contextlib.suppress(ConnectionError, BrokenPipeError):
                one.sendall(PREFACE + flood)
            answer = read_all(one)
            self.assertLess(resident_kb(self.pid) - before, 50_000, name)
            # A reset can overtake the GOAWAY.
            self.assertTrue(answer == b"" or bytes([GOAWAY]) in answer, name)
            self.check_serves()
        self.assertGreaterEqual(self.refusals("flood"), 4)

    def test_a_window_of_nothing_holds_little(self):
        self.curl(ROOT + "held", "-d", "@-", stdin=json.dumps({"fields": {"title": "h" * 100_000}}))
        before = resident_kb(self.pid)
        settings = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
        for _ in range(10):
            one = self.connect()
            one.sendall(PREFACE + settings + b"".join(
                frame(HEADERS, 5, 2 * i + 1, get_of(ROOT.encode() + b"held")) for i in range(100)))
        self.check_serves()
        self.assertLess(resident_kb(self.pid) - before, 300_000)  # 100 MB of answers wait.

    def test_bombs_are_refused_within_their_memory(self):
        bomb = gzip.compress(b"0" * (101 << 20))
        before = resident_kb(self.pid)
        answers = []

        def send():
            with socket.create_connection(("127.0.0.1", self.port), timeout=60) as one:
                one.sendall(f"POST {ROOT}bomb HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n"
                            f"Content-Length: {len(bomb)}\r\nConnection: close\r\n\r\n".encode() + bomb)
                answers.append(read_all(one).split()[1])

        threads = [threading.Thread(target=send) for _ in range(8)]
        for one in threads:
            one.start()
        self.check_serves()
        for one in threads:
            one.join()
        self.assertTrue(set(answers) <= {b"413", b"429"}, answers)
        self.assertIn(b"413", answers)
        self.assertLess(resident_kb(self.pid) - before, 400_000)

    def test_too_large_requests_over_http2(self):
        length = b"\x7f\x8d\x14"  # 2,700 with a prefix of seven bits (RFC 7541, 5.1).
        block = get_of(b"/status.html") + b"".join(b"\0\4x%03d" % i + length + b"y" * 2700 for i in range(100))
        parts = [block[i:i + 16_000] for i in range(0, len(block), 16_000)]
        one = self.connect()
        one.sendall(PREFACE + frame(HEADERS, 1, 1, parts[0]) + b"".join(
            frame(CONTINUATION, 4 if part is parts[-1] else 0, 1, part) for part in parts[1:]))
        received = b""
        while b"262144 bytes" not in received:
            received += one.recv(65536)
        self.assertIn(b"the header has more than 262144 bytes", received)
        large = self.cluster.folder / "large"
        with open(large, "wb") as file:
            file.truncate(101 << 20)
        body = self.curl(ROOT + "x", "--http2-prior-knowledge", "-T", large, "-X", "POST", "-w", " %{http_code}")
        self.assertTrue(body.stdout.endswith(" 413"), body.stdout + body.stderr)

    def test_smuggled_requests_are_not_answered(self):
        second = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
        line = b"POST " + ROOT.encode() + b"s HTTP/1.1\r\nHost: localhost\r\n"
        for head, body in (
                (b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
                (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", b"0\r\n\r\n"),
                (b"Transfer-Encoding: x, chunked\r\n", b"0\r\n\r\n"), (b"Transfer-Encoding:\x0bchunked\r\n", b"0\r\n\r\n"),
                (b"Transfer-Encoding : chunked\r\n", b"0\r\n\r\n"), (b" Content-Length: 0\r\n", b""),
                (b"Content-Length: 0\r\nContent-Length: 40\r\n", b""), (b"Content-Length: +0\r\n", b""),
                (b"Content-Length: 0\nX: y\r\n", b""), (b"Transfer-Encoding: chunked\r\n", b"0;\n\r\n"),
                (b"Transfer-Encoding: chunked\r\n", b"1\r\nXX\r\n0\r\n\r\n")):
            one = self.connect()
            one.sendall(line + head + b"\r\n" + body + second)
            answer = read_all(one)
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, (head, answer))
            self.assertIn(b"HTTP/1.1 400 ", answer[:20], head)


if __name__ == "__main__":
    unittest.main()
