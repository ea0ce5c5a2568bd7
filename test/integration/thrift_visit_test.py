"""Documents and visits through api/client.thrift: every distributor answers, and cursors survive whatever ends a visit."""

import json
import unittest

import harness
from thrift_client import Connection, binary, must, name_of

from fjord_api.ttypes import OperationKind
from fjord_client.ttypes import CloseVisit, NextVisit, OpenVisit, ReadDocument, WriteDocument

SCHEMA = """document item {
  field number type int { header }
  field text type string { }
}
document other { field number type int { header } }"""


def identity(i):
    return f"id:v:item::{i}"


def documents(count):
    return {identity(i): {"number": i, "text": f"{i} " + "x" * 300} for i in range(count)}


def feed(cluster, content):
    lines = "".join(json.dumps({"put": name, "fields": fields}) + "\n" for name, fields in content.items())
    cluster.must("feed", "-", stdin=lines)


class Reader:
    """Reads visits in chunks and checks that no document comes twice."""

    def __init__(self, test):
        self.test = test
        self.given = {}
        self.cursor = ""

    def take(self, reply):
        must(reply)
        for document in reply.documents:
            self.test.assertNotIn(document.id, self.given)
            line = json.loads(document.json)
            self.test.assertEqual(line["put"], document.id)
            self.test.assertGreater(document.timestamp_us, 0)
            self.given[document.id] = line["fields"]
        self.cursor = reply.cursor
        return reply

    def read_all(self, calls, request, chunk=0):
        visit = must(calls.openVisit(request)).visit
        while not self.take(calls.nextVisit(NextVisit(visit=visit, documents_max=chunk))).is_over:
            pass
        return self.given


class ThriftVisitTest(unittest.TestCase):
    def test_single_documents_at_any_distributor(self):
        with harness.Cluster(storage=2, distributors=2) as cluster:
            cluster.deploy(SCHEMA)
            for number, address in enumerate(cluster.address.split(",")):
                with Connection(address) as calls:
                    for i in range(20):  # Both distributors own some of these.
                        name = f"id:v:item::{number}-{i}"
                        put = must(calls.writeDocument(WriteDocument(kind=OperationKind.PUT, id=name, json='{"number": 1}')))
                        again = calls.writeDocument(WriteDocument(kind=OperationKind.PUT, id=name, json='{"number": 5}',
                                                                  required_version=0))
                        self.assertEqual(name_of(again.status), "TEST_AND_SET_FAILED")
                        self.assertEqual(again.version_us, put.timestamp_us)
                        must(calls.writeDocument(WriteDocument(kind=OperationKind.UPDATE, id=name,
                                                               json='{"number": {"increment": 1}}',
                                                               condition="item.number == 1")))
                        read = must(calls.readDocument(ReadDocument(id=name)))
                        self.assertEqual(json.loads(read.json), {"put": name, "fields": {"number": 2}})
                        self.assertGreater(read.timestamp_us, put.timestamp_us)
                        self.assertTrue(must(calls.writeDocument(WriteDocument(kind=OperationKind.REMOVE, id=name))).existed)
                        self.assertEqual(name_of(calls.readDocument(ReadDocument(id=name)).status), "NOT_FOUND")
                    for kind in (OperationKind.PUT, OperationKind.UPDATE, OperationKind.REMOVE):
                        own = WriteDocument(kind=kind, id="id:fjord:fjord_job:n=1:x", json="{}")
                        self.assertEqual(name_of(calls.writeDocument(own).status), "UNAUTHORIZED")
                    bad = calls.readDocument(ReadDocument(id="no id"))
                    self.assertEqual((name_of(bad.status), bad.status.node), ("INVALID_ID", f"distributor.{number}"))
                    self.assertEqual(name_of(calls.writeDocument(WriteDocument(id=identity(1))).status), "INVALID_ARGUMENT")

    def test_a_visit_gives_what_was_asked_for(self):
        with harness.Cluster(storage=2) as cluster:
            cluster.deploy(SCHEMA)
            content = documents(500)
            feed(cluster, content)
            feed(cluster, {"id:v:other::1": {"number": 7}})
            cluster.must("remove", identity(499))
            del content[identity(499)]
            with binary(cluster.address) as calls:
                def read(**options):
                    return Reader(self).read_all(calls, OpenVisit(**options), chunk=37)

                self.assertEqual(read(type="item"), content)
                self.assertEqual(set(read()), {*content, "id:v:other::1"})
                self.assertEqual(read(type="item", slices=3, snapshot=True), content)
                self.assertEqual(read(selection="item.number < 3", fields=["number"]), {identity(i): {"number": i} for i in range(3)})
                self.assertEqual(read(type="other", ids_only=True), {"id:v:other::1": {}})
                halves = [read(type="item", slice_index=i, slice_count=2) for i in range(2)]
                self.assertEqual({**halves[0], **halves[1]}, content)
                self.assertEqual(len(halves[0]) + len(halves[1]), len(content))
                last = max(must(calls.readDocument(ReadDocument(id=name))).timestamp_us for name in content)
                self.assertEqual(read(type="item", from_us=last + 1), {})

                removed = []
                visit = must(calls.openVisit(OpenVisit(type="item", include_removed=True))).visit
                is_over = False
                while not is_over:
                    reply = must(calls.nextVisit(NextVisit(visit=visit)))
                    removed += [document.id for document in reply.documents if document.removed]
                    is_over = reply.is_over
                self.assertEqual(removed, [identity(499)])
                self.assertEqual((reply.progress.fraction_done, reply.progress.documents_matched), (1.0, 500))

                for request, code in ((OpenVisit(selection="((("), "INVALID_SELECTION"), (OpenVisit(type="none"), "UNKNOWN_TYPE"),
                                      (OpenVisit(resume="x"), "INVALID_ARGUMENT"), (OpenVisit(slices=-1), "INVALID_ARGUMENT"),
                                      (OpenVisit(type="item", fields=["none"]), "INVALID_FIELD")):
                    self.assertEqual(name_of(calls.openVisit(request).status), code)

    def test_chunks_are_limited(self):
        with harness.Cluster(storage=1, redundancy=1) as cluster:
            cluster.deploy(SCHEMA)
            feed(cluster, documents(2000))
            with Connection(cluster.address) as calls:
                visit = must(calls.openVisit(OpenVisit(type="item"))).visit
                sizes, is_over = [], False
                while not is_over:
                    few = must(calls.nextVisit(NextVisit(visit=visit, documents_max=5)))
                    sizes.append(len(few.documents))
                    is_over = few.is_over
                # A chunk has what has arrived, so some may be smaller.
                self.assertLessEqual(max(sizes), 5)
                self.assertEqual(sum(sizes), 2000)

                visit = must(calls.openVisit(OpenVisit(type="item"))).visit
                small = must(calls.nextVisit(NextVisit(visit=visit, bytes_max=1000)))
                self.assertLess(len(small.documents), 5)
                cluster.must("config", "set", "gateway.chunk_bytes_max=5kB")
                harness.wait_until(lambda: 1 < len(must(calls.nextVisit(NextVisit(visit=visit, bytes_max=1 << 30))).documents) < 20,
                                   "the setting limits chunks")

    def test_visits_are_bounded_and_end_when_idle(self):
        with harness.Cluster(storage=1, redundancy=1, distributors=2) as cluster:
            cluster.deploy(SCHEMA)
            content = documents(300)
            feed(cluster, content)
            first, second = cluster.address.split(",")
            reader = Reader(self)
            with Connection(first) as calls:
                opened = [must(calls.openVisit(OpenVisit(type="item"))).visit for _ in range(2)]
                cluster.must("config", "set", "gateway.visits_max=2")

                def refused():
                    reply = calls.openVisit(OpenVisit(type="item"))
                    if name_of(reply.status) == "OK":
                        must(calls.closeVisit(CloseVisit(visit=reply.visit)))
                        return None
                    return reply.status
                status = harness.wait_until(refused, "the setting arrives")
                self.assertEqual((name_of(status), status.setting, status.limit, status.node),
                                 ("BUSY", "gateway.visits_max", "2", "distributor.0"))
                must(calls.closeVisit(CloseVisit(visit=opened[1])))
                closed = calls.nextVisit(NextVisit(visit=opened[1]))
                self.assertEqual(name_of(closed.status), "NOT_FOUND")
                self.assertIn("closed", closed.status.message)
                reader.take(calls.nextVisit(NextVisit(visit=opened[0], documents_max=100)))
                with Connection(second) as other:
                    elsewhere = other.nextVisit(NextVisit(visit=opened[0])).status
                    self.assertEqual(name_of(elsewhere), "NOT_FOUND")
                    self.assertIn("opened at distributor.0", elsewhere.message)
            # The client has gone away. Its visit ends, and makes room for another one.
            cluster.must("config", "set", "gateway.idle_timeout=100ms", "gateway.visits_max=1")
            with Connection(first) as calls:
                def opens():
                    reply = calls.openVisit(OpenVisit(type="item", resume=reader.cursor))
                    return name_of(reply.status) == "OK" and reply.visit
                harness.wait_until(opens, "the idle visit has ended")
                gone = calls.nextVisit(NextVisit(visit=opened[0])).status
                self.assertEqual(name_of(gone), "NOT_FOUND")
                self.assertIn("gateway.idle_timeout", gone.message)
            cluster.must("config", "set", "gateway.idle_timeout=60s")
            # The cursor holds at the other distributor.
            with Connection(second) as calls:
                self.assertEqual(reader.read_all(calls, OpenVisit(type="item", resume=reader.cursor), chunk=50), content)

    def test_nodes_are_killed_during_visits(self):
        with harness.Cluster(storage=3, redundancy=2, distributors=2) as cluster:
            cluster.must("config", "set", "gateway.buffer_bytes=64KiB")
            cluster.deploy(SCHEMA)
            content = documents(5000)
            feed(cluster, content)
            first, second = cluster.address.split(",")
            reader = Reader(self)
            with Connection(first) as calls:
                visit = must(calls.openVisit(OpenVisit(type="item", slices=2))).visit
                for _ in range(5):
                    chunk = reader.take(calls.nextVisit(NextVisit(visit=visit, documents_max=100)))
                # The storage nodes wait for the client: most buckets are still to be read.
                self.assertLess(chunk.progress.fraction_done, 0.8)
                cluster.kill("storage.1")
                while len(reader.given) < 3000:
                    self.assertFalse(reader.take(calls.nextVisit(NextVisit(visit=visit, documents_max=100))).is_over)
                cluster.kill("distributor.0")
                with self.assertRaises(Exception):
                    calls.nextVisit(NextVisit(visit=visit))
            with Connection(second) as calls:
                self.assertEqual(reader.read_all(calls, OpenVisit(type="item", slices=2, resume=reader.cursor)), content)

    def test_a_visit_that_is_over_says_so(self):
        with harness.Cluster(storage=1, redundancy=1) as cluster:
            cluster.deploy(SCHEMA)
            with Connection(cluster.address) as calls:
                visit = must(calls.openVisit(OpenVisit(type="item"))).visit
                self.assertTrue(must(calls.nextVisit(NextVisit(visit=visit))).is_over)
                again = calls.nextVisit(NextVisit(visit=visit)).status
                self.assertEqual(name_of(again), "NOT_FOUND")
                self.assertIn("it is over", again.message)
                refused = calls.nextVisit(NextVisit(visit="distributor.0-0"))
                self.assertIn("there is no visit", refused.status.message)

if __name__ == "__main__":
    harness.main()
