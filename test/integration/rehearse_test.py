"""What a cluster says of itself is put to the test on real processes, after and during bad days that are drawn: `./run rehearse`.

A rehearsal starts clusters, keeps a record of every acknowledged write outside of them, does to them what happens on bad days, and takes
them at their word: on a copy of the folders it does what a claim permits, and looks. A failure prints the seed, the claim, the commands and
what was seen, and keeps the folders. A seed repeats the choices, not the timing.
"""

import argparse
import collections
import faulthandler
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import harness
from rehearse import claims_of_faults  # noqa: F401, adds its claims to CLAIMS
from rehearse.claims import CLAIMS
from rehearse.cluster import Shape
from rehearse.days import DAYS
from rehearse.isolation import Isolation
from rehearse.world import FAST_SCRUB, NO_SCRUB, Failure, World, may_mount

ROUNDS = 5  # Bad days of one cluster.
FOUR = Shape(storage=4, distributors=1, redundancy=2, bits=5, groups="(root (a 0 1) (b 2 3))", stripes=1, small=None)
THREE = Shape(storage=3, distributors=1, redundancy=2, bits=5, groups="", stripes=1, small=None)
SMALL = THREE._replace(small=1)
Case = collections.namedtuple("Case", "seed shape scrub day claim")
# The short form: each has a cluster of its own, so that one failure does not hide the next.
SHORT = [
    Case(1, FOUR, FAST_SCRUB, "maintenance", "served"),
    Case(6, FOUR, NO_SCRUB, "damage", "0 damaged"),
    Case(2, THREE, FAST_SCRUB, "silent", "unavailable"),
    Case(2, THREE, NO_SCRUB, "calm", "folders of a running node"),
    Case(5, THREE, NO_SCRUB, "calm", "folders of a running node"),
    Case(2, THREE, NO_SCRUB, "calm", "folders before a start"),
    Case(1, SMALL, FAST_SCRUB, "full", "heals"),
    Case(5, FOUR, FAST_SCRUB, "kill", "healthy"),
    Case(1, FOUR, FAST_SCRUB, "calm", "stop-check"),
    Case(1, THREE, FAST_SCRUB, "kill", "agree"),
]


def parse():
    parser = argparse.ArgumentParser(prog="./run rehearse", description=__doc__.split("\n\n", maxsplit=1)[0],
                                     epilog="Claims: " + ", ".join(CLAIMS) + ". Days: " + ", ".join(DAYS) + ".")
    parser.add_argument("--minutes", type=float, default=4, help="how long it goes on (default: 4)")
    parser.add_argument("--seed", type=int, help="of the first cluster; the next ones count up (default: new)")
    parser.add_argument("--only", choices=CLAIMS, action="append", help="only this claim; may be given several times")
    parser.add_argument("--day", choices=DAYS, action="append", help="only this kind of bad day; may be given several times")
    parser.add_argument("--short", action="store_true", help="the fixed form that ./run test runs, instead")
    parser.add_argument("--go-on", action="store_true", help="rehearse on after a failure, with the next seed")
    parser.add_argument("--dir", type=pathlib.Path, help="where the folders are made (default: a temporary folder)")
    parser.add_argument("--verbose", action="store_true", help="print each command as it is run")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1_000_000)
    return options


def with_rights():
    """Returns if network namespaces are permitted; else starts this program again in a user namespace, or ends as skipped."""
    try:
        Isolation().close()
    except OSError as error:
        again = shutil.which("unshare")
        if os.geteuid() != 0 and again:
            os.execv(again, [again, "--user", "--map-root-user", "--mount", sys.executable, "-B", *sys.argv])
        print(f"skipped: the copy of a cluster needs a network namespace, and this machine says: {error}", flush=True)
        sys.exit(harness.SKIPPED)


def report(world, failure, options):
    words = ["--short"] if options.short else ["--seed", str(world.seed)]
    words += [word for name in options.only or () for word in ("--only", name)] + [word for name in options.day or () for word in ("--day", name)]
    print(f"\nREHEARSAL FAILED, seed {world.seed}, claim \"{failure.claim}\"\n  seen: {failure.seen}\n  what was done:", flush=True)
    for line in world.history:
        print("    " + line)
    print(f"  folders: {world.folder}\n  again: ./run rehearse {shlex.join(words)}", flush=True)


def pair_of(world, options):
    """Draws a day and a claim."""
    claim = world.random.choice(options.only or list(CLAIMS))
    days = options.day or (CLAIMS[claim].days if world.random.random() < 0.7 else None) or list(DAYS)
    possible = [name for name in days if DAYS[name].is_possible(world.shape)]
    return world.random.choice(possible or ["calm"]), claim


def rehearse(world, day, claim, counts):
    """One bad day, and the claim in the middle of it or after it. Errors: Failure."""
    world.say(f"-- day \"{day}\", claim \"{claim}\"")
    tested = CLAIMS[claim]

    def take():
        is_made = tested.test(world)
        world.say(f"claim \"{claim}\": {'holds' if is_made else 'is not made'}")
        counts[claim] = counts.get(claim, 0) + bool(is_made)
    try:
        for _ in DAYS[day].run(world):
            world.check()
            if tested.amid:
                take()
        world.recover()
        if not tested.amid:
            take()
    except AssertionError as error:
        raise error if isinstance(error, Failure) else Failure(claim, str(error)) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise Failure(claim, repr(error)) from error
    world.check()


def run_world(world, pairs, counts, options):
    """Returns True if all claims hold."""
    try:
        with world:
            for day, claim in pairs(world):
                rehearse(world, day, claim, counts)
    except Failure as failure:
        report(world, failure, options)
        return False
    return True


def short(folder, options):
    """Returns the number of failures."""
    failures, counts = 0, {}
    for number, case in enumerate(SHORT):
        if (options.only and case.claim not in options.only) or (options.day and case.day not in options.day):
            continue
        if case.shape.small is not None and not may_mount():
            print(f"left out, as it needs the right to mount: day \"{case.day}\", claim \"{case.claim}\"", flush=True)
            continue
        began = time.monotonic()
        world = World(case.seed, folder / f"case{number}", case.shape, case.scrub, verbose=options.verbose)
        is_good = run_world(world, lambda _, case=case: [(case.day, case.claim)], counts, options)
        print(f"day \"{case.day}\", claim \"{case.claim}\": {'holds' if is_good else 'FAILED'}, {time.monotonic() - began:.0f} s", flush=True)
        failures += not is_good
    print(f"short form: {counts}, {failures} failures", flush=True)
    return failures


def long(folder, options):
    failures, counts = 0, {}
    seed = options.seed
    end = time.monotonic() + 60 * options.minutes
    print(f"rehearsal from seed {seed} on for {options.minutes:g} minutes", flush=True)

    def pairs(world):
        for _ in range(ROUNDS):
            if time.monotonic() < end:
                yield pair_of(world, options)
    while time.monotonic() < end and (not failures or options.go_on):
        before = dict(counts)
        world = World(seed, folder / f"seed{seed}", days=options.day, verbose=options.verbose)
        is_good = run_world(world, pairs, counts, options)
        done = {name: count - before.get(name, 0) for name, count in counts.items() if count > before.get(name, 0)}
        print(f"seed {seed}: {'all claims hold' if is_good else 'FAILED'}: {done}", flush=True)
        failures += not is_good
        seed += 1
    print(f"{sum(counts.values())} claims put to the test: {counts}; {failures} failures", flush=True)
    return failures


def main():
    options = parse()
    with_rights()
    # Else the processes of the clusters would go on without this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if "FJORD_TEST_SECONDS" in os.environ:
        faulthandler.dump_traceback_later(max(1, int(os.environ["FJORD_TEST_SECONDS"]) - 10))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fjord-rehearsal-", dir=options.dir))
    failures = (short if options.short else long)(folder, options)
    if not failures:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
