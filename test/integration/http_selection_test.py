"""Visits over HTTP chunk by chunk, and update, delete and copy of the documents that a selection matches."""

import random
import threading
import time
import unittest
import urllib.parse

from http_documents import HttpCluster, ROOT


def quoted(text):
    return urllib.parse.quote_plus(text)


class ConfirmationTest(HttpCluster):
    confirm_removals = True

    def test_a_removal_says_how_much_it_may_remove(self):
        everything = "/document/v1/?cluster=fjord&selection=true"
        self.assertEqual(self.must(200, "DELETE", everything)["documentCount"], 0)  # Nothing matches.
        for i in range(30):
            self.must(200, "POST", f"{ROOT}{i}", {"fields": {"sold": i}})
        refused = self.must(428, "DELETE", everything)
        self.assertEqual(refused["documentCount"], 30)
        self.assertEqual(refused["message"], "30 documents match; nothing was removed. confirm=30 in the query removes them")
        few = f"{ROOT}?cluster=fjord&selection={quoted('item.sold < 4')}"
        self.assertIn("4 documents match, and confirm is 3;", self.must(428, "DELETE", few + "&confirm=3")["message"])
        for value in ("-1", "some", "", "1e3"):
            self.must(400, "DELETE", f"{few}&confirm={value}")
        self.assertEqual(len(self.documents(ROOT)), 30)
        self.assertEqual(self.must(200, "DELETE", few + "&confirm=4")["documentCount"], 4)
        sliced = [self.must(200, "DELETE", f"{ROOT}?cluster=fjord&selection={quoted('item.sold < 10')}&slices=2&sliceId={i}&confirm=6")
                  for i in range(2)]
        self.assertEqual(sum(one["documentCount"] for one in sliced), 6)
        # A removal in chunks is confirmed once.
        answer = self.must(200, "DELETE", everything + "&confirm=20&timeChunk=1ms")
        removed = answer["documentCount"]
        while "continuation" in answer:
            answer = self.must(200, "DELETE", f"{everything}&timeChunk=1ms&continuation={answer['continuation']}")
            removed += answer["documentCount"]
        self.assertEqual(removed, 20)
        self.must(200, "POST", f"{ROOT}again", {"fields": {"sold": 1}})
        self.assertEqual(self.must(200, "DELETE", everything + "&confirm=all")["documentCount"], 1)


class ExpensiveSelectionTest(HttpCluster):
    """Selections that are made to cost as much as possible hold up neither nodes nor other clients."""

    # For the write of another client; each of these attacks took from eight seconds to hours.
    seconds_max = 3

    def setUp(self):
        super().setUp()
        self.slowest = 0
        self.is_over = threading.Event()
        writer = threading.Thread(target=self.write_small, args=[self.connect()])
        self.addCleanup(writer.join)
        self.addCleanup(self.is_over.set)
        writer.start()

    def write_small(self, http):
        number = 0
        while not self.is_over.is_set():
            begun = time.monotonic()
            status, answer = http.send("POST", f"{ROOT}small-{number % 100}", {"fields": {"sold": 1}})
            self.assertEqual(status, 200, answer)
            self.slowest, number = max(self.slowest, time.monotonic() - begun), number + 1

    def put_texts(self, name, text, count=20):
        for i in range(count):
            self.must(200, "POST", f"/document/v1/{name}/item/docid/{i}", {"fields": {"title": text(i)}})

    def check_untroubled(self):
        self.assertEqual(self.cluster.status()["health"], "healthy")
        self.assertLess(self.slowest, self.seconds_max)

    def refused(self, method, target, body=None):
        begun = time.monotonic()
        status, answer = self.http.send(method, target, body)
        while status == 200 and "continuation" in answer:  # It has ended before the first of these documents.
            status, answer = self.http.send(method, f"{target}&continuation={answer['continuation']}", body)
        self.assertEqual((status, answer.get("code")), (400, "INVALID_SELECTION"), answer)
        self.assertLess(time.monotonic() - begun, 10)
        return answer["message"]

    def test_patterns_that_are_too_large_are_refused(self):
        self.must(200, "POST", ROOT + "1", {"fields": {"title": "x"}})
        for pattern, said in (("item.title =~ '(a?){900}a{900}b'", "too large"), ("item.title =~ 'x{501}'", "too large"),
                              ("item.title = '*" + "a" * 5000 + "?b'", "expected at most 1024")):
            self.assertIn(said, self.refused("GET", f"{ROOT}?selection={quoted(pattern)}"))
            self.assertIn(said, self.refused("PUT", f"{ROOT}1?condition={quoted(pattern)}", {"fields": {"sold": {"assign": 2}}}))
            self.assertIn(said, self.refused("DELETE", f"{ROOT}?cluster=fjord&selection={quoted(pattern)}"))
            schema = 'document kept { field title type string { header } keep_while: "' + pattern.replace("item.", "kept.") + '" }'
            deployed = self.cluster.fjord("schema", "deploy", self.cluster.file("kept.sd", schema))
            self.assertNotEqual(deployed.code, 0)
            self.assertIn("keep_while", deployed.err)
        self.check_untroubled()

    def test_expressions_that_need_too_many_states(self):
        letters = random.Random(1)
        self.put_texts("states", lambda i: "".join(letters.choices("ab", k=900_000)))
        path = "/document/v1/states/item/docid/"
        for pattern in ("a[ab]{200}c", "a[ab]{20}c", "(a|b)*a[ab]{14}c"):
            selection = quoted(f"item.title =~ '{pattern}'")
            self.assertIn("steps", self.refused("GET", f"{path}?selection={selection}&timeout=20s"))
            self.assertIn("steps", self.refused("PUT", f"{path}1?condition={selection}", {"fields": {"sold": {"assign": 2}}}))
        self.check_untroubled()

    def test_globs_take_time_in_proportion_to_the_text(self):
        self.put_texts("globs", lambda i: "a" * 800_000 + str(i))
        path = "/document/v1/globs/item/docid/"
        for pattern, found in (("*" + "a" * 1000 + "b*", 0), ("*a" * 400 + "*", 20), ("*" + "a" * 40 + "?b*", 0), ("*aaa7", 1)):
            selection = quoted(f"item.title = '{pattern}'")
            documents = self.documents(f"{path}?fieldSet=[id]&timeout=60s&selection={selection}")
            self.assertEqual(len(documents), found, pattern)
            status, _ = self.http.send("PUT", f"{path}3?condition={selection}", {"fields": {"sold": {"assign": 2}}})
            self.assertEqual(status, 200 if found == 20 else 412)
        # Sixteen times as much work for a byte, which is too much for texts of this size.
        selection = quoted("item.title = '*" + "a" * 1000 + "?b*'")
        self.assertIn("steps", self.refused("GET", f"{path}?fieldSet=[id]&timeout=60s&selection={selection}"))
        self.check_untroubled()

    def test_many_large_documents_without_a_match(self):
        """Each takes nearly as many steps as one may, and a node looks at its other work in between."""
        self.put_texts("many", lambda i: "a" * 1_000_000, 60)
        selection = quoted("item.title =~ '(a|aa)*(a|a?)*$b'")
        self.assertEqual(self.documents(f"/document/v1/many/item/docid/?timeout=60s&selection={selection}"), [])
        self.check_untroubled()


class SelectionTest(HttpCluster):
    storage_nodes = 2

    def setUp(self):
        super().setUp()
        self.must(200, "DELETE", "/document/v1/?cluster=fjord&selection=true")

    def feed(self, count, space="shop", fields=lambda i: {"sold": i}):
        for i in range(count):
            self.must(200, "POST", f"/document/v1/{space}/item/docid/{i}", {"fields": fields(i)})

    def test_update_by_selection(self):
        self.feed(100)
        self.feed(5, "other")
        where = ROOT + "?cluster=fjord&selection=" + quoted("item.sold >= 90")
        answer = self.must(200, "PUT", where, {"fields": {"sold": {"increment": 1000}}})
        self.assertEqual(answer, {"pathId": ROOT, "documentCount": 10})
        sold = sorted(one["fields"]["sold"] for one in self.documents(ROOT))
        self.assertEqual(sold, [*range(90), *range(1090, 1100)])
        self.assertEqual(len(self.documents("/document/v1/other/item/docid/")), 5)
        self.assertEqual(self.must(200, "PUT", where.replace("90", "9999"), {"fields": {}})["documentCount"], 0)

    def test_delete_by_selection(self):
        self.feed(60)
        self.feed(5, "other")
        for i in range(4):
            self.must(200, "POST", f"/document/v1/shop/item/number/7/{i}", {"fields": {"sold": 1}})
            self.must(200, "POST", f"/document/v1/shop/item/group/g/{i}", {"fields": {"sold": 1}})
        numbers = "/document/v1/shop/item/number/7/"
        self.assertEqual(self.must(200, "DELETE", numbers + "?cluster=fjord&selection=true")["documentCount"], 4)
        groups = "/document/v1/shop/item/group/g"
        self.assertEqual(self.must(200, "DELETE", groups + "?cluster=fjord&selection=item")["documentCount"], 4)
        # As pyvespa's delete_all_docs sends it.
        counts = [self.must(200, "DELETE", f"{ROOT}?cluster=fjord&selection=true&slices=3&sliceId={i}") for i in range(3)]
        self.assertEqual(sum(one["documentCount"] for one in counts), 60)
        self.assertEqual(self.documents(ROOT), [])
        self.assertEqual(len(self.documents("/document/v1/other/item/docid/")), 5)
        self.assertEqual(self.must(200, "DELETE", "/document/v1/?cluster=fjord&selection=true")["documentCount"], 5)

    def test_a_copy_writes_each_document_again(self):
        self.feed(20)
        newest = self.newest_version(f"id:shop:item::{i}" for i in range(20))
        where = f"{ROOT}?cluster=fjord&destinationCluster=fjord&selection=" + quoted("item.sold < 5")
        self.assertEqual(self.must(200, "POST", where), {"pathId": ROOT, "documentCount": 5})
        again = {one["id"] for one in self.documents(f"{ROOT}?fromTimestamp={newest + 1}")}
        self.assertEqual(again, {f"id:shop:item::{i}" for i in range(5)})
        self.assertEqual(sorted(one["fields"]["sold"] for one in self.documents(ROOT)), [*range(20)])
        everywhere = "/document/v1/?cluster=fjord&destinationCluster=fjord&selection=true"
        self.assertEqual(self.must(200, "POST", everywhere)["documentCount"], 20)

    def test_a_change_in_chunks_is_made_once(self):
        self.feed(300)
        where = ROOT + "?cluster=fjord&timeChunk=1ms&selection=" + quoted("item.sold >= 0")
        total, chunks, token = 0, 0, ""
        while token is not None:
            answer = self.must(200, "PUT", where + (f"&continuation={token}" if token else ""),
                               {"fields": {"sold": {"increment": 1000}}})
            total += answer["documentCount"]
            chunks += 1
            token = answer.get("continuation")
            self.assertRegex(token or "", "^[A-Za-z0-9_=-]*$")
        self.assertEqual(total, 300)
        self.assertGreater(chunks, 5)
        self.assertEqual(sorted(one["fields"]["sold"] for one in self.documents(ROOT)), [*range(1000, 1300)])

    def test_documents_that_change_meanwhile_stay(self):
        """A write carries its selection: of a document that was written again, only what still matches is removed."""
        self.feed(200, fields=lambda i: {"sold": 1})
        stopped = threading.Event()

        def rewrite():
            connection = self.connect()
            for i in range(0, 200, 2):
                connection.send("POST", f"{ROOT}{i}", {"fields": {"sold": 2}})
            stopped.set()
            connection.connection.close()

        writer = threading.Thread(target=rewrite)
        writer.start()
        while not stopped.is_set():
            self.must(200, "DELETE", ROOT + "?cluster=fjord&selection=" + quoted("item.sold == 1"))
        writer.join()
        self.must(200, "DELETE", ROOT + "?cluster=fjord&selection=" + quoted("item.sold == 1"))
        self.assertEqual({one["id"] for one in self.documents(ROOT)}, {f"id:shop:item::{i}" for i in range(0, 200, 2)})

    def test_bad_requests_change_nothing(self):
        self.feed(3)
        docid = ROOT + "?cluster=fjord&selection=true"
        update = {"fields": {"sold": {"assign": 7}}}
        for method, target, body, message in (
                ("PUT", ROOT + "?selection=true", update, "Must specify 'cluster'"),
                ("DELETE", ROOT + "?cluster=fjord", None, "Must specify 'selection'"),
                ("POST", docid, None, "Must specify 'destinationCluster'"),
                ("POST", docid + "&destinationCluster=other", None, "no content cluster 'other', only 'fjord'"),
                ("DELETE", docid.replace("fjord", "other"), None, "no content cluster 'other', only 'fjord'"),
                *[("DELETE", f"{docid}&{name}", None, f"May not specify '{name.split('=')[0]}' at '{ROOT}'") for name in
                  ("wantedDocumentCount=5", "fieldSet=[id]", "concurrency=1", "route=r", "dryRun=true")],
                ("DELETE", docid + "&slices=2", None, "together"), ("DELETE", docid + "&slices=2&sliceId=2", None, "sliceId"),
                ("DELETE", docid + "&timeChunk=soon", None, "timeChunk"), ("DELETE", docid + "&timeout=", None, "non-empty"),
                ("DELETE", docid + "&continuation=AAAA", None, "resume"), ("DELETE", docid + "&continuation=.", None, "token"),
                ("DELETE", docid + "&bucketSpace=default", None, "bucketSpace"), ("DELETE", docid + "&tracelevel=x", None, "tracelevel"),
                ("DELETE", ROOT + "?cluster=fjord&selection=((", None, "selection"),
                ("DELETE", ROOT + "?cluster=fjord&selection=absent", None, "absent"),
                ("DELETE", ROOT + "?cluster=fjord&selection=item.absent", None, "absent"),
                ("DELETE", ROOT + "?cluster=fjord&selection=" + quoted("true) or (true"), None, ""),
                ("DELETE", "/document/v1/shop/absent/docid/?cluster=fjord&selection=true", None, "absent"),
                ("PUT", docid, "", "JSON"), ("PUT", docid, "{}", "fields"),
                ("PUT", docid, {"fields": {"absent": {"assign": 1}}}, '"absent", byte 0: document type item has no field "absent"'),
                ("PUT", docid, {"fields": {"sold": {"assign": "x"}}}, "sold"),
                ("PUT", docid, {"fields": {"sold": {"assign": 1}, "title": {"increment": 1}}}, "title")):
            self.assertIn(message, self.must(400, method, target, body)["message"], f"{method} {target} {body}")
        refused = self.must(400, "PUT", docid, {"fields": {"absent": {"assign": 1}}})
        self.assertNotIn("id", refused)
        self.assertNotIn('document "', refused["message"], "the error names a document, but a selection has none")
        self.must(405, "PUT", "/document/v1/?cluster=fjord&selection=true", update)
        self.assertEqual(self.http.headers["Allow"], "GET,HEAD,POST,DELETE")
        self.assertEqual(sorted(one["fields"]["sold"] for one in self.documents(ROOT)), [0, 1, 2])
        changed = self.must(200, "PUT", docid + "&timeChunk=1ms", update)
        if token := changed.get("continuation"):
            self.must(400, "PUT", docid + "&continuation=" + token, {"fields": {"sold": {"assign": 8}}})

    def test_a_space_without_documents(self):
        self.feed(3)
        where = "/document/v1/?cluster=fjord&selection=true&bucketSpace="
        self.assertEqual(self.must(200, "DELETE", where + "global"), {"pathId": "/document/v1/", "documentCount": 0})
        self.assertEqual(self.must(200, "DELETE", where + "default")["documentCount"], 3)

    def test_visits_in_chunks_of_any_size_end(self):
        """A client that follows the continuations has all documents after about as many requests as it needs."""
        self.feed(40)
        for count, most in ((None, 150), (1, 150), (2, 100), (3, 90), (1000, 3)):
            wanted = "" if count is None else f"wantedDocumentCount={count}"
            found, requests, token = [], 0, ""
            while token is not None:
                answer = self.must(200, "GET", f"{ROOT}?{wanted}&timeout=10s" + (f"&continuation={token}" if token else ""))
                found += [one["id"] for one in answer["documents"]]
                token = answer.get("continuation")
                requests += 1
                self.assertLess(requests, most, wanted)
            self.assertEqual(sorted(found), sorted(f"id:shop:item::{i}" for i in range(40)), wanted)

    def test_tokens_stay_short(self):
        """One location is one bucket: chunks that name its documents one by one would have ever longer tokens."""
        path = "/document/v1/visits/item/number/3/"
        for i in range(1500):
            self.must(200, "POST", f"{path}{i}", {"fields": {"sold": i}})
        ids, longest, token = [], 0, ""
        while token is not None:
            answer = self.must(200, "GET", f"{path}?wantedDocumentCount=100" + (f"&continuation={token}" if token else ""))
            self.assertLess(answer["documentCount"], 200)
            ids += [one["id"] for one in answer["documents"]]
            token = answer.get("continuation")
            longest = max(longest, len(token or ""))
        self.assertEqual(sorted(ids), sorted(f"id:visits:item:n=3:{i}" for i in range(1500)))
        self.assertLess(longest, 300)

    def test_nodes_that_are_killed_between_chunks(self):
        """A token is good for any gateway: nothing is left out, whatever node is killed."""
        path = "/document/v1/killed/item/docid/"
        self.feed(600, "killed")
        ids, token, chunks = [], "", 0
        while token is not None:
            answer = self.must(200, "GET", f"{path}?wantedDocumentCount=100" + (f"&continuation={token}" if token else ""))
            ids += [one["id"] for one in answer["documents"]]
            token = answer.get("continuation")
            chunks += 1
            if chunks == 1:
                self.cluster.kill("storage.1")
            if chunks == 2:
                self.cluster.kill("gateway.0")
                self.cluster.restart("gateway.0")
                self.http = self.connect()
            if chunks == 3:
                self.cluster.restart("storage.1")
        self.assertEqual(sorted(set(ids)), sorted(f"id:killed:item::{i}" for i in range(600)))
        self.assertGreater(chunks, 3)
        self.cluster.wait_healthy()

    def test_removed_documents_and_times(self):
        path = "/document/v1/times/item/docid/"
        self.feed(20, "times")
        before = self.newest_version(f"id:times:item::{i}" for i in range(20))
        self.must(200, "POST", path + "new", {"fields": {"sold": 100}})
        for i in range(5):
            self.must(200, "DELETE", f"{path}{i}")
        self.assertEqual(len(self.documents(path)), 16)
        found = self.documents(path + "?includeRemoves=true")
        self.assertEqual({one["remove"] for one in found if "remove" in one}, {f"id:times:item::{i}" for i in range(5)})
        self.assertEqual(len(found), 21)
        later = self.documents(f"{path}?fromTimestamp={before + 1}")
        self.assertEqual([one["id"] for one in later], ["id:times:item::new"])
        self.assertEqual(len(self.documents(f"{path}?toTimestamp={before}")), 15)
        self.assertEqual(self.documents(f"{path}?fromTimestamp=1&toTimestamp=2"), [])

    def test_field_sets(self):
        self.must(200, "POST", ROOT + "1", {"fields": {"sold": 1, "title": "x", "tags": ["a"]}})
        for field_set, fields in (("[id]", {}), ("[none]", {}), ("item:sold", {"sold": 1}), ("sold", {"sold": 1}),
                                  ("item:title,tags", {"title": "x", "tags": ["a"]}), ("title,sold", {"sold": 1, "title": "x"}),
                                  ("[all]", {"sold": 1, "title": "x", "tags": ["a"]}),
                                  ("[document]", {"sold": 1, "title": "x", "tags": ["a"]}),
                                  ("item:[document]", {"sold": 1, "title": "x", "tags": ["a"]})):
            found = self.documents(f"{ROOT}?fieldSet={urllib.parse.quote(field_set)}")
            self.assertEqual(found, [{"id": "id:shop:item::1", "fields": fields}], field_set)
            got = self.must(200, "GET", f"{ROOT}1?fieldSet={urllib.parse.quote(field_set)}")
            self.assertEqual(got["fields"], fields, field_set)


if __name__ == "__main__":
    unittest.main()
