"""Storage nodes come and go under load, and processes are killed in the middle of it: counters and records stay right.

Each round adds a storage node and retires an older one, and kills a process of any role while documents are on their way.
FJORD_FAULT_SEED repeats the choices of a run, `--rounds N` says how many rounds.
"""

import sys
import time
import unittest

import faults
import harness

ROUNDS = 2


class MembershipTest(unittest.TestCase):
    def kill_one(self, cluster, random_):
        """Kills a process at a moment within the next second or so, and restarts it after a similar time."""
        time.sleep(random_.uniform(0, 1))
        victim = random_.choice(cluster.names)
        cluster.kill(victim)
        time.sleep(random_.uniform(0, 1))
        cluster.start(victim)

    def repeat(self, cluster, *arguments):
        """Repeats a command that fails while the controller is unavailable, since it may just have been killed."""
        def done():
            return cluster.fjord(*arguments, "--timeout", 10).code == harness.OK
        harness.wait_until(done, " ".join(arguments), 60)

    def wait_moved(self, cluster, name, empty):
        def reached():
            shown = cluster.fjord("status", "-o", "json", "--timeout", 5)
            if not shown.out:
                return False
            status = shown.json()
            nodes = {node["node"]: node for node in status["nodes"]}
            buckets = status["buckets"]
            return (name in nodes and (nodes[name]["buckets"] == 0) == empty and buckets["total"] > 0
                    and buckets["out_of_sync"] + buckets["unavailable"] == 0)
        try:
            harness.wait_until(reached, f"{name} is {'empty' if empty else 'full'}", 60)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{cluster.fjord('status')}{cluster.logs()}") from None

    def test_nodes_come_and_go(self):
        seed = faults.seed_of_run()
        random_ = faults.chooser(seed)
        with faults.Processes(storage=3, distributors=2, redundancy=2) as cluster, \
                faults.Torture(cluster, seed, raisers=8) as torture:
            begin = time.monotonic()
            torture.start()
            for _ in range(ROUNDS):
                added = cluster.add_storage()
                self.kill_one(cluster, random_)
                self.wait_moved(cluster, added, empty=False)
                # One of the older nodes.
                retired = random_.choice([name for name in cluster.names if name.startswith("storage.") and name != added])
                self.repeat(cluster, "node", "retire", retired)
                self.kill_one(cluster, random_)
                self.wait_moved(cluster, retired, empty=True)
                self.repeat(cluster, "node", "remove", retired)
                cluster.end(retired)
                cluster.names.remove(retired)
            cluster.wait_healthy()
            torture.wait_for(raise_applied=50 * ROUNDS, put_applied=50 * ROUNDS)
            counts = torture.stop_and_check()
            cluster.check_running()
            print(f"{ROUNDS} rounds in {time.monotonic() - begin:.0f} s: {counts}", flush=True)


if __name__ == "__main__":
    if "--rounds" in sys.argv:
        at = sys.argv.index("--rounds")
        ROUNDS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    harness.main()
