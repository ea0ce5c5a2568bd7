"""Clusters for tests: what starts is there, what is killed is gone, and nothing outlives the test."""

import json
import os
import subprocess
import sys
import urllib.request

import pytest

from fjord.testing import ClusterError, LocalCluster, PartitionNotPermitted
from fjord.testing.processes import find_program

# Starts a cluster, prints the ids of its processes and waits for the end of its standard input.
HOLD = """
import sys
from fjord.testing import LocalCluster
cluster = LocalCluster(storage=1).start()
print(*[process.pid for process in cluster._processes.values()], flush=True)
sys.stdin.read()
{end}
"""


def health_of(cluster, node):
    with urllib.request.urlopen(f"http://{cluster._http_address(node)}/health", timeout=5) as page:
        return json.load(page)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until_gone(pids):
    """Waits for processes that this one did not start; pytest's own time limit ends a wait that never ends."""
    import select

    for pid in pids:
        try:
            file = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        select.select([file], [], [], 30)
        os.close(file)
    return not any(is_running(pid) for pid in pids)


def test_all_nodes_serve_when_the_cluster_has_started():
    with LocalCluster(storage=3, distributors=2) as cluster:
        assert len(cluster.address.split(",")) == 2
        states = {name: health_of(cluster, name) for name in cluster.nodes}
    assert len(states) == 6
    assert all(state["healthy"] for state in states.values()), states
    versions = {state["state_version"] for name, state in states.items() if not name.startswith("fleetcontroller")}
    assert len(versions) == 1, states


def test_a_killed_node_is_gone_and_comes_back():
    with LocalCluster(storage=3) as cluster:
        pid = cluster._processes["storage.2"].pid
        cluster.kill(2)
        assert not os.path.exists(f"/proc/{pid}")
        with pytest.raises(ClusterError, match="storage.2 does not run"):
            cluster.kill("storage.2")
        cluster.restart(2)
        assert health_of(cluster, "storage.2")["healthy"]


def test_a_paused_node_does_not_answer_until_it_goes_on():
    with LocalCluster(storage=2) as cluster:
        cluster.pause(1)
        address = cluster._http_address("storage.1")
        with pytest.raises(OSError):
            urllib.request.urlopen(f"http://{address}/health", timeout=0.2)
        cluster.resume(1)
        cluster.wait_ready()
        assert health_of(cluster, "storage.1")["healthy"]


def test_data_in_a_named_folder_stay():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        with LocalCluster(storage=1, directory=folder) as cluster:
            address = cluster.address
        assert os.path.isdir(os.path.join(folder, "storage.0"))
        with LocalCluster(storage=1, directory=folder) as cluster:
            assert cluster.address == address


@pytest.mark.parametrize("end", ["import os; os._exit(3)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", ""])
def test_no_node_outlives_the_program(end):
    program = subprocess.Popen([sys.executable, "-c", HOLD.format(end=end)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pids = [int(word) for word in program.stdout.readline().split()]
    assert len(pids) == 3 and all(is_running(pid) for pid in pids)
    program.stdin.close()
    program.wait(30)
    program.stdout.close()
    assert wait_until_gone(pids)


def test_nodes_outlive_the_thread_that_started_them():
    import threading

    cluster = LocalCluster(storage=1)
    thread = threading.Thread(target=cluster.start)
    thread.start()
    thread.join()
    try:
        cluster.wait_ready()
        assert all(health_of(cluster, name)["healthy"] for name in cluster.nodes)
    finally:
        cluster.close()


def test_a_node_that_ends_is_reported_with_its_log():
    with pytest.raises(ClusterError, match=r"\w+\.\d has ended(.|\n)*no_such_key"):
        LocalCluster(storage=1, settings={"storage_options": {"no_such_key": 1}}).start()


def test_a_port_that_another_program_takes_is_replaced(monkeypatch):
    import socket

    from fjord.testing import local_cluster

    find = local_cluster._free_ports
    calls = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)

        def once_taken(count):
            calls.append(count)
            ports = find(count)
            return [taken.getsockname()[1], *ports[1:]] if len(calls) == 1 else ports

        monkeypatch.setattr(local_cluster, "_free_ports", once_taken)
        with LocalCluster(storage=1) as cluster:
            assert health_of(cluster, "storage.0")["healthy"]
    assert len(calls) == 2


def test_a_partition_separates_nodes_until_it_heals():
    try:
        cluster = LocalCluster(storage=2, network=True).start()
    except PartitionNotPermitted as refused:
        pytest.skip(str(refused))
    with_client = cluster._on_client_host
    try:
        page = f"http://{cluster._http_address('storage.1')}/health"
        cluster.partition(["storage.1"], ["client"])
        with pytest.raises(OSError):
            with_client(lambda: urllib.request.urlopen(page, timeout=0.3).read())
        cluster.heal()
        assert with_client(lambda: urllib.request.urlopen(page, timeout=20).status) == 200
    finally:
        cluster.close()


def test_a_partition_without_networks_is_refused_with_the_reason():
    with LocalCluster(storage=1) as cluster:
        with pytest.raises(PartitionNotPermitted, match="network=True"):
            cluster.partition([0], ["client"])


def test_schemas_are_deployed_and_refused_with_their_line():
    with LocalCluster(storage=1, schemas="document item { field name type string {} }") as cluster:
        command = [find_program("fjord"), "schema", "list", "--cluster", cluster.address]
        assert "item" in subprocess.run(command, capture_output=True, text=True).stdout
    with pytest.raises(ClusterError, match="not deployed.*line 1"):
        LocalCluster(storage=1, schemas=["document item { field }"]).start()


def test_names_are_checked():
    with LocalCluster(storage=1) as cluster:
        with pytest.raises(ValueError, match="storage.7.*expected one of fleetcontroller.0, distributor.0, storage.0"):
            cluster.kill("storage.7")
    with pytest.raises(ValueError, match="storage is 0"):
        LocalCluster(storage=0)


def test_a_missing_program_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("FJORD_BIN", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="FJORD_BIN is .*fjordd"):
        find_program("fjordd")


def test_failures_print_the_logs(capfd):
    with pytest.raises(RuntimeError, match="as planned"):
        with LocalCluster(storage=1):
            raise RuntimeError("as planned")
    assert "--- storage.0" in capfd.readouterr().err


def test_ctrl_c_of_the_terminal_does_not_reach_the_nodes():
    with LocalCluster(storage=1) as cluster:
        groups = {os.getpgid(process.pid) for process in cluster._processes.values()}
        assert os.getpgrp() not in groups
