"""Feeds, visits, subscriptions, changes by selection, and files."""

import gc
import gzip
import json
import os
import threading

import pytest

import fjord


def feed_items(client, space, count):
    stats = client.feed((space(n), {"name": f"n{n}", "price": n}) for n in range(count))
    assert (stats.ok, stats.failed) == (count, 0)
    return stats


# --- feed


def test_a_feed_goes_on_after_bad_rows_and_reports_them(client, space):
    client.put(space("there"), {"price": 1})
    rows = [
        (space(0), {"price": 0}),
        (space(1), {"price": "much"}),
        {"put": space(2), "fields": {"price": 2}},
        {"put": space(3), "feilds": {}},
        {"update": space("there"), "fields": {"price": {"increment": 5}}},
        {"update": space("missing"), "fields": {"price": {"increment": 5}}},
        {"remove": space("there"), "condition": "item.price == 1"},
        {"remove": space("nothing")},
        "text",
        (space(9, "nothing"), {}),
        ("nonsense", {}),
        client.get(space("there")),
        {"update": space("new"), "fields": {"price": {"increment": 5}}, "create": True},
    ]
    results = []
    stats = client.feed(iter(rows), on_result=results.append)
    by_row = {result.row: result for result in results}
    assert sorted(by_row) == list(range(len(rows)))
    failed = {row: type(result.error).__name__ for row, result in by_row.items() if result.error}
    assert failed == {1: "WrongType", 3: "InvalidArgument", 5: "NotFound", 6: "ConditionFailed", 8: "WrongType",
                      9: "UnknownType", 10: "InvalidId"}
    assert (stats.ok, stats.failed, stats.in_doubt) == (len(rows) - len(failed), len(failed), 0)
    assert sum(stats.failed_by_code.values()) == len(failed)
    assert {result.row for result in stats.errors} == set(failed)
    assert by_row[1].id == space(1) and by_row[1].version is None
    assert by_row[0].version == client.get(space(0)).version
    assert by_row[5].id == space("missing")
    assert client.get(space("new"))["price"] == 5


def test_a_feed_without_callback_keeps_the_first_errors(client, space):
    stats = client.feed((space(n), {"price": "x" if n % 2 else n}) for n in range(1000))
    assert (stats.ok, stats.failed, len(stats.errors)) == (500, 500, 100)
    assert stats.errors[0].row == 1
    assert stats.p99 >= stats.p50 > 0 and stats.docs_s > 0


@pytest.mark.parametrize("where", ["rows", "on_result"])
def test_an_exception_of_the_program_ends_the_feed(client, space, where):
    def rows():
        for n in range(10000):
            if where == "rows" and n == 700:
                raise KeyError("own")
            yield space(n), {"price": n}

    def on_result(_):
        if where == "on_result":
            raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        client.feed(rows(), on_result=on_result)
    assert client.get(space(0))["price"] == 0


@pytest.mark.parametrize("window", [0, -1, "many", True, 1.5])
def test_a_wrong_window_is_named(client, window):
    with pytest.raises(fjord.WrongType, match='max_inflight: expected int above 0 or "auto"'):
        client.feed([], max_inflight=window)


def test_a_window_of_one(client, space):
    assert client.feed(((space(n), {"price": n}) for n in range(20)), max_inflight=1).ok == 20
    assert client.feed([]).ok == 0


# --- visit


def test_a_visit_gives_each_document_once(client, space):
    feed_items(client, space, 3000)
    found = [document.id for document in client.visit(space.where(), slices=3)]
    assert sorted(found) == sorted(space(n) for n in range(3000))
    visit = client.visit(space.where("item.price < 10"), type="item", fields=["price"])
    documents = list(visit)
    assert sorted(document["price"] for document in documents) == list(range(10))
    assert all(list(document) == ["price"] for document in documents)
    assert visit.progress == 1 and visit.eta == 0
    assert visit.statistics["documents_matched"] == 10


def test_fields_without_a_type_are_those_of_each_type(client, space):
    client.put(space(1), {"name": "a", "price": 1, "stock": 1})
    client.put(space(1, "other"), {"name": "b", "price": "2"})
    found = {document.id: dict(document) for document in client.visit(space.where(), fields=["price", "name"])}
    assert found == {space(1): {"name": "a", "price": 1}, space(1, "other"): {"name": "b", "price": "2"}}
    assert [dict(one) for one in client.visit(space.where(), type="item", ids_only=True)] == [{}]


def test_a_visit_resumes_behind_what_it_gave(client, space):
    feed_items(client, space, 500)
    visit = client.visit(space.where(), slices=2)
    first = [next(visit).id for _ in range(123)]
    cursor = visit.cursor
    visit.close()
    rest = [document.id for document in client.visit(space.where(), slices=2, resume=cursor)]
    assert sorted(first + rest) == sorted(space(n) for n in range(500))
    with pytest.raises(fjord.InvalidArgument, match="resume"):
        client.visit(space.where(), slices=3, resume=cursor)


def test_slices_are_disjoint(client, space):
    feed_items(client, space, 200)
    parts = [{document.id for document in client.visit(space.where(), slice=(k, 3))} for k in range(3)]
    assert sum(map(len, parts)) == len(set().union(*parts)) == 200


def test_removes_and_times(client, space):
    early = client.put(space(1), {"price": 1}).version
    late = client.put(space(2), {"price": 2}).version
    client.remove(space(1))
    found = {one.id: type(one).__name__ for one in client.visit(f'id.namespace == "{space.name}"', include_removed=True)}
    assert found == {space(1): "Removed", space(2): "Document"}
    assert late > early
    assert [one.id for one in client.visit(space.where(), since=late, until=late)] == [space(2)]


def test_a_closed_visit_ends(client, space):
    client.feed((space(n), {"name": "x" * 10_000}) for n in range(2000))
    with client.visit(space.where(), buffer_bytes=50_000) as visit:
        next(visit)
    assert len(list(visit)) < 1999  # what had arrived, and then the end
    with pytest.raises(StopIteration):
        next(visit)


def visitors_of(cluster):
    """Returns how many visitors the storage nodes run."""
    import urllib.request

    total = 0
    for name in cluster.nodes:
        if name.startswith("storage"):
            with urllib.request.urlopen(f"http://{cluster._http_address(name)}/metrics", timeout=10) as page:
                for line in page.read().decode().splitlines():
                    if line.startswith("fjord_visitor_running"):
                        total += float(line.split()[-1])
    return total


def test_an_iterator_closed_early_ends_the_work_of_the_nodes(client, space, cluster):
    client.feed((space(n), {"name": "x" * 5000}) for n in range(4000))
    visit = client.visit(space.where(), buffer_bytes=100_000)
    for _ in visit:
        break
    assert visitors_of(cluster) > 0
    del visit, _
    gc.collect()
    fjord_wait(lambda: visitors_of(cluster) == 0)


def fjord_wait(condition):
    """Waits until the condition holds; the test's time limit ends a wait that never ends."""
    while not condition():
        threading.Event().wait(0.02)


def test_a_slow_reader_bounds_the_memory(client, space):
    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    client.feed((space(n), {"name": "x" * 50_000}) for n in range(1000))  # 50 MB
    visit = client.visit(space.where(), buffer_bytes=2_000_000)
    next(visit)
    before = resident()
    # The nodes would have sent everything by the time that another visit has read everything.
    assert sum(1 for _ in client.visit(space.where(), fields=["price"])) == 1000
    assert resident() - before < 20_000_000
    assert sum(1 for _ in visit) == 999


def test_one_thread_at_a_time(client, space):
    feed_items(client, space, 10)
    changes = client.subscribe(space.where(), from_now=True, poll_interval=0.05)
    while changes.next(timeout=60).kind != "caught_up":
        pass
    begun = threading.Event()

    def wait():
        begun.set()
        for change in changes:
            if change.kind == "put":
                return

    thread = threading.Thread(target=wait)
    thread.start()
    begun.wait()

    def is_refused():
        try:
            changes.next(timeout=0.001)
        except RuntimeError as error:
            return "another thread" in str(error)
        return False

    fjord_wait(is_refused)
    client.put(space(99), {})
    thread.join()


@pytest.mark.parametrize("arguments, text", [
    ({"slices": 0}, "slices is 0"),
    ({"slices": "x"}, "slices: expected int above 0, got str 'x'"),
    ({"selection": "item.price >"}, "selection, column 13"),
    ({"selection": 5}, "selection: expected str"),
    ({"type": "nothing"}, "nothing"),
    ({"fields": ["colour"]}, "colour"),
    ({"fields": [1]}, "fields[0]: expected str, got int 1"),
    ({"slice": (3, 3)}, "there is no slice 3 of 3"),
    ({"resume": "nonsense"}, "resume"),
    ({"priority": "top"}, "priority"),
])
def test_a_wrong_visit_is_refused_at_once(client, arguments, text):
    with pytest.raises(ValueError) as caught:
        client.visit(**arguments)
    assert text in str(caught.value)


# --- subscribe


def test_changes_come_in_order_and_resume(client, space):
    client.put(space(1), {"price": 1})
    changes = client.subscribe(space.where(), type="item", poll_interval=0.05)
    seen = next(changes)
    assert (seen.kind, seen.id, dict(seen.document)) == ("put", space(1), {"price": 1})
    while next(changes).kind != "caught_up":
        pass
    client.put(space(1), {"price": 2})
    client.remove(space(1))
    client.put(space(2), {"price": 3})
    found = []
    while len(found) < 3 or found[-1].kind == "caught_up":
        change = next(changes)
        if change.kind != "caught_up":
            found.append(change)
        if {one.id for one in found if one.kind == "put"} >= {space(2)} and any(one.kind == "remove" for one in found):
            break
    # A document that is removed before it is read again is only removed.
    assert [one.kind for one in found if one.id == space(1)][-1] == "remove"
    cursor = changes.cursor
    changes.close()
    client.put(space(3), {"price": 4})
    with client.subscribe(space.where(), type="item", poll_interval=0.05, resume=cursor) as later:
        # What came just before the cursor may come again.
        assert next(one.id for one in later if one.kind == "put" and one.id != space(2)) == space(3)


def test_a_change_is_waited_for_so_long(client, space):
    with client.subscribe(space.where(), from_now=True, poll_interval=0.05) as changes:
        while changes.next(timeout=60).kind != "caught_up":
            pass
        change = changes.next(timeout=0.01)
        assert change is None or change.kind == "caught_up"
        client.put(space(1), {"price": 1})
        while True:
            change = changes.next(timeout=60)
            if change.kind == "put":
                break
        assert change.id == space(1)


def test_an_old_cursor_is_refused(client):
    with pytest.raises(ValueError, match="(?i)cursor|resume"):
        client.subscribe(resume="nonsense")


# --- update_where, remove_where


def test_changes_of_many_documents(client, space):
    feed_items(client, space, 400)
    progress, cursors = [], []
    counted = client.update_where(space.where("item.price < 100"), {"stock": {"assign": 7}}, type="item", dry_run=True)
    assert (counted.matched, counted.applied) == (100, 0)
    done = client.update_where(space.where("item.price < 100"), {"stock": {"assign": 7}}, type="item",
                               on_progress=lambda *one: progress.append(one), on_cursor=cursors.append)
    assert (done.matched, done.applied, done.failed, done.has_more) == (100, 100, 0, False)
    assert cursors and all(isinstance(one, str) for one in cursors)
    assert sum(1 for _ in client.visit(space.where("item.stock == 7"))) == 100
    again = client.update_where(space.where("item.price < 100"), {"stock": {"assign": 7}}, type="item", resume=done.cursor)
    assert again.applied == 0
    failures = []
    bad = client.update_where(space.where("item.price >= 398"), {"price": {"increment": 2**31 - 1}}, type="item",
                              on_failure=lambda *one: failures.append(one))
    assert bad.failed == 2 and bad.failed_by_code == {"INVALID_FIELD": 2}
    assert all(isinstance(error, fjord.InvalidField) for _, error in failures)
    gone = client.remove_where(space.where("item.price >= 100"), type="item")
    assert gone.applied == 300
    assert sum(1 for _ in client.visit(space.where())) == 100


def test_a_change_of_many_needs_a_scope(client, space):
    with pytest.raises(fjord.InvalidArgument, match="all_types"):
        client.remove_where(space.where())
    with pytest.raises(fjord.WrongType):
        client.update_where(space.where(), "text", type="item")
    with pytest.raises(fjord.InvalidSelection):
        client.remove_where("item.price >", type="item")


def test_a_cursor_that_cannot_be_stored_ends_the_run(client, space):
    feed_items(client, space, 50)

    def refuse(_):
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        client.remove_where(space.where(), type="item", on_cursor=refuse)
    assert sum(1 for _ in client.visit(space.where())) == 50


# --- files


def test_export_and_import(client, space, tmp_path):
    feed_items(client, space, 100)
    path = tmp_path / "items.jsonl.gz"
    done = client.export(path, space.where(), type="item", fields=["price"])
    assert (done.documents, done.bytes) == (100, path.stat().st_size)
    with gzip.open(path) as lines:
        assert sorted(json.loads(line)["fields"]["price"] for line in lines) == list(range(100))
    with pytest.raises(fjord.AlreadyExists):
        client.export(path, space.where(), type="item")
    assert client.export(path, space.where(), type="item", mode="replace").documents == 100
    client.remove_where(space.where(), type="item")
    assert client.import_file(path).stored == 100
    assert client.get(space(7))["name"] == "n7"


def test_an_import_reports_bad_records(client, space, tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("key,price,colour\n1,10,red\n2,much,red\n3,30,red\n")
    failures, warnings = [], []
    with pytest.raises(fjord.InvalidArgument, match="colour.*ignore_unknown"):
        client.import_file(str(path), type="item", id_field="key", id_namespace=space.name)
    assert client.get(space(3), None) is None
    done = client.import_file(str(path), type="item", id_field="key", id_namespace=space.name, ignore_unknown=True,
                              on_failure=lambda *one: failures.append(one), on_warning=warnings.append)
    assert (done.stored, done.failed, done.failed_by_code) == (2, 1, {"INVALID_FIELD": 1})
    [(file, line, error)] = failures
    assert (file, line) == (str(path), 3) and isinstance(error, fjord.InvalidField)
    assert "colour" in warnings[0]
    assert client.get(space(3))["price"] == 30
    with pytest.raises(fjord.Error, match="missing.csv"):
        client.import_file(tmp_path / "missing.csv", type="item")
