"""What a cluster says of itself, and what must then hold. Each claim is a function of a World; it returns False if the cluster does not
make the claim now, and raises Failure if it does and what must hold does not.
"""

import collections
import json
import shutil
import time

import harness
from rehearse import looks
from rehearse.documents import KEYS, fields_of, id_of
from rehearse.days import is_down
from rehearse.world import PATIENCE, SERVED_S, START_S, Failure, describe, is_healthy, is_served, wait_for

# `days`: those after or in which the claim is most worth a test; `amid`: it is taken in the middle of a day.
Claim = collections.namedtuple("Claim", "name test days amid")
CLAIMS = {}
REFUSED = 8
GONE_S = 8 * PATIENCE  # Longest time for which the cluster may not serve when nodes stop.
AGREE_S = 6 * PATIENCE  # Status, health, metrics and console agree within this time.


def claim(name, days=(), amid=False):
    def add(test):
        CLAIMS[name] = Claim(name, test, days, amid)
        return test
    return add


def start_in_any_order(world, copy, names):
    order = list(names)
    world.random.shuffle(order)
    for name in order:
        copy.start(name)
        if world.random.random() < 0.5:  # The next one starts when this one answers, else beside it.
            harness.wait_until(lambda name=name: copy.http(name, "/health")[0] is not None, f"{name} answers", START_S)


def has_settled(copy):
    """Starts all processes of a copy, and returns True once it is healthy. The files of a copy are other files than those that
    its cluster state speaks of, so the processes count as new ones on other disks until then."""
    copy.start(*copy.names)
    return wait_for(copy, is_healthy, SERVED_S)[0]


def wait_until_served(claim_name, copy, gone, what):
    """Waits until the nodes of `gone` count as down, and the status says that everything is served."""
    def is_over(status):
        return is_served(status) and all(is_down(node)(status) for node in gone)
    is_so, status = wait_for(copy, is_over, SERVED_S)
    if not is_so:
        raise Failure(claim_name, f"{what}: not every bucket is served after {SERVED_S} s: {describe(status)}{copy.ended_by_itself() or ''}")


def says_healthy(world):
    _, status = world.cluster.status()
    return status is not None and is_healthy(status)


@claim("heals", days=("full", "pause", "kill", "stop", "damage live", "buckets"))
def heals(_):
    """When all faults of a day have ended, the cluster is healthy: World.recover() and the days say so if not."""
    return True


@claim("healthy", days=("kill", "stop", "pause", "buckets", "maintenance", "damage"))
def healthy(world):
    """Healthy: `redundancy - 1` storage nodes can be destroyed and the others restarted, and every acknowledged document is served."""
    if world.unnoticed or not says_healthy(world):
        return False
    with world.copied() as (copy, expected):
        if not says_healthy(world):
            return False
        destroyed = world.pick(world.shape.redundancy - 1)
        how = world.random.choice(("never starts", "starts empty"))
        rest = [name for name in copy.names if name not in destroyed]
        if not has_settled(copy):
            return False
        copy.kill(*destroyed)
        world.random.choice((copy.kill, copy.end))(*rest)
        for node in destroyed:
            copy.say(f"rm -r {node}")
            shutil.rmtree(copy.folder / node)
        start_in_any_order(world, copy, copy.names if how == "starts empty" else rest)
        what = f"the cluster was healthy; {', '.join(destroyed)} was destroyed ({how}), the others restarted"
        wait_until_served("healthy", copy, [] if how == "starts empty" else destroyed, what)
        world.look("healthy", copy, expected, what)
    return True


def verify(copy, node):
    """Returns what fjord-inspect finds wrong in the folder of a node; empty: nothing."""
    finished = copy.run("fjord-inspect", "verify", copy.folder / node)
    return "" if finished.code == harness.OK else f"{finished.out[-600:]}{finished.err[-300:]}"


@claim("0 damaged", days=("damage", "damage", "damage live"))
def repaired(world):
    """0 damaged: the files of each node verify, and each damaged node serves alone what it shares with another one."""
    _, status = world.cluster.status()
    if world.unnoticed or status is None or status["buckets"]["damaged"] or not is_healthy(status):
        return False
    with world.copied() as (copy, expected):
        if not says_healthy(world):
            return False
        for node in copy.storage:
            problems = verify(copy, node)
            if problems:
                raise Failure("0 damaged", f"the status was: {describe(status)}; of the files of {node}, `fjord-inspect verify` says\n{problems}")
        alone = world.damaged[-1] if world.damaged else world.pick()[0]
        destroyed = world.random.choice([node for node in copy.storage if node != alone])
        if not has_settled(copy):
            return False
        copy.kill(*copy.names)
        copy.say(f"rm -r {destroyed}")
        shutil.rmtree(copy.folder / destroyed)
        copy.start(*copy.names)
        what = f"0 damaged; {alone} restarted while {destroyed} had lost everything"
        wait_until_served("0 damaged", copy, [], what)
        world.look("0 damaged", copy, expected, what, ways=("get", "visit"))
    return True


@claim("served", days=("maintenance", "two in turn", "kill", "stop"), amid=True)
def served(world):
    """No bucket is unavailable: every acknowledged document is served in every way, whatever else is wrong."""
    code, status = world.cluster.status()
    if status is None or code not in (harness.OK, harness.PARTIAL) or not is_served(status):
        return False
    with world.load.held():
        expected = world.record.possible()
        texts = looks.look(world.cluster, expected)
        _, after = world.cluster.status()
    if texts and after is not None and is_served(after) and after["state_version"] == status["state_version"]:
        raise Failure("served", f"the status before and after: {describe(status)}; {describe(after)}\n    " + "\n    ".join(texts))
    return True


def put_some(cluster, random_, count=120):
    """Puts documents outside of the record. Returns the texts of failures."""
    lines = "".join(json.dumps({"put": id_of(KEYS + random_.randrange(1 << 30)), "fields": fields_of(1, 1)}) + "\n" for _ in range(count))
    fed = cluster.fjord("feed", "-", "--timeout", GONE_S, "--errors-shown", 3, stdin=lines)
    return [] if fed.code == harness.OK else [f"put: {fed.out.strip()[:120]} {fed.err.strip()[-300:]}"]


def what_stops(world, copy, expected, first):
    """Returns texts about what does not go on; `first`: about one way only."""
    texts = looks.look(copy, expected, first=first)
    # Puts come last: a visit would find their documents.
    return texts or put_some(copy, world.random)


def what_stops_for_long(world, copy, expected, nodes, first):
    """Returns texts about what does not go on up to GONE_S after these nodes have stopped; `first`: about one way only."""
    deadline = time.monotonic() + GONE_S
    wait_for(copy, lambda status: all(is_down(node)(status) for node in nodes), GONE_S)
    texts = []

    def all_goes_on():
        texts[:] = what_stops(world, copy, expected, first)
        return not texts
    harness.poll(all_goes_on, deadline - time.monotonic())
    return texts


@claim("stop-check", days=("calm", "kill", "stop", "maintenance"))
def stop_check(world):
    """Yes: without these nodes everything goes on. No: something does not; but for a limit that an operator has set."""
    count = world.random.choice((1, 1, 2))
    nodes = list(world.random.choice((("storage.0", "storage.1"), ("storage.2", "storage.3")))) if count == 2 and world.shape.groups else world.pick(count)
    with world.copied() as (copy, expected):
        copy.start(*[name for name in copy.names if name in world.cluster.running])
        is_so, _ = wait_for(copy, is_healthy, SERVED_S)
        if not is_so:
            return False
        checked = copy.command("node", "stop-check", *nodes, codes=(harness.OK, REFUSED))
        _, status = copy.status()
        if status is None or not is_healthy(status):
            return False
        (copy.end if world.random.random() < 0.5 else copy.kill)(*nodes)
        texts = what_stops_for_long(world, copy, expected, nodes, first=checked.code == REFUSED)
        if checked.code == harness.OK and texts:
            raise Failure("stop-check", f"`fjord node stop-check {' '.join(nodes)}` said that it is safe. Without them:\n    " + "\n    ".join(texts))
        if checked.code == REFUSED and not texts and "controller." not in checked.out + checked.err:
            raise Failure("stop-check", f"`fjord node stop-check {' '.join(nodes)}` refused, and without them everything goes on: {checked.out}{checked.err}")
    return True


def on_disks(world, keys):
    """Returns key -> values by storage node, of the nodes that run, each asked alone."""
    found = {}
    for node in world.cluster.storage:
        if node in world.cluster.running:
            for key, value in looks.get(world.cluster, keys, node=node, timeout=3).items():
                found.setdefault(key, {})[node] = value
    return found


def knows_who_answers(cluster, status):
    """True if the status counts on those storage nodes that run and are not paused, and on no others."""
    states = {one["node"]: one["state"] for one in status["nodes"]}
    answers = {node: node in cluster.running and node not in cluster.paused for node in cluster.storage}
    return all(states.get(node) != "down" if is_there else states.get(node) in ("down", "maintenance") for node, is_there in answers.items())


@claim("unavailable", days=("silent", "silent", "pause"), amid=True)
def unavailable(world):
    """Buckets are unavailable only while no live node has all their acknowledged versions, if that node has never ended."""
    # First the cluster has to know which nodes answer.
    wait_for(world.cluster, lambda status: knows_who_answers(world.cluster, status), 2 * GONE_S)
    is_so, status = wait_for(world.cluster, is_served, 2 * GONE_S)
    if is_so:
        return True
    with world.load.held():
        possible = {key: values for key, values in world.record.possible().items() if None not in values}
        found = looks.get(world.cluster, possible, timeout=3)
        away = {key: values for key, values in possible.items() if isinstance(found.get(key), str)}
        by_node = on_disks(world, away)
        code, status = world.cluster.status()
    had = {key: [node for node, value in by_node.get(key, {}).items() if value in values] for key, values in away.items()}
    with_all = [key for key, nodes in had.items() if nodes]
    if status is not None and not is_served(status) and with_all:
        example = with_all[0]
        raise Failure("unavailable", f"{2 * GONE_S} s after the last fault: {describe(status)}. Not served are {len(away)} documents, and {len(with_all)} of "
                                     f"them are in their acknowledged version on nodes that run: {id_of(example)} on {had[example]} "
                                     f"(`fjord get {id_of(example)} --node {had[example][0]}`)")
    return True


def tellers(world, cluster):
    """What the status, its text and exit code, the console's interface, metrics and the list of buckets say. None: no answer, or not the same moment."""
    code, status = cluster.status()
    text = cluster.fjord("status", "--timeout", 4)
    http_code, page = cluster.http("gateway.0", "/cluster/v1/status")
    listed = cluster.fjord("bucket", "list", "-n", 1000000, "-o", "json", "--timeout", 4)
    after_code, after = cluster.status()
    if status is None or after is None or http_code != 200:
        return None
    counts = status["buckets"]
    if counts != after["buckets"] or status["reasons"] != after["reasons"] or code != after_code:
        return None
    console = json.loads(page)
    metrics = {}
    for name in ("unavailable", "damaged"):
        values = [cluster.metric(node, f"fjord_distributor_buckets_{name}") for node in cluster.distributors if node in cluster.running]
        metrics[name] = None if None in values else int(sum(values))
    health = {node: cluster.http(node, "/health")[0] for node in cluster.running if node.startswith("storage.")}
    return {"code": code, "status": status, "text": text.out.split(":")[0], "text code": text.code, "console": console, "metrics": metrics,
            "listed": len(listed.out.splitlines()), "health": health}


def disagreements(said):
    """Returns texts about what does not fit together."""
    status, texts = said["status"], []
    word = {harness.OK: "healthy", harness.PARTIAL: "degraded", harness.FAILED: "unavailable"}.get(said["code"])
    words = {"exit code": word, "status -o json": status["health"], "text": said["text"].split()[-1], "console": said["console"]["health"]}
    if len(set(words.values())) != 1:
        texts.append(f"the words differ: {words}")
    if said["console"]["buckets"] != status["buckets"]:
        texts.append(f"buckets of the console: {said['console']['buckets']}, of the status: {status['buckets']}")
    for name, value in said["metrics"].items():
        if value is not None and value != status["buckets"][name]:
            texts.append(f"metrics say {value} buckets {name}, the status {status['buckets'][name]}")
    bad = {name: status["buckets"][name] for name in ("unavailable", "damaged", "out_of_sync", "under_replicated") if status["buckets"][name]}
    if bad and not status["buckets"]["collecting"] and said["listed"] == 0:
        texts.append(f"the status counts {bad}, and `fjord bucket list` has no such buckets")
    unwell = [node for node, code in said["health"].items() if code != 200]
    if unwell and word == "healthy":
        texts.append(f"/health of {unwell} is not 200, and the cluster is healthy")
    return texts


def wait_until_agreed(claim_name, world, cluster, what):
    texts = []

    def is_agreed():
        said = tellers(world, cluster)
        if said is not None:
            texts[:] = disagreements(said)
        return said is not None and not texts
    if not harness.poll(is_agreed, AGREE_S, 0.3) and texts:
        raise Failure(claim_name, f"{what}: for {AGREE_S} s not the same is said: " + "; ".join(texts))


@claim("agree", days=("kill", "maintenance", "silent", "damage", "two in turn"), amid=True)
def agree(world):
    """Status, text, exit code, metrics, console and the list of buckets say the same."""
    wait_until_agreed("agree", world, world.cluster, "on the original")
    return True
