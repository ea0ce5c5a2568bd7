"""Jobs of every form, watched, changed, cancelled; administration, tuning and search as values."""

import os
import signal
import subprocess
import sys
import threading
import types

import pytest

import fjord
from fjord.aggregate import count
from fjord.jobs import JobFailed, aggregation, application, script
from fjord.testing import LocalCluster

LISTING = "document listing { field city type string { header } field price type int { header } }"
COUNT = """function map(doc, emit) emit(doc.fields.city, 1) end
function reduce(key, values) return #values end"""
# Takes long enough to be paused and cancelled: each document costs a second.
SLOW = """function map(doc, emit)
  local n = 0
  for i = 1, 1e9 do n = n + i % 7 end
  emit("n", n)
end
function reduce(key, values) return #values end"""
CITIES = ["Oslo", "Rome", "Rome", "Bern", "Rome"]


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(storage=2, redundancy=1, schemas=[LISTING]) as running:
        with running.client() as client:
            client.feed((f"id:a:listing::{i}", {"city": city, "price": i}) for i, city in enumerate(CITIES))
        yield running


@pytest.fixture
def client(cluster):
    with fjord.Client(cluster.address) as connected:
        yield connected


def test_a_script_from_a_string(client):
    job = client.jobs.submit(script(COUNT, "listing", "listing.price > 0"))
    ended = job.wait()
    assert ended.state == "done" and ended.has_ended and ended.documents_read == 4
    assert [(row.key, row.value) for row in job.results()] == [("Bern", 1), ("Rome", 3)]


def test_an_application_an_aggregation_and_several_passes(client):
    counted = client.jobs.submit(application("citycount", "listing", parameters={"field": "city"}))
    assert {row.key: row.value for row in counted.results()} == {"Bern": 1, "Oslo": 1, "Rome": 3}
    cities = client.aggregate("listing").group_by("city").agg(n=count())
    job = client.jobs.run([cities, aggregation(group_by=["n"], aggregates=["count() as cities"])])
    assert sorted(row.value for row in job.results()) == [[1, 2], [3, 1]]
    assert [one.state for one in job.status().passes] == ["done", "done"]


def test_an_incremental_job_reads_what_changed(client):
    first = client.jobs.run(script(COUNT, "listing"), incremental=True)
    client.put("id:a:listing::new", {"city": "Oslo", "price": 9})
    second = client.jobs.run(script(COUNT, "listing"), incremental=True)
    client.remove("id:a:listing::new")
    assert {row.key: row.value for row in second.results()}["Oslo"] == 2
    assert second.status().passes[0].documents_reused > 0
    assert first.id != second.id


def test_jobs_are_listed_and_removed(client):
    job = client.jobs.run(script(COUNT, "listing"))
    assert job.id in [one.id for one in client.jobs.list()]
    assert client.jobs.get(job.id).status().state == "done"
    job.remove_results()
    with pytest.raises(fjord.Error):
        list(job.results())
    job.remove()
    with pytest.raises(fjord.NotFound):
        client.jobs.get(job.id)


def test_documents_that_the_script_fails_on_are_dead_letters(client):
    job = client.jobs.submit(script("""
        function map(doc, emit)
          if doc.fields.city == "Bern" then error("no") end
          emit("k", 1)
        end
        function reduce(key, values) return #values end""", "listing"))
    job.wait()
    letters = job.dead_letters()
    assert [letter.document for letter in letters] == ["id:a:listing::3"] and "no" in letters[0].error


def test_a_job_is_paused_changed_resumed_and_cancelled(client):
    job = client.jobs.submit(script(SLOW, "listing", parameters={"timeout_ms": 60000}), settings={"priority": "normal"})
    job.pause()
    assert job.status().state == "paused"
    job.set(priority="background")
    assert job.status().settings["priority"] == "background"
    job.resume()
    assert job.status().state != "paused"
    job.cancel()
    with pytest.raises(JobFailed, match="cancelled") as failed:
        job.wait()
    assert failed.value.job.state == "cancelled"
    assert job.wait(check=False).state == "cancelled"


INTERRUPTED = """
import sys
import fjord
from fjord.jobs import script
client = fjord.Client(sys.argv[1])
job = client.jobs.submit(script(sys.argv[2], "listing", parameters={"timeout_ms": 60000}), detached=sys.argv[3] == "detached")
print(job.id, flush=True)
try:
    job.wait(on_progress=lambda info: print("waits", flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("how, state", [("attached", {"cancelled"}), ("detached", {"running", "queued"})])
def test_ctrl_c_cancels_the_job_unless_it_is_detached(client, cluster, how, state):
    program = subprocess.Popen([sys.executable, "-c", INTERRUPTED, cluster.address, SLOW, how], stdout=subprocess.PIPE, text=True)
    job = client.jobs.get(program.stdout.readline().strip())
    assert program.stdout.readline() == "waits\n"
    program.send_signal(signal.SIGINT)
    rest, _ = program.communicate(timeout=60)
    assert rest.endswith("interrupted\n") and program.returncode == 0
    if how == "attached":
        assert job.wait(check=False).state in state
    else:
        # On a busy machine the limit of the script may have ended the job before this asks.
        found = job.status()
        assert found.state in state or (found.state == "failed" and "map() failed" in str(found.error))
        if found.state in state:
            job.cancel()


def test_wait_reports_progress_and_does_not_hold_the_interpreter(client):
    job = client.jobs.submit(script(SLOW, "listing", parameters={"timeout_ms": 60000}), settings={"priority": "background"})
    seen = threading.Event()
    ended = []
    thread = threading.Thread(target=lambda: ended.append(job.wait(check=False, on_progress=lambda info: seen.set())))
    thread.start()
    assert seen.wait(60)
    job.cancel()
    thread.join(60)
    assert ended[0].state == "cancelled"


def test_a_failed_job_says_why(client):
    with pytest.raises(fjord.InvalidRequest):
        client.jobs.submit(script("function reduce(", "listing"))
    with pytest.raises(fjord.UnknownType):
        client.jobs.submit(script(COUNT, "nothing"))
    with pytest.raises(fjord.WrongType, match=r"passes\[0\]"):
        client.jobs.submit(["count"])
    with pytest.raises(fjord.InvalidArgument, match="at least one"):
        client.jobs.submit([])
    with pytest.raises(fjord.InvalidArgument):
        client.jobs.submit(script(COUNT, "listing"), settings={"no_such_setting": 1})


def test_the_bar_is_shown_on_a_terminal_only():
    import pty

    from fjord.progress import Progress

    leader, follower = pty.openpty()
    program = "from fjord.progress import Progress\nimport sys\nwith Progress('work', {}) as p: p.update(0.5, 3)"
    for show, is_seen in (("True", True), ("None", False), ("False", False)):
        done = subprocess.run([sys.executable, "-c", program.format(show)], stderr=subprocess.PIPE, text=True)
        assert ("50%" in done.stderr) == is_seen
    subprocess.run([sys.executable, "-c", program.format("True")], stderr=follower, check=True)
    assert b"[###############...............]  50%, 3 s left" in os.read(leader, 1000)
    os.close(leader)
    os.close(follower)
    with Progress("work") as quick:
        quick.update(0.9)
        assert not quick._was_shown


class FakeNotebook:
    """Stands for the package IPython in the process of a notebook."""

    def __init__(self):
        self.shown = []

        class ZMQInteractiveShell:
            pass

        self.IPython = types.ModuleType("IPython")
        self.IPython.get_ipython = ZMQInteractiveShell
        self.IPython.display = types.ModuleType("IPython.display")
        self.IPython.display.display = self.display

    def display(self, text, *, raw, display_id):
        assert raw and display_id
        self.shown.append(text["text/plain"])
        return self

    def update(self, text, *, raw):
        self.display(text, raw=raw, display_id=True)


def test_the_bar_is_shown_in_a_notebook(monkeypatch, capfd):
    from fjord.progress import Progress

    notebook = FakeNotebook()
    monkeypatch.setitem(sys.modules, "IPython", notebook.IPython)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.IPython.display)
    with Progress("work", True) as bar:
        bar.update(0.1)
        bar.update(1.0, 0)
    assert [line.split("]")[1] for line in notebook.shown] == ["  10%", " 100%, 0 s left"]
    with Progress("work", False) as hidden:
        hidden.update(0.5)
    notebook.IPython.get_ipython = lambda: None  # IPython on a terminal that is no notebook
    with Progress("work") as plain:
        plain.update(0.5)
    assert len(notebook.shown) == 2 and capfd.readouterr().err == ""


# --- Administration


def test_status_nodes_buckets_and_history(client):
    status = client.admin.status()
    assert status.health == "healthy" and status.reasons == []
    assert {node.name for node in status.nodes} >= {"storage.0", "storage.1", "distributor.0"}
    assert client.admin.nodes()[0].state == "up"
    assert ":" in client.admin.state().leader
    buckets = client.admin.bucket_of("id:a:listing::1")
    assert buckets[0].state == "in sync" and buckets[0].replicas[0].document_version > 0
    assert client.admin.bucket(buckets[0].bucket)[0].bucket == buckets[0].bucket
    assert client.admin.unhealthy_buckets() == []
    assert client.admin.history()[-1].version > 0
    plan = client.admin.change_nodes("retire", ["storage.1"])
    assert not plan.done and plan.nodes == ["storage.1"]
    with pytest.raises(fjord.InvalidArgument, match="action"):
        client.admin.change_nodes("explode", ["storage.1"])


def test_settings_change_by_version_and_go_back(client):
    before = client.admin.settings()
    change = client.admin.set({"storage.visitors_max": 33}, if_version=before.version, reason="a test")
    assert change.changes == ["storage.visitors_max: default -> 33"]
    with pytest.raises(fjord.ConditionFailed):
        client.admin.set({"storage.visitors_max": 34}, if_version=before.version)
    assert client.admin.settings()["storage.visitors_max"].live_value == "33"
    assert "a test" in client.admin.settings().history[-1].who
    with pytest.raises(fjord.InvalidArgument) as refused:
        client.admin.set({"storage.visitors_max": 10**9})
    assert refused.value.setting == "storage.visitors_max" and "to" in refused.value.limit
    client.admin.revert()
    assert client.admin.settings()["storage.visitors_max"].live_value == ""
    with pytest.raises(fjord.NotFound):
        client.admin.set({"no.such": 1})


def test_schemas_are_deployed_and_dropping_a_field_is_refused(client):
    client.admin.deploy_schemas("document pet { field name type string {} field age type int {} }")
    assert any("document pet" in text for text in client.admin.schemas())
    client.put("id:zoo:pet::1", {"name": "Rex", "age": 3})
    with pytest.raises(fjord.InvalidArgument):
        client.admin.deploy_schemas("document pet { field name type string {} }")
    client.admin.deploy_schemas("document pet { field name type string {} }", may_drop=["pet.age"])
    with pytest.raises(fjord.InvalidArgument, match="expected the name of a document type"):
        client.admin.deploy_schemas("document { }")


def test_the_tuner_changes_settings_and_takes_them_back(client):
    applied = client.tune.apply({"storage.visitors_max": 48}, reason="a test")
    assert applied.values == {"storage.visitors_max": ("", "48")}
    assert client.tune.history()[-1].id == applied.id
    assert client.tune.revert(applied.id).values == {"storage.visitors_max": ("48", "")}
    assert all(change.reason for change in client.tune.plan().changes)


def test_a_search_without_ads_finds_none(client):
    with pytest.raises(fjord.InvalidArgument):
        client.search("tea", context={"shoe size": 43})
    found = client.search("tea")
    assert found.places == [] and found.variants


# --- Typed classes


def test_classes_of_a_schema_are_put_and_got(client):
    from fjord import schema

    client.admin.deploy_schemas("""document book {
      struct person { field name type string {} field born type int {} }
      field title type string {} field authors type array<person> {} field by_role type map<string, person> {}
      field editor type person {} field class type string {} field id type int {} field scores type weightedset<string> {}
    }""")
    Book = schema.dataclass("book", client=client)
    Person = Book._shapes["editor"]
    book = Book(id="id:lib:book::1", title="Tea", authors=[Person(name="Ann", born=1970)], editor=Person(name="Bo"),
                by_role={"cover": Person(name="Cy")}, class_="novel", id_=7, scores={"good": 3})
    written = book.put(client)
    assert client.get("id:lib:book::1") == {
        "title": "Tea", "authors": [{"name": "Ann", "born": 1970}], "by_role": {"cover": {"name": "Cy"}},
        "editor": {"name": "Bo"}, "class": "novel", "id": 7, "scores": {"good": 3}}
    again = Book.get(client, "id:lib:book::1")
    assert again == book and again.version == written.version
    assert [one.title for one in Book.visit(client, 'book.title == "Tea"')] == ["Tea"]
    assert client.feed([Book(id="id:lib:book::2", title="Milk").row()]).ok == 1
    with pytest.raises(TypeError):
        Book(id="id:lib:book::1", pages=3)
    with pytest.raises(fjord.UnknownType, match="there are: .*book"):
        schema.python("nothing", client=client)


def test_the_source_of_classes_passes_strict_type_checks(tmp_path):
    pytest.importorskip("mypy")
    from fjord import schema

    text = """document book { struct person { field name type string {} } field authors type array<person> {}
      field by_role type map<string, array<person>> {} field class type raw {} }"""
    (tmp_path / "book.py").write_text(schema.python("book", schemas=text))
    (tmp_path / "use.py").write_text("from book import Book, Person\n"
                                     "one = Book(id='id:a:book::1', authors=[Person(name='Ann')])\n"
                                     "name: str = (one.authors or [])[0].name or ''\n")
    environment = {**os.environ, "MYPYPATH": os.pathsep.join([str(tmp_path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])}
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "use.py"],
                          cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
