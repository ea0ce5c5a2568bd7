"""Claims of a cluster whose folders vanish, or are not its own: it says so within seconds, and NOT_FOUND never for what may exist."""

import shutil
import subprocess

import harness
from rehearse import looks
from rehearse.claims import SERVED_S, START_S, claim, has_settled, put_some, start_in_any_order, wait_until_agreed
from rehearse.world import HEALTHY_S, PATIENCE, Failure, describe, is_healthy, wait_for

SAID_S = 12 * PATIENCE  # A fault of a folder is said within this time.


def vanish(world, copy, nodes, how):
    """Removes or replaces the folders of nodes."""
    for node in nodes:
        folder = copy.folder / node
        if how == "buckets":
            copy.say(f"rm -r {node}/buckets")
            shutil.rmtree(folder / "buckets")
        elif how == "folder":
            copy.say(f"rm -r {node}")
            shutil.rmtree(folder)
        else:
            other = world.random.choice([name for name in copy.storage if name not in nodes])
            copy.say(f"rm -r {node}; cp -r {other} {node}")
            shutil.rmtree(folder)
            shutil.copytree(copy.folder / other, folder)


def never_not_found(claim_name, copy, expected, what):
    """Errors: Failure if a document that is there for certain is not found, or has another value."""
    try:
        wrong = looks.wrong(expected, looks.get(copy, expected, timeout=4))
    except looks.Unserved:
        return  # No answer is not a wrong answer.
    if wrong:
        raise Failure(claim_name, f"{what}: {len(wrong)} of {len(expected)} gets are wrong: " + "; ".join(wrong[:6]))


def is_told(status):
    return not is_healthy(status)


def must_tell(claim_name, world, copy, nodes, what):
    """Waits until the status is not healthy; all that tell must agree."""
    is_so, status = wait_for(copy, is_told, SAID_S)
    if not is_so:
        pages = {node: copy.http(node, "/health") for node in nodes}
        raise Failure(claim_name, f"{what}: {SAID_S} s later the cluster is healthy: {describe(status)}; /health: {pages}")
    wait_until_agreed(claim_name, world, copy, what)


@claim("folders of a running node", days=("calm",))
def folders_of_a_running_node(world):
    """Files go away under storage nodes: not healthy within seconds, nothing acknowledged is lost while one replica is left."""
    name = "folders of a running node"
    with world.copied() as (copy, expected):
        copy.start(*copy.names)
        is_so, _ = wait_for(copy, is_healthy, SERVED_S)
        if not is_so:
            return False
        nodes = world.pick() if world.random.random() < 0.6 else list(copy.storage)
        vanish(world, copy, nodes, "buckets")
        has_load = world.random.random() < 0.5
        if has_load:
            put_some(copy, world.random)
        what = f"the files of {', '.join(nodes)} were removed while it ran{', then puts' if has_load else ''}"
        must_tell(name, world, copy, nodes, what)
        never_not_found(name, copy, expected, what)
        if len(nodes) < world.shape.redundancy:
            copy.kill(*nodes)
            copy.start(*nodes)
            refilled(name, world, copy, expected, what + ", and it was restarted")
    return True


def refilled(claim_name, world, copy, expected, what):
    is_so, status = wait_for(copy, is_healthy, HEALTHY_S)
    if not is_so:
        raise Failure(claim_name, f"{what}: not healthy after {HEALTHY_S} s, though the others have everything: {describe(status)}")
    world.look(claim_name, copy, expected, what, ways=("get", "aggregate"))


def make_immutable(copy, nodes, flag):
    """No file can be made in the folders of these nodes, nor removed, from `+i` on up to `-i`. Returns False if the file system cannot do that."""
    for node in nodes:
        copy.say(f"chattr {flag} {node}/buckets")
        changed = subprocess.run(["chattr", flag, copy.folder / node / "buckets"], capture_output=True, check=False)
        if changed.returncode != 0:
            return False
    return True


@claim("writes that fail", days=("calm",))
def writes_that_fail(world):
    """Nothing can be made in the folders of storage nodes: not healthy within seconds of the puts, and nothing acknowledged is lost."""
    name = "writes that fail"
    if shutil.which("chattr") is None:
        return False
    with world.copied() as (copy, expected):
        copy.start(*copy.names)
        if not wait_for(copy, is_healthy, SERVED_S)[0]:
            return False
        nodes = world.pick() if world.random.random() < 0.6 else list(copy.storage)
        try:
            if not make_immutable(copy, nodes, "+i"):
                return False
            for _ in range(3):
                put_some(copy, world.random, 500)
            what = f"no file can be made in the folders of {', '.join(nodes)}, then puts"
            must_tell(name, world, copy, nodes, what)
            never_not_found(name, copy, expected, what)
        finally:
            make_immutable(copy, nodes, "-i")
        refilled(name, world, copy, expected, what + ", then it can again")
    return True


def start_with_foreign_folders(name, world, copy, nodes):
    """Starts all; nodes with the folder of another one have to refuse that, and get an empty one."""
    start_in_any_order(world, copy, [one for one in copy.names if one not in nodes])
    for node in nodes:
        copy.start(node)
        log = copy.wait_for_refusal(node, START_S)
        if "give it the folder of" not in log:
            raise Failure(name, f"{node} was given the folder of another node, and its log says {log[-600:]}")
        copy.say(f"rm -r {node}")
        shutil.rmtree(copy.folder / node)
        copy.start(node)


@claim("folders before a start", days=("calm",))
def folders_before_a_start(world):
    """Folders are empty or foreign at the start: NOT_FOUND never, not healthy while no node has the documents, refilled if one has."""
    name = "folders before a start"
    with world.copied() as (copy, expected):
        is_all = world.random.random() < 0.6
        nodes = list(copy.storage) if is_all else world.pick()
        if not is_all:
            if not has_settled(copy):
                return False
            copy.kill(*copy.names)
        how = world.random.choice(("buckets", "folder") if is_all else ("buckets", "folder", "foreign"))
        vanish(world, copy, nodes, how)
        if how == "foreign":
            start_with_foreign_folders(name, world, copy, nodes)
        else:
            start_in_any_order(world, copy, copy.names)
        what = f"the folders of {', '.join(nodes)} were gone or foreign before all nodes were started"
        harness.poll(lambda: never_not_found(name, copy, expected, what), SAID_S, 0.5)
        if is_all:
            is_so, status = wait_for(copy, is_told, 1)
            if not is_so:
                raise Failure(name, f"{what}, and the cluster is healthy: {describe(status)}")
            wait_until_agreed(name, world, copy, what)
            never_not_found(name, copy, expected, what)
        else:
            refilled(name, world, copy, expected, what)
    return True
