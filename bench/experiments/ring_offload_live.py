#!/usr/bin/env python3
"""[ADLB, 4] on four real storage nodes: a server gives keys to a neighbour on the ring when it has done as many operations as a limit says,
beside the balancer of Fjord with diffusion and descent."""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import experiment
from experiment import harness

BITS = 8
BUCKETS = 1 << BITS
NODES = 4
CLIENTS = 3
ROUND = "200ms"
LIMIT = 500  # Operations after which a server looks at its neighbours, O of the simulation.
SCHEMA = "document item { field value type string { body } }"
VALUE = json.dumps({"value": "x" * 100})
COMPILED = tempfile.TemporaryDirectory(prefix="fjord-api-")


def api():
    """Returns the modules that the Thrift compiler makes of the IDL."""
    folder = os.environ.get("FJORD_GENERATED_PYTHON")
    if not folder:
        folder = COMPILED.name
        subprocess.run(["thrift", "-r", "--gen", "py", "-out", folder, str(experiment.ROOT / "api" / "client.thrift")], check=True)
        os.environ["FJORD_GENERATED_PYTHON"] = folder
    import thrift_client  # noqa: E402, in test/integration; it needs the variable above
    from fjord_api import DistributorService, ttypes
    from fjord_client.ttypes import ReadDocument, WriteDocument
    return thrift_client, DistributorService, ttypes, ReadDocument, WriteDocument


thrift_client, DistributorService, ttypes, ReadDocument, WriteDocument = api()


def draw_keys(shape, count, seed):
    """Returns buckets in the order of the ring; the shapes are those of the simulation."""
    chooser = random.Random(seed)
    keys = []
    while len(keys) < count:
        if shape == "normal":
            at = chooser.gauss(BUCKETS / 2, BUCKETS / 6)
        elif shape == "spiked" and chooser.random() < 0.5:
            at = BUCKETS * (4 + chooser.random()) / 9
        else:
            at = BUCKETS * chooser.random()
        if 0 <= at < BUCKETS:
            keys.append(int(at))
    return keys


class Balancer:
    """Orders to the balancer in the fleet controller, by way of a distributor."""

    def __init__(self, address):
        self.connection = thrift_client.Connection(address)
        self.calls = DistributorService.Client(self.connection.calls._iprot)
        self.lock = threading.Lock()

    def ask(self, action, **fields):
        with self.lock:
            return self.calls.balance(ttypes.Balance(action=action, **fields))

    def owners(self):
        """Returns the storage node of each bucket, as the cluster state in force says."""
        reply = self.ask(ttypes.BalanceAction.SLICES)
        return {one.bucket: one.nodes[0] for one in reply.slices if one.nodes}

    def counted(self):
        """Returns how many operations each storage node has executed."""
        reply = self.ask(ttypes.BalanceAction.STATUS)
        return {node.node: node.counted_before + node.counted for node in reply.nodes}

    def move(self, moves, why):
        """Returns whether the moves were accepted. They are on the way then, and in force soon after."""
        version = self.ask(ttypes.BalanceAction.STATUS).state_version
        reply = self.ask(ttypes.BalanceAction.APPLY, state_version=version, reason=why,
                         moves=[ttypes.BalanceMove(bucket=b, source=s, target=t) for b, s, t in moves])
        return (reply.status is None or thrift_client.name_of(reply.status) == "OK") and not reply.refusals, reply


class Ring:
    """The rule of [ADLB, 3] for ranges of buckets. Servers are the storage nodes in order."""

    def __init__(self, balancer, parts, threshold):
        self.balancer, self.parts, self.threshold = balancer, parts, threshold
        self.ranges = [list(range(BUCKETS * n // NODES, BUCKETS * (n + 1) // NODES)) for n in range(NODES)]
        self.operations = [0] * NODES
        self.offloads = self.moved_keys = self.refused = 0
        self.lock = threading.Lock()
        self.wanted = None

    def note(self, bucket, keys):
        """Counts an operation. With each LIMIT-th of a server, it may offload."""
        with self.lock:
            node = next(n for n in range(NODES) if bucket in self.ranges[n])
            self.operations[node] += 1
            if self.operations[node] % LIMIT == 0 and self.wanted is None:
                self.wanted = self.choose(node, keys)

    def choose(self, node, keys):
        sides = [(node - 1) % NODES, (node + 1) % NODES]
        target = min(sides, key=lambda n: self.operations[n])
        own = self.ranges[node]
        if self.operations[target] >= self.operations[node]:
            return None
        pieces = [own[len(own) * i // self.parts:len(own) * (i + 1) // self.parts] for i in range(self.parts)]
        upwards = target == (node + 1) % NODES
        if upwards:
            pieces.reverse()
        held = sum(keys[bucket] for bucket in own)
        taken, count = [], 0
        for piece in pieces[:-1]:  # One part always stays.
            if count >= self.threshold * held:
                break
            taken += piece
            count += sum(keys[bucket] for bucket in piece)
        return (node, target, sorted(taken), count, upwards) if taken else None

    def carry_out(self):
        """Moves what note() has chosen. The clients go on meanwhile."""
        with self.lock:
            wanted = self.wanted
        if wanted is None:
            return
        node, target, taken, count, upwards = wanted
        accepted, reply = self.balancer.move([(bucket, node, target) for bucket in taken], f"offload {node} to {target}")
        with self.lock:
            self.wanted = None
            if not accepted:
                self.refused += 1
                experiment.say(f"offload {node} to {target} refused: {reply.status} {reply.refusals}")
                return
            self.ranges[node] = [bucket for bucket in self.ranges[node] if bucket not in set(taken)]
            self.ranges[target] = taken + self.ranges[target] if upwards else self.ranges[target] + taken
            self.offloads += 1
            self.moved_keys += count


class Clients:
    """Three clients that put all keys and then get them, at a fixed rate in all."""

    def __init__(self, cluster, keys, rate, note):
        self.address, self.keys, self.rate, self.note = cluster.address, keys, rate, note
        self.stored = [0] * BUCKETS
        self.latencies = []
        self.failed = 0
        self.lock = threading.Lock()

    def run(self):
        for kind in ("put", "get"):
            begin = time.monotonic() + 0.05
            threads = [threading.Thread(target=self.work, args=(kind, client, begin)) for client in range(CLIENTS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def work(self, kind, client, begin):
        with thrift_client.Connection(self.address) as calls:
            for number in range(client, len(self.keys), CLIENTS):
                time.sleep(max(0.0, begin + number / self.rate - time.monotonic()))
                bucket = self.keys[number]
                document = f"id:ring:item:n={bucket + BUCKETS * number}:{number}"
                start = time.monotonic()
                if kind == "put":
                    reply = calls.writeDocument(WriteDocument(kind=ttypes.OperationKind.PUT, id=document, json=VALUE))
                else:
                    reply = calls.readDocument(ReadDocument(id=document))
                with self.lock:
                    self.latencies.append(time.monotonic() - start)
                    self.failed += thrift_client.name_of(reply.status) != "OK"
                    self.stored[bucket] += kind == "put"
                self.note(bucket, self.stored)


def cluster_get(cluster, number):
    with thrift_client.Connection(cluster.address) as calls:
        calls.readDocument(ReadDocument(id=f"id:ring:item:n={number}:none"))


def put_in_order(cluster, balancer):
    """Gives each node a quarter of the ring."""
    cluster.must("config", "set", "balancer.mode=advise", "balancer.load=operations", "balancer.round=100ms", "balancer.operations_min=1",
                 "balancer.bytes_part=1")
    said = []

    def done():
        for number in range(20):
            cluster_get(cluster, number)
        owners = balancer.owners()
        moves = [(b, node, NODES * b // BUCKETS) for b, node in owners.items() if node != NODES * b // BUCKETS]
        if moves:
            said[:] = [balancer.move(moves, "a ring")[1]]
        return len(owners) == BUCKETS and not moves
    try:
        harness.wait_until(done, "each node has a quarter of the ring", 90, pause=0.5)
    except AssertionError as error:
        raise AssertionError(f"{error}: {said}") from None
    # No bucket goes back where it came from for 60 rounds, and this was no move of the run.
    first = balancer.ask(ttypes.BalanceAction.STATUS).round
    harness.wait_until(lambda: balancer.ask(ttypes.BalanceAction.STATUS).round > first + 61, "moves are forgotten", 60, pause=0.1)
    cluster.must("config", "set", f"balancer.round={ROUND}")


def imbalance(counts):
    return max(counts) / statistics.mean(counts) if sum(counts) else float("nan")


def run_one(shape, way, keys, rate):
    with harness.Cluster(storage=NODES, distributors=1, redundancy=1, cluster_settings=f"  distribution_bits: {BITS}\n") as cluster:
        cluster.deploy(SCHEMA)
        cluster.must("put", "id:ring:item:n=0:first", VALUE)
        balancer = Balancer(cluster.address)
        # All buckets have to exist before the balancer knows where they are.
        cluster.must("feed", cluster.file("seed.jsonl", "".join(
            json.dumps({"put": f"id:ring:item:n={b}:seed", "fields": {"value": "s"}}) + "\n" for b in range(BUCKETS))))
        put_in_order(cluster, balancer)
        name, parts, threshold = way
        ring = Ring(balancer, parts, threshold) if name == "ring" else None
        if name in ("diffusion", "descent"):
            cluster.must("config", "set", f"balancer.algorithm={name}", "balancer.mode=on")
        clients = Clients(cluster, keys, rate, ring.note if ring else lambda *_: None)
        ended = threading.Event()

        def carry_out():
            while not ended.wait(0.05):
                ring.carry_out()
        worker = threading.Thread(target=carry_out) if ring else None
        if worker:
            worker.start()
        before = balancer.counted()
        clients.run()
        ended.set()
        if worker:
            worker.join()
        time.sleep(0.5)  # The counts of the last round.
        after = balancer.counted()
        owners = balancer.owners()
        history = cluster.must("balance", "history", "-o", "json").json()
        cluster.wait_healthy(60)
        read = cluster.documents()
        steps = [step for step in history if step["why"] != "a ring"]
    held = [sum(clients.stored[b] for b in range(BUCKETS) if owners[b] == n) for n in range(NODES)]
    return {"keys": shape, "rate": rate, "way": name if parts == 0 else f"ring, N = {parts}, T = {100 * threshold:.0f} %",
            "failed": clients.failed, "lost": len(keys) + BUCKETS + 1 - len(read),
            "operations_max_over_mean": imbalance([after[n] - before.get(n, 0) for n in range(NODES)]),
            "keys_max_over_mean": imbalance(held), "steps": ring.offloads if ring else len(steps),
            "refused": ring.refused if ring else 0, "buckets_moved": sum(len(step["moves"]) for step in steps),
            "keys_moved": ring.moved_keys if ring else -1,
            "p50_ms": 1e3 * statistics.median(clients.latencies),
            "p99_ms": 1e3 * statistics.quantiles(clients.latencies, n=100)[-1]}


def measure(options):
    global LIMIT
    count, rate, shapes = 3330, 250, ["equal", "normal", "spiked"]
    rings = [("ring", n, t) for n, t in ((9, 0.10), (9, 0.25), (9, 0.45), (6, 0.25), (3, 0.25))]
    ways = [("none", 0, 0), *rings, ("diffusion", 0, 0), ("descent", 0, 0)]
    if options.quick:
        count, rate, shapes, LIMIT = 500, 400, ["spiked"], 100
        ways = [("ring", 9, 0.25)]
    for shape in shapes:
        keys = draw_keys(shape, count, 1)
        for way in ways:
            row = run_one(shape, way, keys, rate)
            experiment.say(str(row))
            yield row


def show(rows, output):
    experiment.table(["keys", "way", "failed", "lost", "operations max/mean", "keys max/mean at the end", "steps", "refused", "buckets moved",
                      "keys moved", "p50 ms", "p99 ms"],
                     [[row["keys"], row["way"], row["failed"], row["lost"], float(row["operations_max_over_mean"]), float(row["keys_max_over_mean"]),
                       row["steps"], row["refused"], row["buckets_moved"], row["keys_moved"] if row["keys_moved"] >= 0 else "", float(row["p50_ms"]),
                       float(row["p99_ms"])] for row in rows])
    print(f"Operations max/mean is over the four nodes and the whole run; puts and gets in all {rows[0]['rate']} a second. Refused: the balancer let "
          "no bucket go back to where it had come from within 60 rounds.\n")
    if any(row["failed"] or row["lost"] for row in rows):
        sys.exit("ring-offload-live: an operation failed, or a key is lost")
    if not any(row["steps"] for row in rows):
        sys.exit("ring-offload-live: nothing was offloaded")
    for shape in dict.fromkeys(row["keys"] for row in rows):
        of = {row["way"]: float(row["keys_max_over_mean"]) for row in rows if row["keys"] == shape}
        if shape != "equal" and "none" in of and min(of["diffusion"], of["descent"]) >= of["none"]:
            sys.exit(f"ring-offload-live: no balancer levels {shape} keys")


if __name__ == "__main__":
    assert pathlib.Path(harness.BIN / "fjordd").exists(), "build fjordd and fjord first"
    experiment.run(__doc__, "ring-offload-live", measure, show)
