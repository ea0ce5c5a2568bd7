"""Bad days. Each is a generator that does something to the cluster of a world and yields at moments at which claims are taken.

A day that ends leaves the rest to World.recover().
"""

import collections
import os
import time

from rehearse import looks

Day = collections.namedtuple("Day", "name run is_possible")
DAYS = {}
ZEROED = 4096
FILES_S, FILES_BYTES = 15, 500_000
TOLD_S = 20  # The cluster says so within this time.


def day(name, is_possible=lambda shape: True):
    def add(run):
        DAYS[name] = Day(name, run, is_possible)
        return run
    return add


def is_down(node):
    """A condition on a status: this node counts as down."""
    return lambda status: any(one["node"] == node and one["state"] == "down" for one in status["nodes"])


@day("calm")
def calm(world):
    world.let_pass(world.random.uniform(0, 1))
    yield


@day("kill")
def kill(world):
    """One process of any role is killed, and is back after a while."""
    victim = world.random.choice(world.cluster.names[:-1])
    world.cluster.kill(victim)
    world.let_pass(world.random.uniform(0, 3))
    yield
    world.cluster.start(victim)
    world.let_pass(world.random.uniform(0, 2))
    yield


@day("stop")
def stop(world):
    """Storage nodes are stopped and started in turn, as in an upgrade."""
    for node in world.pick(2):
        world.cluster.end(node)
        world.let_pass(world.random.uniform(0, 1))
        world.cluster.start(node)
        world.let_pass(world.random.uniform(0, 2))
        yield


@day("silent")
def silent(world):
    """A storage node dies, and another one says nothing for a moment, mostly before the documents of the dead one are copied."""
    dead, quiet = world.pick(2)
    world.cluster.kill(dead)
    world.let_pass(world.random.choice((0, 0, 0, 0.3, 2)))
    world.cluster.pause(quiet)
    world.let_pass(world.random.choice((0.5, 2.0, 2.5, 3.0, 5.0)))
    world.cluster.go_on(quiet)
    yield
    world.cluster.start(dead)


@day("pause")
def pause(world):
    """Processes say nothing for a moment: one, those of a role, or all."""
    kind = world.random.choice(("one", "storage", "distributor", "fleetcontroller", "all"))
    names = [name for name in world.cluster.names if kind == "all" or name.startswith(kind)]
    if kind == "one":
        names = [world.random.choice(world.cluster.names)]
    world.cluster.pause(*names)
    world.let_pass(world.random.uniform(0.1, 5))
    world.cluster.go_on(*names)
    yield


@day("two in turn", lambda shape: shape.storage >= 4)
def two_in_turn(world):
    """A storage node dies for good, all is copied, and another one dies."""
    first, second = world.pick(2)
    world.cluster.kill(first)
    world.wait("told", is_down(first), TOLD_S, f"{first} was killed and does not count as down")
    world.wait("ends", lambda status: not any(status["buckets"][name] for name in ("out_of_sync", "unavailable", "under_replicated", "collecting")),
               90, f"{first} is dead, and there are too few replicas")
    world.cluster.kill(second)
    world.wait("told", is_down(second), TOLD_S, f"{second} was killed and does not count as down")
    yield


@day("maintenance")
def maintenance(world):
    """Nodes are in maintenance: one, or a whole group if there are groups."""
    nodes = list(world.random.choice((("storage.0", "storage.1"), ("storage.2", "storage.3")))) if world.shape.groups else world.pick()
    world.in_maintenance = nodes
    world.cluster.command("node", "maintenance", *nodes, "--wait", 20)
    if world.random.random() < 0.7:
        world.cluster.end(*nodes)
    world.let_pass(world.random.uniform(0, 2))
    yield
    world.cluster.start(*[node for node in nodes if node not in world.cluster.running])


@day("full", lambda shape: shape.small is not None)
def full(world):
    """A node comes back from maintenance while its disk is nearly full, and lacks next to nothing."""
    node = f"storage.{world.shape.small}"
    world.in_maintenance = [node]
    with world.load.held():
        world.cluster.command("node", "maintenance", node, "--wait", 20)
        world.cluster.end(node)
        world.small_disk(96)
        world.cluster.start(node)
        world.wait("told", lambda status: not is_down(node)(status), TOLD_S, f"{node} was started and counts as down")
        world.cluster.command("node", "up", node)
        world.in_maintenance = []
        world.wait("too few replicas", lambda status: not any(status["buckets"][name] for name in ("under_replicated", "out_of_sync", "unavailable")), 60,
                   f"{node} is back with a disk in stage `throttle` and the same documents as the others, and is not a member again")
    yield


def wait_for_files(world, node):
    """Waits until much of what the node has is in slotfiles; the journal would restore what is only there."""
    deadline = time.monotonic() + FILES_S
    while sum(path.stat().st_size for path in (world.cluster.folder / node).glob("**/*.slot")) < FILES_BYTES:
        if time.monotonic() > deadline:
            world.say(f"{node} has hardly anything in slotfiles")
            return
        world.let_pass(0.2)


def overwrite(path, at, count, change):
    """Changes `count` bytes of a file in place."""
    with open(path, "r+b") as file:
        file.seek(at)
        old = file.read(count)
        file.seek(at)
        file.write(bytes(map(change, old)))
        file.flush()
        os.fsync(file.fileno())


def damage(world, node):
    """Changes a slotfile of a node. Returns True if there was one."""
    files = sorted((world.cluster.folder / node).glob("**/*.slot"), key=lambda path: (path.stat().st_size, path.name))
    if not files or files[-1].stat().st_size < 3 * ZEROED:
        return False
    path = world.random.choice(files[-3:])
    size = path.stat().st_size
    kind = world.random.choice(("zero", "zero", "invert", "cut", "remove") if world.random.random() < 0.5 else ("zero",))
    at = world.random.randrange(size // ZEROED) * ZEROED
    world.say(f"{node}: {kind} {path.relative_to(world.cluster.folder)} of {size} bytes at {at}")
    world.note_damage(node, None if kind == "remove" else path)
    if kind == "remove":
        path.unlink()
    elif kind == "cut":
        os.truncate(path, size // 2)
    elif kind == "zero":
        overwrite(path, at, ZEROED, lambda _: 0)
    else:
        overwrite(path, at, 64, lambda byte: byte ^ 0xFF)
    return True


def damage_records(world, node):
    """Zeroes a part of a journal, or of one copy of a catalog, which are read when the node starts."""
    pattern = world.random.choice(("journal-*", "catalog-*.a", "catalog-*.b"))
    files = sorted((world.cluster.folder / node / "buckets").glob(pattern))
    if not files:
        return
    path = world.random.choice(files)
    at = world.random.randrange(1 + path.stat().st_size // ZEROED // 8) * ZEROED
    world.say(f"{node}: zero {path.relative_to(world.cluster.folder)} at {at}")
    world.damaged.append(node)
    overwrite(path, at, ZEROED, lambda _: 0)


def until_noticed(world, seconds):
    """Reads all documents until each damage is noticed, or the time is over."""
    for _ in range(seconds):
        if not world.unnoticed:
            return
        with world.load.held():
            expected = world.record.possible()
            wrong = looks.wrong(expected, looks.get(world.cluster, expected))
        if wrong:
            world.load.errors.append("after damage: " + "; ".join(wrong[:5]))
        world.let_pass(1)
        world.look_for_damage()
    world.say(f"not noticed: {list(world.unnoticed)}")


@day("damage")
def damage_of_a_stopped_node(world):
    """Bytes of a stopped node change; it is started, and so are others, in any order, while it is repaired or later."""
    node = world.pick()[0]
    wait_for_files(world, node)
    (world.cluster.end if world.random.random() < 0.5 else world.cluster.kill)(node)
    is_damaged = damage(world, node)
    if world.random.random() < 0.3:
        damage_records(world, node)
    world.cluster.start(node)
    if world.random.random() < 0.5:
        world.let_pass(world.random.uniform(0, 2))
        for other in world.pick(2):
            (world.cluster.end if world.random.random() < 0.5 else world.cluster.kill)(other)
            world.cluster.start(other)
    world.let_pass(1)
    if is_damaged:
        until_noticed(world, 8)
    yield


@day("damage live")
def damage_of_a_running_node(world):
    """Bytes under a running node change."""
    node = world.pick()[0]
    wait_for_files(world, node)
    if damage(world, node):
        until_noticed(world, 8)
    yield


@day("buckets", lambda shape: shape.bits <= 5)
def buckets(world):
    """There are to be twice as many buckets."""
    finished = world.cluster.fjord("config", "get", "cluster.distribution_bits")
    bits = int(finished.out.split()[0])
    if bits < 8:
        world.cluster.command("config", "set", f"cluster.distribution_bits={bits + 1}")
    world.let_pass(world.random.uniform(0, 2))
    yield
