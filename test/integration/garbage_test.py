"""Documents that the schema does not keep vanish, but no others: documents that change meanwhile stay, too."""

import json
import unittest

import harness

PLAIN = "document item { field number type int { header } field text type string { } }"
KEEPING = """document item {
  keep_while: "item.number >= 100 and item.number < now()"
  field number type int { header }
  field text type string { }
}"""
BROKEN = "document item { keep_while: \"item.nothing > 1\" field number type int { header } field text type string { } }"
DOCUMENTS = 200


class GarbageTest(unittest.TestCase):
    def feed(self, cluster, documents):
        lines = "".join(json.dumps({"put": name, "fields": fields}) + "\n" for name, fields in documents.items())
        cluster.must("feed", "-", stdin=lines)

    def test_only_what_does_not_match_vanishes(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(PLAIN)
            documents = {f"id:gc:item::{i}": {"number": i, "text": "x" * 100} for i in range(DOCUMENTS)}
            documents["id:gc:item::none"] = {"text": "has no number"}
            self.feed(cluster, documents)
            cluster.must("config", "set", "maintenance.gc_interval=500ms", "maintenance.paused=true")
            harness.wait_until(lambda: not cluster.must("config", "list", "-o", "json").json()["waiting"], "all have it")
            self.assertEqual(cluster.documents(), documents)

            refused = cluster.fjord("schema", "deploy", cluster.file("broken.sd", BROKEN))
            self.assertNotEqual(refused.code, harness.OK)
            self.assertIn("keep_while", refused.err)

            # The change counts once maintenance goes on; by then some documents match again.
            cluster.deploy(KEEPING)
            changed = {f"id:gc:item::{i}": {"number": 1000 + i, "text": "changed"} for i in range(0, 50)}
            self.feed(cluster, changed)
            documents.update(changed)
            self.assertEqual(cluster.documents(), documents, "nothing is collected while maintenance is paused")
            cluster.must("config", "unset", "maintenance.paused")
            # Some change while the collection runs.
            late = {f"id:gc:item::{i}": {"number": 2000 + i, "text": "late"} for i in range(50, 70)}
            self.feed(cluster, late)
            documents.update(late)
            expected = {name: fields for name, fields in documents.items() if fields.get("number", 100) >= 100}
            harness.wait_until(lambda: len(cluster.documents()) <= len(expected), "the garbage is collected", 60)
            self.assertEqual(cluster.documents(), expected)
            cluster.wait_healthy()
            self.assertEqual(cluster.must("config", "explain", "maintenance.gc_interval").out.splitlines()[0],
                             "maintenance.gc_interval = 500ms (live configuration)")


if __name__ == "__main__":
    harness.main()
