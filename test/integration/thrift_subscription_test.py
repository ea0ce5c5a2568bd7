"""Subscriptions through api/client.thrift: a copy stays in step while nodes die and the subscriber moves."""

import json
import threading
import time
import unittest

import harness
from thrift_client import Connection, must, name_of

from fjord_client.ttypes import CloseSubscription, NextChanges, OpenSubscription, SubscriptionState

SCHEMA = """document item {
  field number type int { header }
  field text type string { }
}"""


def identity(i):
    return f"id:v:item::{i}"


def feed(cluster, content):
    lines = "".join(json.dumps({"put": name, "fields": fields}) + "\n" for name, fields in content.items())
    cluster.must("feed", "-", stdin=lines)


class Copy:
    """A subscriber's copy of the documents."""

    def __init__(self, test):
        self.test = test
        self.documents = {}
        self.newest = {}
        self.cursor = ""

    def take(self, reply):
        must(reply)
        for change in reply.changes:
            self.test.assertGreaterEqual(change.timestamp_us, self.newest.get(change.id, 0))
            self.newest[change.id] = change.timestamp_us
            self.documents.pop(change.id, None)
            if not change.removed:
                self.documents[change.id] = json.loads(change.json)["fields"]
        self.cursor = reply.cursor
        return reply.state

    def follow_until(self, calls, subscription, documents):
        """Takes chunks until the copy has these documents."""
        deadline = time.monotonic() + 60
        while self.documents != documents:
            self.test.assertLess(time.monotonic(), deadline, "the copy is not in step")
            self.take(calls.nextChanges(NextChanges(subscription=subscription, changes_max=70, timeout_ms=2000)))


class ThriftSubscriptionTest(unittest.TestCase):
    def test_a_copy_stays_in_step_and_moves_to_another_distributor(self):
        with harness.Cluster(storage=3, redundancy=2, distributors=2) as cluster:
            cluster.deploy(SCHEMA)
            content = {identity(i): {"number": i, "text": "x" * 100} for i in range(500)}
            feed(cluster, content)
            first, second = cluster.address.split(",")
            request = OpenSubscription(type="item", selection="item.number < 450", poll_interval_ms=50)

            def selected():
                return {name: fields for name, fields in content.items() if fields["number"] < 450}

            copy = Copy(self)
            with Connection(first) as calls:
                subscription = must(calls.openSubscription(request)).subscription
                states = []
                while not states or states[-1] != SubscriptionState.CAUGHT_UP:
                    states.append(copy.take(calls.nextChanges(NextChanges(subscription=subscription, changes_max=100))))
                self.assertEqual(copy.documents, selected())
                # Nothing changes: the call lasts as long as it was told, and there is nothing to be said.
                began = time.monotonic()
                quiet = must(calls.nextChanges(NextChanges(subscription=subscription, timeout_ms=600)))
                self.assertGreater(time.monotonic() - began, 0.5)
                self.assertEqual((quiet.changes, quiet.state, quiet.cursor), ([], SubscriptionState.FOLLOWING, copy.cursor))

                content[identity(0)] = {"number": 1000}  # Not selected any more.
                content[identity(460)] = {"number": 5}
                feed(cluster, {name: content[name] for name in (identity(0), identity(460))})
                cluster.must("remove", identity(7))
                del content[identity(7)]
                copy.follow_until(calls, subscription, selected())

                cluster.kill("storage.1")
                content[identity(8)] = {"number": 9}
                feed(cluster, {identity(8): content[identity(8)]})
                copy.follow_until(calls, subscription, selected())
                with Connection(second) as other:
                    elsewhere = other.nextChanges(NextChanges(subscription=subscription)).status
                self.assertIn("opened at distributor.0", elsewhere.message)

            # The subscriber goes away, and goes on at the other distributor.
            content[identity(9)] = {"number": 10}
            feed(cluster, {identity(9): content[identity(9)]})
            with Connection(second) as calls:
                request.resume = copy.cursor
                subscription = must(calls.openSubscription(request)).subscription
                before = len(copy.newest)
                changes = must(calls.nextChanges(NextChanges(subscription=subscription)))
                self.assertLess(len(changes.changes), 50)  # It did not begin again.
                copy.take(changes)
                copy.follow_until(calls, subscription, selected())
                self.assertGreaterEqual(len(copy.newest), before)
                must(calls.closeSubscription(CloseSubscription(subscription=subscription)))
                gone = calls.nextChanges(NextChanges(subscription=subscription)).status
                self.assertEqual(name_of(gone), "NOT_FOUND")

                bad = calls.openSubscription(OpenSubscription(type="item", resume="nonsense")).status
                self.assertEqual(name_of(bad), "INVALID_ARGUMENT")
                request.resume = ""
                request.from_now = True
                subscription = must(calls.openSubscription(request)).subscription
                later = must(calls.nextChanges(NextChanges(subscription=subscription)))
                self.assertEqual((later.changes, later.state), ([], SubscriptionState.CAUGHT_UP))

    def test_a_subscriber_that_was_away_for_too_long_begins_again(self):
        with harness.Cluster(storage=2) as cluster:
            cluster.deploy(SCHEMA)
            content = {identity(i): {"number": i} for i in range(50)}
            feed(cluster, content)
            copy = Copy(self)
            with Connection(cluster.address) as calls:
                subscription = must(calls.openSubscription(OpenSubscription(type="item"))).subscription
                copy.follow_until(calls, subscription, content)
                must(calls.closeSubscription(CloseSubscription(subscription=subscription)))
                cluster.must("config", "set", "documents.remove_retention=1ms")
                cluster.must("remove", "--selection", "item.number < 40", "--type", "item", "--yes")
                request = OpenSubscription(type="item", resume=copy.cursor)

                def resync():
                    name = must(calls.openSubscription(request)).subscription
                    reply = must(calls.nextChanges(NextChanges(subscription=name)))
                    if reply.state != SubscriptionState.RESYNC:
                        must(calls.closeSubscription(CloseSubscription(subscription=name)))
                        return None
                    return name, reply
                name, reply = harness.wait_until(resync, "the removes are forgotten", 60)
                self.assertGreater(reply.horizon_us, 0)
                self.assertEqual(name_of(calls.nextChanges(NextChanges(subscription=name)).status), "NOT_FOUND")

    def test_subscriptions_are_bounded_and_calls_end_with_the_distributor(self):
        with harness.Cluster(storage=1, redundancy=1) as cluster:
            cluster.deploy(SCHEMA)
            with Connection(cluster.address) as calls:
                cluster.must("config", "set", "gateway.subscriptions_max=3")

                def refused():
                    reply = calls.openSubscription(OpenSubscription(type="item", from_now=True))
                    return name_of(reply.status) != "OK" and reply.status
                status = harness.wait_until(refused, "the setting holds")
                self.assertEqual((name_of(status), status.setting, status.limit), ("BUSY", "gateway.subscriptions_max", "3"))
                cluster.must("config", "set", "gateway.subscriptions_max=100")
                opened = []

                def opens():
                    reply = calls.openSubscription(OpenSubscription(type="item", from_now=True))
                    opened.append(reply.subscription)
                    return name_of(reply.status) == "OK"
                harness.wait_until(opens, "there is room again")
                caught_up = must(calls.nextChanges(NextChanges(subscription=opened[-1])))
                self.assertEqual(caught_up.state, SubscriptionState.CAUGHT_UP)
                answers = []

                def wait():
                    # A call of `second` may be there first; it takes a millisecond.
                    while not answers or name_of(answers[-1]) == "BUSY":
                        answers[:] = [calls.nextChanges(NextChanges(subscription=opened[-1], timeout_ms=60000)).status]
                waiting = threading.Thread(target=wait)
                waiting.start()
                with Connection(cluster.address) as second:
                    harness.wait_until(lambda: name_of(second.nextChanges(
                        NextChanges(subscription=opened[-1], timeout_ms=1)).status) == "BUSY", "the first call waits")
                cluster.local("stop")
                waiting.join(10)
                self.assertEqual([name_of(status) for status in answers], ["NOT_READY"])


if __name__ == "__main__":
    harness.main()
