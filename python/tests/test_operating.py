"""What operators do: changes of nodes that are waited for, balancing, lost records, and changes that the tuner watches."""

import http.server
import shutil
import threading
import time

import pytest

import fjord
from fjord.testing import LocalCluster

ITEM = "document item { field number type int {} field text type string {} }"


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(storage=3, redundancy=2, schemas=ITEM) as running:
        with running.client() as client:
            assert client.feed((f"id:a:item::{i}", {"number": i, "text": "x" * 100}) for i in range(500)).ok == 500
        yield running


@pytest.fixture
def client(cluster):
    with fjord.Client(cluster.address) as connected:
        yield connected


# --- Nodes


def test_a_change_of_nodes_is_waited_for(client):
    seen = []
    plan = client.admin.change_nodes("retire", ["storage.2"], dry_run=False, wait=60,
                                     on_progress=lambda done, buckets, left: seen.append((done, buckets, left)))
    assert plan.done and plan.nodes == ["storage.2"]
    retired = next(node for node in client.admin.nodes() if node.name == "storage.2")
    assert (retired.state, retired.buckets) == ("retired", 0)
    assert seen and all(left >= 0 and (done is None or 0 <= done <= 1) for done, _, left in seen)
    assert client.admin.change_nodes("up", ["storage.2"], dry_run=False, wait=60).done
    deadline = time.monotonic() + 60
    while client.admin.status().health != "healthy":  # The nodes report once a second.
        assert time.monotonic() < deadline, client.admin.status().reasons


def test_a_change_that_takes_longer_than_the_wait_goes_on(client):
    client.admin.set({"maintenance.paused": True})  # Nothing moves, so the node does not become empty.
    try:
        with pytest.raises(fjord.DeadlineExceeded):
            client.admin.change_nodes("retire", ["storage.1"], dry_run=False, wait=0.5)
    finally:
        client.admin.set({"maintenance.paused": False})
    assert next(node for node in client.admin.nodes() if node.name == "storage.1").wanted.startswith("retired")
    assert client.admin.change_nodes("up", ["storage.1"], dry_run=False, wait=60).done


def test_a_dry_run_does_not_wait(client):
    assert not client.admin.change_nodes("retire", ["storage.1"], wait=0.001).done


def test_names_of_actions_are_those_of_the_http_interface(client):
    assert client.admin.change_nodes("capacity", ["storage.1"], capacity="2").refusals == []
    with pytest.raises(fjord.InvalidArgument, match='"set_capacity": expected one of up, maintenance, .*, capacity, stop_check, balance, accept_loss'):
        client.admin.change_nodes("set_capacity", ["storage.1"], capacity="2")


def test_plugins_of_a_cluster_without_any(client):
    plugins = client.admin.plugins()
    assert (plugins.functions, plugins.problems, plugins.storage_nodes, plugins.distributors) == ([], [], 3, 1)


# --- Lost data


def test_records_of_a_controller_are_not_replaced_while_it_has_them(client):
    for dry_run in (True, False):
        with pytest.raises(fjord.InvalidArgument, match="nothing to recover"):
            client.admin.recover_state(dry_run=dry_run)


def test_a_controller_without_records_gets_them_from_the_nodes():
    with LocalCluster(storage=2, redundancy=2, schemas=ITEM) as cluster, cluster.client() as client:
        client.put("id:a:item::1", {"number": 1})
        cluster.stop("fleetcontroller.0")
        shutil.rmtree(cluster.directory / "fleetcontroller.0")
        cluster._start_process("fleetcontroller.0")
        planned = _recovered(client, dry_run=True)
        assert not planned.done and planned.refusals == [] and planned.schemas == 1 and len(planned.found) == 3
        done = _recovered(client, dry_run=False)
        assert done.done
        cluster.wait_ready()
        assert client.get("id:a:item::1")["number"] == 1
        assert client.admin.schemas()


def _recovered(client, dry_run):
    """The controller may not listen yet."""
    while True:
        try:
            return client.admin.recover_state(dry_run=dry_run)
        except fjord.Transient:
            continue


def test_a_bucket_that_is_not_lost_is_not_given_up(client):
    assert client.admin.lost_buckets() == []
    bucket = client.admin.bucket_of("id:a:item::1")[0].bucket
    with pytest.raises(fjord.NotFound):
        client.admin.accept_loss([bucket])
    with pytest.raises(fjord.InvalidArgument):
        client.admin.accept_loss(["no bucket"])
    with pytest.raises(fjord.WrongType):
        client.admin.accept_loss([bucket], timeout="long")


# --- Balancing


def test_the_balancer_says_what_it_knows_and_plans(client):
    status = client.admin.balancing.status(buckets=3)
    assert status.mode == "advise" and status.rows == 0
    assert {node.node for node in status.nodes} == {"storage.0", "storage.1", "storage.2"}
    assert client.admin.balancing.history() == []
    with pytest.raises(fjord.InvalidArgument):
        client.admin.balancing.plan("no such algorithm")
    with pytest.raises(fjord.NotFound):
        client.admin.balancing.revert(99)


def test_a_plan_is_applied_and_taken_back():
    with LocalCluster(storage=3, redundancy=1, schemas=ITEM) as cluster, cluster.client() as client:
        client.admin.set({"balancer.round": "200ms"})
        client.feed((f"id:a:item::{i}", {"number": i}) for i in range(200))
        node = client.admin.bucket_of("id:a:item::1")[0].replicas[0].node
        hot = [one for one in (f"id:a:item::{i}" for i in range(200))
               if client.admin.bucket_of(one)[0].replicas[0].node == node]
        plan = _plan_under_load(client, hot)
        assert plan.moves and {move.source for move in plan.moves} == {node}
        assert plan.imbalance_after < plan.imbalance_before
        assert client.admin.balancing.apply(plan, reason="a test") == []
        with pytest.raises(fjord.ConditionFailed):
            client.admin.balancing.apply(plan)
        step = client.admin.balancing.history()[-1]
        assert step.kind == "load" and "a test" in step.why and [one.bucket for one in step.moves] == [one.bucket for one in plan.moves]
        back = client.admin.balancing.revert(step.step)
        assert {move.target for move in back.moves} == {node}
        assert client.admin.balancing.history()[-1].step == step.step


def _plan_under_load(client, names):
    """Reads these documents until the balancer advises to move one of them away."""
    deadline = time.monotonic() + 120
    while True:
        client.get_many(names * 10)
        try:
            plan = client.admin.balancing.plan()
        except fjord.Transient:
            continue
        if plan.moves:
            return plan
        assert time.monotonic() < deadline, client.admin.balancing.status()  # Nothing is moved onto nodes with full disks.


# --- The tuner


class Metrics:
    """A node that shows given metrics: each reading is a thousand operations later than the one before."""

    def __init__(self, latency):
        self.latency = latency  # Seconds per operation, as a function of the number of the reading.
        self.readings = self.operations = self.fast = 0
        self.seconds = 0.0
        node = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                text = node.page().encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def page(self):
        self.readings += 1
        latency = self.latency(self.readings)
        self.operations += 1000
        self.seconds += 1000 * latency
        self.fast += 1000 if latency <= 0.001 else 0
        name, count = "fjord_distributor_operation_seconds", self.operations
        return (f'fjord_distributor_operations_total{{operation="get",outcome="applied"}} {count}\n'
                f"fjord_distributor_pending_operations 0\n"
                f'{name}_bucket{{operation="get",le="0.001"}} {self.fast}\n'
                f'{name}_bucket{{operation="get",le="0.1"}} {count}\n'
                f'{name}_bucket{{operation="get",le="+Inf"}} {count}\n'
                f'{name}_sum{{operation="get"}} {self.seconds}\n'
                f'{name}_count{{operation="get"}} {count}\n'
                f"fjord_visitor_running 0\nfjord_visitor_queued 0\n")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


HELD = "storage.held_bytes_max"


def test_a_bad_change_is_taken_back_and_a_good_one_stays(client):
    events = []
    # One initial reading and four periods, then the change, then bad periods.
    with Metrics(lambda reading: 0.0005 if reading <= 5 else 0.0009) as node:
        verdict = client.tune.apply_and_watch({HELD: "1MiB"}, metrics=[node.address], reason="a bad idea", period=0.1,
                                              on_event=events.append)
    assert verdict == "taken back"
    assert [event.event for event in events] == ["changed", "taken back"] and events[0].id == events[1].id
    assert client.admin.settings()[HELD].live_value == ""
    with Metrics(lambda reading: 0.0005) as node:
        assert client.tune.apply_and_watch({HELD: "32MiB"}, metrics=[node.address], reason="a try", period=0.1) == "kept"
    assert client.admin.settings()[HELD].live_value != ""
    client.tune.revert(client.tune.history()[-1].id)


def test_a_run_of_the_tuner_advises_and_ends(client):
    events = []
    before = client.admin.settings().version
    with Metrics(lambda _: 0.05) as node:
        client.tune.run(metrics=[node.address], period=0.1, periods=8, on_event=events.append)
    advice = [event for event in events if event.event == "advice" and event.loop == "visitors"]
    assert len(advice) == 1 and advice[0].setting == "storage.visitors_max" and int(advice[0].new) < int(advice[0].old)
    assert client.admin.settings().version == before
    with pytest.raises(fjord.InvalidArgument, match="controllers"):
        client.tune.run(metrics=["127.0.0.1:1"], controllers={"caches": "on"})
    with pytest.raises(fjord.InvalidArgument, match="controllers"):
        client.tune.run(metrics=["127.0.0.1:1"], controllers={"visitors": "perhaps"})


def test_a_run_of_the_tuner_ends_with_the_exception_of_a_callback(client):
    def refuse(event):
        raise KeyError(event.event)

    with Metrics(lambda _: 0.05) as node, pytest.raises(KeyError):
        client.tune.run(metrics=[node.address], period=0.1, on_event=refuse)


def test_metrics_of_a_cluster_are_those_of_its_nodes(cluster, client):
    assert len(cluster.metrics) == len(cluster.nodes)
    assert client.tune.plan(metrics=cluster.metrics, sample=0.1).changes is not None
