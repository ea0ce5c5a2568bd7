"""Gateways of the clusters that `fjord local start` and `fjord dev` make: how many, where, and how they end."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import yaml

from harness import BIN, Cluster, run_program, wait_until
from http_documents import Http, ROOT


def is_closed(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


def ask(address, target):
    """Returns the status of one request."""
    connection = Http(int(address.rsplit(":", 1)[1]))
    try:
        return connection.send("GET", target)[0]
    finally:
        connection.connection.close()


class LocalGatewayTest(unittest.TestCase):
    PRINTED = re.compile("^fjord: HTTP clients: http://(127.0.0.1:[0-9]+)/$", re.M)

    def start(self, directory, *options):
        return run_program("fjord", "local", "start", "--dir", directory, "--storage", 1, *options)

    def test_a_local_cluster_has_one_gateway_by_default(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.addCleanup(lambda: (folder / "cluster.yaml").exists() and run_program("fjord", "local", "stop", "--dir", folder))
        [address] = self.PRINTED.findall(self.start(folder).err)
        self.assertEqual(ask(address, "/state/v1/health"), 200)
        # The number is that of the folder; another one is refused.
        self.assertEqual(self.start(folder).code, 0)
        self.assertEqual(self.start(folder, "--gateways", 1).code, 0)
        refused = self.start(folder, "--gateways", 0)
        self.assertEqual(refused.code, 1, refused)
        self.assertIn("holds a cluster with --gateways 1, which cannot be changed to 0 here", refused.err)
        # A second cluster takes another port, and keeps it.
        second = folder / "second"
        self.addCleanup(lambda: run_program("fjord", "local", "stop", "--dir", second))
        [next_address] = self.PRINTED.findall(self.start(second).err)
        self.assertNotEqual(next_address, address)
        run_program("fjord", "local", "stop", "--dir", second)
        run_program("fjord", "local", "stop", "--dir", folder)
        self.assertEqual(self.PRINTED.findall(self.start(second).err), [next_address])
        status = json.loads(run_program("fjord", "local", "status", "--dir", second, "-o", "json").out)
        self.assertEqual([one["http"] for one in status if one["node"] == "gateway.0"], [next_address])
        self.assertEqual(ask(next_address, "/state/v1/health"), 200)

    def test_clusters_that_start_at_the_same_time(self):
        """They choose the same ports, so that most of them have to try again with others."""
        with tempfile.TemporaryDirectory(prefix="fjord-test-") as folder:
            folders = [f"{folder}/{number}" for number in range(4)]
            try:
                commands = [subprocess.Popen([BIN / "fjord", "local", "start", "--dir", one, "--storage", "1"], stdout=subprocess.DEVNULL,
                                             stderr=subprocess.PIPE, text=True) for one in folders]
                printed = [command.communicate(timeout=120)[1] for command in commands]
                self.assertEqual([command.returncode for command in commands], [0] * len(folders), printed)
                addresses = {self.PRINTED.findall(text)[0] for text in printed}
                self.assertEqual([ask(address, "/state/v1/health") for address in addresses], [200] * len(folders))
            finally:
                for one in folders:
                    run_program("fjord", "local", "stop", "--dir", one)

    def test_a_cluster_in_one_process_has_one_gateway_by_default(self):
        with tempfile.TemporaryDirectory(prefix="fjord-test-") as folder:
            for options in ((), ("--gateways", "1")):
                with subprocess.Popen([BIN / "fjord", "dev", "--dir", folder, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True) as dev:
                    try:
                        self.assertTrue(dev.stdout.readline().startswith("export FJORD_CLUSTER="))
                        config = yaml.safe_load((pathlib.Path(folder) / "dev.yaml").read_text())
                        address = config["gateways"][0]["address"]
                        wait_until(lambda address=address: ask(address, "/state/v1/health") == 200, "the gateway has a distributor")
                        dev.send_signal(signal.SIGINT)
                        _, err = dev.communicate(timeout=30)
                    finally:
                        dev.kill()
                self.assertEqual(dev.returncode, 0, err)
                self.assertEqual(self.PRINTED.findall(err), [address])
            refused = run_program("fjord", "dev", "--dir", folder, "--gateways", 2)
            self.assertEqual(refused.code, 1, refused)
            self.assertIn("cannot be changed to 2 here", refused.err)

    def test_a_local_cluster_can_have_gateways(self):
        cluster = Cluster(storage=1, redundancy=1, gateways=2)
        self.addCleanup(cluster.close)
        started = cluster.start()
        addresses = [address.split(":")[1] for address in self.PRINTED.findall(started.err)]
        self.assertEqual(len(set(addresses)), 2, started)
        for port in addresses:  # Without a wait: the command has waited.
            connection = Http(int(port))
            self.assertEqual(connection.send("GET", "/ApplicationStatus")[0], 200)
            connection.connection.close()
        cluster.local("kill", "distributor.0")
        connection = Http(int(addresses[0]))
        self.addCleanup(connection.connection.close)
        self.assertEqual(connection.send("GET", "/state/v1/health")[0], 503)
        self.assertEqual(connection.headers["Retry-After"], "1")
        self.assertEqual(connection.send("GET", "/ApplicationStatus")[0], 200)
        cluster.restart("distributor.0")
        self.assertEqual(connection.send("GET", "/state/v1/health")[0], 200)
        nodes = {one["node"]: one["address"] for one in cluster.local("status", "-o", "json").json()}
        self.assertEqual(nodes["gateway.1"], f"127.0.0.1:{addresses[1]}")
        cluster.local("kill", "gateway.1")
        again = cluster.start()
        self.assertIn("1 of 5 processes started", again.err)
        self.check_stop(cluster, int(addresses[0]))

    def check_stop(self, cluster, port):
        """A request whose header has arrived is answered, although the gateway takes no more connections."""
        body = b'{"fields":{}}'
        with socket.create_connection(("127.0.0.1", port), timeout=30) as one:
            one.sendall(b"POST " + ROOT.encode() + b"last?dryRun=true HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(body))
            self.assertTrue(one.recv(1000).startswith(b"HTTP/1.1 100 "))
            processes = {process["node"]: process["pid"] for process in cluster.local("status", "-o", "json").json()}
            os.kill(processes["gateway.0"], signal.SIGTERM)
            wait_until(lambda: is_closed(port), "the gateway takes no more connections")
            one.sendall(body)
            self.assertIn(b"HTTP/1.1 200 ", one.recv(1000))


if __name__ == "__main__":
    unittest.main()
