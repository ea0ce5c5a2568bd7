"""SIGSTOP and SIGCONT of processes around test-and-set: the successes explain the final value of each counter exactly.

Storage nodes, distributors and the controller stop for a tenth of a second up to `--pause-max SECONDS`, one or several at once, and go
on as if nothing had been. FJORD_FAULT_SEED repeats the choices of a run.
"""

import signal
import sys
import time
import unittest

import faults
import harness

PAUSES = 20
PAUSE_MAX = 4.0


class PauseTest(unittest.TestCase):
    def test_pauses_around_test_and_set(self):
        seed = faults.seed_of_run()
        random_ = faults.chooser(seed)
        # Most deadlines are shorter than a pause that is noticed, so that operations end in doubt; the longest is
        # longer.
        options = {"counters": 4, "raisers": 10, "registers": 100, "writers": 6, "timeout_min_ms": 300, "timeout_max_ms": 6000}
        with faults.Processes(storage=3, distributors=2, redundancy=2) as cluster, \
                faults.Torture(cluster, seed, **options) as torture:
            running = faults.Faults(random_, cluster)
            stopped = set()
            seconds = []

            def go_on(victim):
                cluster.send(victim, signal.SIGCONT)
                stopped.discard(victim)

            begin = time.monotonic()
            torture.start()
            while len(seconds) < PAUSES:
                running.wait(random_.expovariate(1.5))
                cluster.check_running()
                # At most two processes are stopped at once; with more, no operation would be done between the faults.
                awake = [name for name in cluster.names if name not in stopped]
                if len(stopped) >= 2:
                    continue
                victim = random_.choice(awake)
                length = 0.1 * (PAUSE_MAX / 0.1) ** random_.random()
                cluster.send(victim, signal.SIGSTOP)
                stopped.add(victim)
                seconds.append(length)
                running.after(length, lambda victim=victim: go_on(victim))
            while running.pending:
                running.wait(0.1)
            cluster.wait_healthy()
            before = torture.status()["counts"]["raise_applied"]
            harness.wait_until(lambda: torture.status()["counts"]["raise_applied"] > before + 50, "clients go on")
            torture.wait_for(raise_applied=10 * PAUSES, put_applied=10 * PAUSES)
            counts = torture.stop_and_check()
            cluster.check_running()
            print(f"{len(seconds)} pauses, the longest {max(seconds):.1f} s, in {time.monotonic() - begin:.0f} s: {counts}", flush=True)


if __name__ == "__main__":
    for option in ("--pauses", "--pause-max"):
        if option in sys.argv:
            at = sys.argv.index(option)
            if option == "--pauses":
                PAUSES = int(sys.argv[at + 1])
            else:
                PAUSE_MAX = float(sys.argv[at + 1])
            del sys.argv[at:at + 2]
    harness.main()
