"""Threads, signals, forks and the end of the interpreter; what import does and costs."""

import os
import subprocess
import sys
import threading
import time

import pytest

import fjord
from conftest import SCHEMA, package_environment
from fjord.testing import LocalCluster


def run_python(program, *arguments, timeout=60):
    return subprocess.run([sys.executable, "-B", "-c", program, *arguments], env=package_environment(), text=True,
                          capture_output=True, timeout=timeout)


def test_import_has_no_side_effects():
    program = """
import os, sys, threading
before = set(os.listdir("/proc/self/fd"))
import fjord
assert set(os.listdir("/proc/self/fd")) == before, "open files"
assert threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == 1, "threads"
assert not {"asyncio", "numpy", "pyarrow", "pandas", "fjord.schema", "fjord.testing"} & set(sys.modules), "heavy modules"
assert "AsyncClient" in fjord.__all__
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


def test_the_modules_are_there_after_import_fjord():
    program = """
import sys
import fjord
assert "class Pet(" in fjord.schema.python("pet", schemas="document pet { field name type string {} }")
for name in fjord._MODULES:
    assert name in dir(fjord)
    if name not in ("parquet", "torch"):
        assert getattr(fjord, name) is sys.modules["fjord." + name]
assert not hasattr(fjord, "nothing")
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


def test_one_client_for_many_threads(client, space):
    failures = []

    def work(number):
        try:
            for n in range(200):
                client.put(space(f"{number}-{n}"), {"price": n})
                assert client.get(space(f"{number}-{n}"))["price"] == n
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sum(1 for _ in client.visit(space.where())) == 800


def test_other_threads_run_while_one_waits(address):
    with fjord.Client(address) as client, client.subscribe(from_now=True) as changes:
        done = threading.Event()
        thread = threading.Thread(target=lambda: [change for change in changes] and None or done.set())
        thread.start()
        turns = sum(1 for _ in range(100_000))  # would not go on if the waiting thread kept the interpreter lock
        changes.close()
        thread.join(60)
        assert turns and done.is_set()


def test_an_unreachable_cluster_is_named():
    with fjord.Client("127.0.0.1:1", timeout=0.5) as client:
        for call in (client.ping, lambda: client.visit(), lambda: client.put("id:a:item::1", {})):
            with pytest.raises(fjord.NotReady, match="127.0.0.1:1"):
                call()
        with pytest.raises(fjord.Error):
            client.get("id:a:item::1")
    for wrong in ("nonsense", "", "127.0.0.1:99999999"):
        with pytest.raises(fjord.InvalidArgument):
            fjord.Client(wrong).ping()
    with pytest.raises(fjord.WrongType, match="addresses"):
        fjord.Client(5)
    with pytest.raises(fjord.WrongType, match="timeout"):
        fjord.Client("127.0.0.1:1", timeout="x")


def test_a_closed_client_says_so(address):
    client = fjord.Client(address)
    changes = client.subscribe(from_now=True)
    caught = []

    def wait():
        try:
            for _ in changes:
                pass
        except fjord.ClientClosed as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    client.close()
    client.close()
    thread.join(60)
    assert len(caught) == 1
    for call in (client.ping, lambda: client.get("id:a:item::1"), lambda: client.visit(), client.types):
        with pytest.raises(fjord.ClientClosed):
            call()
    assert repr(client) == f"<fjord.Client {address}, closed>"


WAITS = {
    "get": "client.get('id:a:item::1')",
    "ping": "client.ping()",
    "feed": "client.feed((f'id:a:item::{n}', {'price': n}) for n in iter(int, 1))",
    "visit": "list(client.visit())",
    "subscribe": "[change for change in client.subscribe(from_now=True)]",
    "update_where": "client.update_where('item.price > 0', {'price': {'increment': 1}}, type='item', on_cursor=lambda _: None)",
}


@pytest.fixture(scope="module")
def paused():
    """The address of a cluster whose storage node does not answer."""
    with LocalCluster(storage=1, schemas=[SCHEMA]) as cluster:
        with cluster.client() as client:
            client.put("id:a:item::1", {"price": 1})
        cluster.pause(0)
        yield cluster.address
        cluster.resume(0)


TABLE = "pyarrow.table({'_id': ['id:a:item::1'], 'price': [1]})"
# Each waits for a storage node that does not answer.
WAITS_FOR_A_NODE = {
    "table": "client.visit_arrow(type='item').table()",
    "batches": "list(client.visit_arrow(type='item'))",
    "polars": "client.visit_arrow(type='item').pl()",
    "import_arrow": f"client.import_arrow({TABLE})",
    "feed of a table": f"client.feed({TABLE})",
    "import_file": "client.import_file('rows.jsonl')",
    "export": "client.export('out.jsonl', type='item')",
    "remove_where": "client.remove_where('true', type='item')",
    "aggregate": "client.aggregate('item').agg('count()').fetchall()",
    "jobs.run": "client.jobs.run(client.aggregate('item').agg('count()'))",
}


@pytest.mark.parametrize("how", ["interrupt", "close"])
@pytest.mark.parametrize("call", WAITS_FOR_A_NODE)
def test_a_wait_for_silent_nodes_ends(paused, tmp_path, monkeypatch, call, how):
    for package in ("pyarrow", "polars"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"put": "id:a:item::1", "fields": {"price": 1}}\n')
    end = "os.kill(os.getpid(), signal.SIGINT)" if how == "interrupt" else "client.close()"
    program = f"""
import os, signal, sys, threading
import polars, pyarrow
import fjord
client = fjord.Client(sys.argv[1], timeout=1000)
client.ping()
threading.Timer(0.3, lambda: {end}).start()
try:
    {WAITS_FOR_A_NODE[call]}
except (KeyboardInterrupt, fjord.ClientClosed) as error:
    print(type(error).__name__)
"""
    done = run_python(program, paused, timeout=60)
    assert done.stdout == ("KeyboardInterrupt\n" if how == "interrupt" else "ClientClosed\n"), done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("call", WAITS)
def test_keyboard_interrupt_ends_a_wait(address, call):
    # Port 9 of the cluster's host does not answer; those that need a cluster get it.
    target = address if call in ("feed", "subscribe") else "silent"
    program = f"""
import signal, socket, sys, threading, os
import fjord
if sys.argv[1] == "silent":
    listener = socket.create_server(("127.0.0.1", 0))
    address = "127.0.0.1:%d" % listener.getsockname()[1]
else:
    address = sys.argv[1]
client = fjord.Client(address, timeout=1000)
def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.3, interrupt).start()
try:
    {WAITS[call]}
except KeyboardInterrupt:
    print("interrupted")
"""
    done = run_python(program, target)
    assert done.stdout == "interrupted\n", done.stderr
    assert done.returncode == 0, done.stderr


def test_a_fork_after_connect_is_refused(address):
    with fjord.Client(address) as client:
        client.ping()
        visit = client.visit()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with pytest.raises(fjord.ForkedProcess, match="after the fork"):
                    client.get("id:a:item::1")
                with pytest.raises(fjord.ForkedProcess):
                    client.put("id:a:item::1", {})
                with fjord.Client(address) as own:
                    own.ping()
                del visit
                client.close()
                os.write(write, b"ok")
            except BaseException as error:
                os.write(write, repr(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            assert pipe.read() == b"ok"
        os.waitpid(child, 0)
        client.ping()
        visit.close()


OPEN_ITERATORS = {
    "visit": ("client.visit(buffer_bytes=1000)", "next(source)", "list(source)"),
    "subscribe": ("client.subscribe(buffer_bytes=1000)", "next(source)", "[change for change in source]"),
    "read_all": ("client.visit_arrow(type='item', buffer_bytes=1000, batch_rows=1).reader()", "source.read_next_batch()",
                 "visit.table() or source.read_all()"),
    "batches": ("iter(client.visit_arrow(type='item', buffer_bytes=1000, batch_rows=1))", "next(source)", "list(source)"),
    "job rows": ("_core.JobRows(client._core, 'none')", "source", "source.next()"),
    "repr": ("client", "source", "repr(client) and client.types()"),
}


@pytest.mark.parametrize("name", OPEN_ITERATORS)
def test_an_open_iterator_refuses_to_go_on_in_a_forked_process(client, address, space, name):
    pytest.importorskip("pyarrow")
    client.feed((space(n), {"name": "x" * 500}) for n in range(200))
    make, begin, use = OPEN_ITERATORS[name]
    program = f"""
import os, sys
import fjord
from fjord import _core
client = fjord.Client(sys.argv[1])
client.ping()
visit = client.visit_arrow(type="item")
source = {make}
{begin}
child = os.fork()
if child == 0:
    try:
        {use}
    except fjord.ForkedProcess as error:
        print("refused" if "after the fork" in str(error) else error)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    done = run_python(program, address, timeout=30)
    assert (done.stdout, done.returncode) == ("refused\n", 0), done.stderr


def test_a_client_that_was_not_used_may_be_forked(address):
    client = fjord.Client(address)
    child = os.fork()
    if child == 0:
        try:
            client.ping()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    client.close()


CALLBACKS_THAT_NEVER_END = """
running = threading.Semaphore(0)
def never_end(*_):
    running.release()
    while True:
        pass
def rows():
    never_end()
    yield {}
put = {"put": "id:exit:item::1", "fields": {}}
for feed in lambda: client.feed([put], on_result=never_end), lambda: client.feed(rows()):
    threading.Thread(target=feed, daemon=True).start()
    running.acquire()
"""


@pytest.mark.parametrize("end", [
    "",
    "client.subscribe(from_now=True)",
    "visit = client.visit(); next(visit, None)",
    "threading.Thread(target=lambda: list(client.subscribe()), daemon=True).start()",
    "threading.Thread(target=lambda: list(client.visit()), daemon=True).start()",
    # The interpreter takes the lock away from threads that the module called back.
    CALLBACKS_THAT_NEVER_END,
    "[threading.Thread(target=lambda: [client.put('id:exit:item::1', {}) for _ in iter(int, 1)], daemon=True).start() for _ in range(3)]",
    "import asyncio; loop = asyncio.new_event_loop(); mine = fjord.AsyncClient(sys.argv[1]); loop.run_until_complete(mine.ping())",
    "sys.exit(7)",
])
def test_the_interpreter_ends_whatever_goes_on(address, end):
    program = f"import sys, threading, fjord\nclient = fjord.Client(sys.argv[1])\nclient.ping()\n{end}\n"
    done = run_python(program, address, timeout=30)
    assert done.returncode == (7 if "exit(7)" in end else 0), done.stderr
    assert "terminate" not in done.stderr and "Fatal" not in done.stderr


def test_memory_stays_flat(client, space):
    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    client.feed((space(n), {"name": "x" * 100, "tags": ["a", "b"], "moods": {"sad": 1}}) for n in range(1000))

    def work():
        for _ in range(5):
            assert sum(1 for _ in client.visit(space.where())) == 1000
            client.get_many(space(n) for n in range(200))
            for n in range(200):
                with pytest.raises(fjord.WrongType):
                    client.put(space(n), {"price": "x"})

    for _ in range(2):
        work()
    before = resident()
    for _ in range(3):
        work()
    # 15 visits of 1000 documents and 3,000 gets: 200 bytes lost in each would be 3.6 MB.
    assert resident() - before < 2_500_000


def is_in_sync(status):
    return status.buckets_in_sync == status.buckets and all(node.state == "up" for node in status.nodes)


def test_killed_nodes(cluster, space):
    """Storage nodes are killed and restarted one after the other, during a feed, a visit and a subscription."""
    with fjord.Client(cluster.address, timeout=60) as client:
        seen = set()
        changes = client.subscribe(space.where(), poll_interval=0.05)

        def follow():
            for change in changes:
                if change.kind == "put":
                    seen.add(change.id)
                    if len(seen) == 3000:
                        return

        follower = threading.Thread(target=follow)
        follower.start()

        def rows():
            for n in range(3000):
                if n == 1000:
                    cluster.kill(0)
                if n == 2000:
                    cluster.restart(0)
                yield space(n), {"price": n}

        stats = client.feed(rows(), max_inflight=50)
        assert (stats.ok, stats.failed, stats.in_doubt) == (3000, 0, 0), stats
        deadline = time.monotonic() + 60
        while not is_in_sync(client.admin.status()):  # Until then, what was written last may be on storage.1 only.
            assert time.monotonic() < deadline, client.admin.status().reasons
        visit = client.visit(space.where(), slices=2)
        found = [next(visit).id]
        cluster.kill(1)
        found += [document.id for document in visit]
        assert sorted(found) == sorted(space(n) for n in range(3000))
        cluster.restart(1)
        follower.join(60)
        assert len(seen) == 3000
