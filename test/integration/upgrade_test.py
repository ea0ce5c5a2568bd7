"""A rolling upgrade under load: each process in turn ends, and comes back with other programs.

With `--old DIR`, the folder of the programs of an earlier version, everything starts as that version and is upgraded process
by process; `--back` then goes back in the same way. Without it old and new are the same: a rolling restart. No operation may
fail meanwhile, and the record (fjord-torture) has to be right. `./run upgrade-test REV` builds the earlier version.
"""

import sys
import time
import unittest

import faults
import harness

OLD = str(harness.BIN)
BACK = False


class UpgradeTest(unittest.TestCase):
    def replace_all(self, cluster, torture, programs):
        """Ends each process and starts it from the folder `programs`, one after the other."""
        def written():
            return torture.status()["counts"].get("put_applied", 0)

        for name in cluster.names:
            cluster.end(name)
            cluster.programs[name] = programs
            cluster.start(name)
            cluster.wait_healthy()
            before = written()
            harness.wait_until(lambda: written() >= before + 50, "writes by both versions together")

    def test_one_after_the_other(self):
        seed = faults.seed_of_run()
        names = ["fleetcontroller.0", "distributor.0", "distributor.1", "storage.0", "storage.1", "storage.2"]
        cluster = faults.Processes(storage=3, distributors=2, redundancy=2, programs=dict.fromkeys(names, OLD))
        with cluster, faults.Torture(cluster, seed, timeout_min_ms=30000, timeout_max_ms=30000) as torture:
            begin = time.monotonic()
            torture.start()
            self.replace_all(cluster, torture, str(harness.BIN))
            upgraded = time.monotonic()
            if BACK:
                self.replace_all(cluster, torture, OLD)
            torture.wait_for(put_applied=500)
            counts = torture.stop_and_check()
            cluster.check_running()
            print(f"{len(cluster.names)} processes in {upgraded - begin:.0f} s, all in {time.monotonic() - begin:.0f} s: {counts}",
                  flush=True)
            failed = {name: number for name, number in counts.items() if name.endswith(("in_doubt", "put_not_applied"))}
            self.assertEqual(failed, {}, f"operations failed{cluster.logs()}")


if __name__ == "__main__":
    if "--old" in sys.argv:
        at = sys.argv.index("--old")
        OLD = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    if "--back" in sys.argv:
        sys.argv.remove("--back")
        BACK = True
    harness.main()
