"""Hosts in network namespaces, links cut, one-way, slow and lossy: nothing that was acknowledged is lost or comes back.

Each node and the clients are on a host of their own (network.py). The last storage node is cut off from everybody all the time, and has
to be back soon after the end, however long that was. Skipped where namespaces are not permitted. FJORD_FAULT_SEED
repeats the choices of a run, `--faults N` says how many faults.
"""

import sys
import time
import unittest

import faults
import harness
import network

FAULTS = 14
LENGTH_MAX = 5.0
HEALTHY_S = 60  # After the last fault; TCP alone would wait for as long as the cut lasted.
KINDS = ("cut", "one-way", "slow", "lossy")


class NetworkTest(unittest.TestCase):
    def break_links(self, net, random_, nodes):
        """Draws a fault of some links. Returns its description and the links, (from, to)."""
        kind = random_.choice(KINDS)
        victim = random_.choice(nodes)
        others = [name for name in [*nodes, "client"] if name != victim]
        # From all hosts, or from one or two.
        if random_.random() < 0.6:
            others = random_.sample(others, random_.randint(1, 2))
        pairs = [(victim, other) for other in others]
        if kind == "one-way":
            if random_.random() < 0.5:
                pairs = [(other, victim) for victim, other in pairs]
        else:
            pairs += [(other, victim) for victim, other in pairs]
        link = {"cut": lambda: network.Link(cut=True), "one-way": lambda: network.Link(cut=True),
                "slow": lambda: network.Link(delay=random_.uniform(0.02, 0.3), jitter=random_.uniform(0, 0.1)),
                "lossy": lambda: network.Link(loss=random_.uniform(0.02, 0.3))}[kind]()
        for source, target in pairs:
            net.set(source, target, link)
        return kind, pairs

    def test_links(self):
        seed = faults.seed_of_run()
        random_ = faults.chooser(seed)
        nodes = ["fleetcontroller.0", "distributor.0", "distributor.1", "storage.0", "storage.1", "storage.2", "storage.3"]
        with network.Network([*nodes, "client"], seed) as net:
            addresses = {name: f"{net.hosts[name].address}:{19100 + index}" for index, name in enumerate(nodes)}
            enter = {name: net.hosts[name].enter for name in nodes}
            cluster = faults.Processes(storage=4, distributors=2, redundancy=2, addresses=addresses, enter=enter)
            cluster.client_enter = net.hosts["client"].enter
            with cluster, faults.Torture(cluster, seed, timeout_min_ms=500, timeout_max_ms=8000) as torture:
                self.run_faults(net, random_, nodes, cluster, torture)

    def run_faults(self, net, random_, nodes, cluster, torture):
        running = faults.Faults(random_, cluster)
        kinds = dict.fromkeys(KINDS, 0)

        def heal(pairs):
            for source, target in pairs:
                net.set(source, target, None)

        begin = time.monotonic()
        torture.start()
        away = nodes[-1]
        always = [pair for other in [*nodes[:-1], "client"] for pair in ((away, other), (other, away))]
        for source, target in always:
            net.set(source, target, network.Link(cut=True))
        for _ in range(FAULTS):
            running.wait(random_.expovariate(0.6))
            cluster.check_running()
            kind, pairs = self.break_links(net, random_, nodes[:-1])
            kinds[kind] += 1
            running.after(random_.uniform(0.3, LENGTH_MAX), lambda pairs=pairs: heal(pairs))
        while running.pending:
            running.wait(0.1)
        net.heal()
        healed = time.monotonic()
        cluster.wait_healthy(HEALTHY_S)
        healthy = time.monotonic() - healed
        before = torture.status()["counts"]["put_applied"]
        harness.wait_until(lambda: torture.status()["counts"]["put_applied"] > before + 50, "clients go on")
        torture.wait_for(put_applied=2 * FAULTS, raise_applied=FAULTS)
        counts = torture.stop_and_check()
        cluster.check_running()
        print(f"{FAULTS} faults {kinds} in {time.monotonic() - begin:.0f} s, healthy {healthy:.1f} s after the last; packets passed {net.passed}, delayed {net.delayed}, "
              f"lost {net.lost}: {counts}", flush=True)
        self.assertGreater(net.lost, 0)


if __name__ == "__main__":
    if "--faults" in sys.argv:
        at = sys.argv.index("--faults")
        FAULTS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    try:
        with network.Network(["probe"], 0):
            pass
    except network.NotPermitted as error:
        print(f"SKIPPED: {error}", file=sys.stderr)
        sys.exit(harness.SKIPPED)
    harness.main()
