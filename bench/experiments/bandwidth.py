#!/usr/bin/env python3
"""What puts cost the network: bytes counted between hosts in network namespaces against the formula [VDS 2007, 6.4
and table 6.1]. Needs the right to make network namespaces."""

import json
import math
import pathlib
import random
import sys

import experiment
from experiment import harness

import faults
import network

HEADER = 200  # Bytes of a message beside the document, as in [VDS 2007, 6.4.1].
SEGMENT = 1460
ETHERNET = 18  # MAC header and checksum of a packet
PACKET = 58  # Ethernet, IP and TCP headers, as [VDS 2007, 6.4.1] counts them.
STORAGE = 6


def expected(payload, copies):
    """Bytes on all links for one put ([VDS 2007, 6.4.1])."""
    packets = math.ceil(HEADER / SEGMENT) + math.ceil((HEADER + payload) / SEGMENT)
    return (copies + 1) * (2 * HEADER + payload + packets * PACKET)


def write_feed(path, documents, payload):
    chooser = random.Random(payload)
    with open(path, "w") as file:
        for i in range(documents):
            file.write(json.dumps({"put": f"id:net:item::{i:09}", "fields": {"n": i, "text": chooser.randbytes(payload // 2).hex()}}) + "\n")


def one(payload, copies, documents, in_flight):
    nodes = ["fleetcontroller.0", "distributor.0", *(f"storage.{i}" for i in range(STORAGE))]
    with network.Network([*nodes, "client"], 1, mtu=1500) as net:
        addresses = {name: f"{net.hosts[name].address}:19100" for name in nodes}
        enter = {name: net.hosts[name].enter for name in nodes}
        cluster = faults.Processes(storage=STORAGE, distributors=1, redundancy=copies, addresses=addresses, enter=enter)
        cluster.client_enter = net.hosts["client"].enter
        with cluster:
            path = pathlib.Path(cluster.folder) / "feed.jsonl"
            write_feed(path, documents, payload)
            packets, size = net.passed, net.passed_bytes
            seconds, _, fed = experiment.timed(lambda: cluster.run_client("fjord", "feed", path, "--in-flight", in_flight, timeout=600))
            packets, size = net.passed - packets, net.passed_bytes - size
            assert fed.code == harness.OK and fed.json()["ok"] == documents, fed
    return seconds, packets, size + packets * ETHERNET


def measure(options):
    documents = 2500 if options.quick else 25000
    for payload in (4096, 16384):
        for copies in (1, 3) if options.quick else (1, 2, 3, 4):
            for in_flight in (1, 64):
                if in_flight == 1 and not options.quick:
                    documents_now = documents // 10  # Each put waits for the one before.
                else:
                    documents_now = documents
                seconds, packets, size = one(payload, copies, documents_now, in_flight)
                yield {"payload": payload, "copies": copies, "in_flight": in_flight, "documents": documents_now, "seconds": seconds,
                       "packets": packets, "bytes": size, "expected": expected(payload, copies) * documents_now}
                experiment.say(f"{payload} bytes, {copies} copies, {in_flight} at a time: {size / documents_now / 1000:.2f} kB a document, "
                               f"expected {expected(payload, copies) / 1000:.2f}")


def show(rows, output):
    experiment.table(["document", "copies", "puts under way", "expected kB a put", "measured kB a put", "difference kB", "difference %", "packets a put"],
                     [(f"{row['payload'] // 1024} kB", row["copies"], row["in_flight"], row["expected"] / row["documents"] / 1000,
                       row["bytes"] / row["documents"] / 1000, (row["bytes"] - row["expected"]) / row["documents"] / 1000,
                       (row["bytes"] - row["expected"]) / row["bytes"] * 100, row["packets"] / row["documents"]) for row in rows])
    lines = {}
    for row in rows:
        lines.setdefault(f"{row['payload'] // 1024} kB, measured, {row['in_flight']} under way", []).append(
            (row["copies"], row["bytes"] / row["documents"] / 1000))
        lines.setdefault(f"{row['payload'] // 1024} kB, expected", []).append((row["copies"], row["expected"] / row["documents"] / 1000))
    experiment.plot_lines(output / "bandwidth.png", lines, "copies", "kB a put", "bytes on all links for a put", log_x=False)


if __name__ == "__main__":
    try:
        experiment.run(__doc__, "bandwidth", measure, show)
    except network.NotPermitted as error:
        sys.exit(f"bandwidth: {error}")
