"""Values, updates, selections and conditions over HTTP, each right and wrong: the tables of document/v1."""

import json
import threading
import unittest
import urllib.parse

from http_documents import HttpCluster

SCHEMA = """document thing {
  struct spot { field street type string { } field number type int { } }
  field text type string { }
  field small type byte { }
  field whole type int { }
  field large type long { header }
  field single type float { }
  field precise type double { }
  field flag type bool { }
  field bytes type raw { }
  field words type array<string> { }
  field ints type array<int> { }
  field scores type map<string, int> { }
  field names type map<int, string> { }
  field weights type weightedset<string> { }
  field home type spot { }
  field spots type array<spot> { }
  field places type map<string, spot> { }
}"""
ROOT = "/document/v1/values/thing/docid/"


def quoted(text):
    return urllib.parse.quote_plus(text)


class ValuesTest(HttpCluster):
    schema = SCHEMA

    def stored(self, fields):
        """Returns what is read after a put."""
        self.must(200, "POST", ROOT + "value", {"fields": fields})
        return self.must(200, "GET", ROOT + "value")["fields"]

    def test_values_come_back(self):
        for fields in ({"text": "ø\t\r\n\"\\/♫ \u007f\u0085"}, {"small": -128}, {"whole": 2147483647}, {"large": 9007199254740993},
                       {"large": -9223372036854775808}, {"single": 0.1}, {"precise": 1e300}, {"precise": 0.1}, {"flag": False},
                       {"flag": True}, {"bytes": "AAH/"}, {"words": ["b", "a", "b", ""]}, {"ints": [0, -1]},
                       {"scores": {"a": 1, "": 2}}, {"names": {"1": "one", "-2": ""}}, {"weights": {"x": 3, "y": -3}},
                       {"home": {"street": "a", "number": 1}}, {"spots": [{"street": "a"}, {"number": 2}]},
                       {"places": {"here": {"street": "s", "number": 0}}}, {"whole": 0}):
            self.assertEqual(self.stored(fields), fields)
        answer = json.loads(self.raw(ROOT + "value?fieldSet=thing:whole"), parse_float=str)
        self.assertEqual(answer["fields"], {"whole": 0})
        self.stored({"single": 0.1})
        self.assertIn(b'"single":0.1}', self.raw(ROOT + "value"))
        self.assertEqual(self.stored({"names": [{"key": 1, "value": "one"}, {"value": "two", "key": 2}]}),
                         {"names": {"1": "one", "2": "two"}})

    def raw(self, target):
        self.http.connection.request("GET", target)
        return self.http.connection.getresponse().read()

    def test_fields_without_content_and_null_are_absent(self):
        self.assertEqual(self.stored({"text": "", "words": [], "scores": {}, "weights": {}, "bytes": "", "home": {}, "whole": None,
                                      "spots": None, "large": 1}), {"large": 1})
        self.must(200, "POST", ROOT + "value", {"fields": {"text": "a", "large": 2}})
        self.assertEqual(self.stored({"text": "b"}), {"text": "b"})

    def test_wrong_values(self):
        self.must(200, "POST", ROOT + "value", {"fields": {"large": 1}})
        for fields in ('{"text":1}', '{"text":"\\u0001"}', '{"text":"\\u0000"}', '{"text":"\\u001f"}', '{"text":["a"]}',
                       '{"text":"\\ud800"}', '{"small":128}', '{"small":-129}', '{"small":1.5}', '{"whole":2147483648}', '{"whole":"1"}',
                       '{"whole":1.5}', '{"whole":true}', '{"large":9223372036854775808}', '{"large":1e400}', '{"single":1e39}',
                       '{"single":"x"}', '{"precise":1e999}', '{"precise":NaN}', '{"flag":1}', '{"flag":"true"}', '{"bytes":"*"}',
                       '{"bytes":1}', '{"words":"a"}', '{"words":[null]}', '{"words":[1]}', '{"words":["\\u0002"]}', '{"ints":[1.5]}',
                       '{"scores":{"a":"b"}}', '{"scores":{"a":1,"a":2}}', '{"scores":[{"key":"a"}]}', '{"scores":{"\\u0003":1}}',
                       '{"names":{"x":"y"}}', '{"weights":["a"]}', '{"weights":{"a":1.5}}', '{"home":{"absent":1}}', '{"home":[]}',
                       '{"home":{"number":"x"}}', '{"spots":[{"absent":1}]}', '{"places":{"a":1}}', '{"absent":null}', '{"absent":1}',
                       '{"large":1,"large":2}', '{"large":01}', '{"large":+1}', "{'large':1}", '{"large":1,}'):
            for body in (f'{{"fields":{fields}}}', f'{{"create":true,"fields":{fields}}}'):
                self.assertTrue(self.must(400, "POST", ROOT + "value", body)["message"], body)
        self.assertEqual(self.must(200, "GET", ROOT + "value")["fields"], {"large": 1})
        self.http.connection.request("POST", ROOT + "value", body=b'{"fields":{"text":"\xff"}}')
        answer = self.http.connection.getresponse()
        self.assertEqual((answer.status, list(json.loads(answer.read()))), (400, ["pathId", "id", "message", "code"]))

    def test_bodies(self):
        body = '{"put":"id:other:thing::x","id":7,"fields":{"large":3},"more":[{"a":null}]}'
        self.must(200, "POST", ROOT + "body", body)
        self.must(200, "POST", ROOT + "body", "\ufeff".encode()[:0] + b' \n{"fields" : {"large" : 4 } }\n ')
        self.assertEqual(self.must(200, "GET", ROOT + "body")["fields"], {"large": 4})
        for body in ("", " ", "null", "7", '"x"', "[]", "{}", '{"fields":null}', '{"fields":[]}', '{"fields":{}}{}', '{"fields":{}},',
                     '{"fields":{}', '{"fields":{"large":}}', '{"fields":{}}\0', "\0", '{"fields":{"large":1}}x', "a" * 100000,
                     '{"condition":7,"fields":{"large":9}}', '{"create":"yes","fields":{"large":9}}'):
            answer = self.must(400, "POST", ROOT + "body", body)
            self.assertEqual(answer["id"], "id:values:thing::body")
            self.assertTrue(answer["message"], body)
        self.assertEqual(self.must(200, "GET", ROOT + "body")["fields"], {"large": 4})

    def test_updates(self):
        before = {"text": "a", "large": 10, "precise": 1.5, "ints": [1, 2], "words": ["a"], "weights": {"x": 1, "y": 2},
                  "scores": {"a": 1, "b": 2}, "home": {"street": "s", "number": 1}, "places": {"w": {"number": 5}},
                  "spots": [{"number": 1}, {"number": 2}]}
        for changes, fields in (
                ({"text": {"assign": "b"}}, {"text": "b"}), ({"text": {"assign": None}}, {"text": None}),
                ({"large": {"increment": 5}}, {"large": 15}), ({"large": {"decrement": 5}}, {"large": 5}),
                ({"large": {"multiply": 3}}, {"large": 30}), ({"large": {"divide": 2}}, {"large": 5}),
                ({"precise": {"multiply": 2}}, {"precise": 3.0}), ({"large": {"increment": 1, "multiply": 2}}, {"large": 22}),
                ({"words": {"add": ["b", "a"]}}, {"words": ["a", "b", "a"]}), ({"weights": {"add": {"z": 5, "x": 9}}},
                                                                               {"weights": {"x": 9, "y": 2, "z": 5}}),
                ({"weights": {"remove": {"x": 0}}}, {"weights": {"y": 2}}),
                ({"weights": {"match": {"element": "x", "increment": 4}}}, {"weights": {"x": 5, "y": 2}}),
                ({"ints": {"match": {"element": 1, "assign": 7}}}, {"ints": [1, 7]}),
                ({"scores": {"match": {"element": "a", "increment": 1}}}, {"scores": {"a": 2, "b": 2}}),
                ({"scores{a}": {"assign": 8}}, {"scores": {"a": 8, "b": 2}}), ({"scores{c}": {"assign": 8}},
                                                                              {"scores": {"a": 1, "b": 2, "c": 8}}),
                ({"scores{a}": {"remove": 0}}, {"scores": {"b": 2}}), ({"scores{a}": {"increment": 2}}, {"scores": {"a": 3, "b": 2}}),
                ({"home.street": {"assign": "t"}}, {"home": {"street": "t", "number": 1}}),
                ({"home.number": {"increment": 1}}, {"home": {"street": "s", "number": 2}}),
                ({"ints[1]": {"assign": 9}}, {"ints": [1, 9]}), ({"places{w}.number": {"assign": 6}}, {"places": {"w": {"number": 6}}}),
                ({"spots[0].number": {"increment": 10}}, {"spots": [{"number": 11}, {"number": 2}]}),
                ({"text": {"assign": "b"}, "large": {"increment": 1}}, {"text": "b", "large": 11}), ({}, {})):
            self.must(200, "POST", ROOT + "update", {"fields": before})
            self.must(200, "PUT", ROOT + "update", {"fields": changes})
            wanted = {name: value for name, value in {**before, **fields}.items() if value is not None}
            self.assertEqual(self.must(200, "GET", ROOT + "update")["fields"], wanted, changes)

    def test_wrong_updates(self):
        self.must(200, "POST", ROOT + "update", {"fields": {"text": "a", "large": 10}})
        for changes in ({"text": "b"}, {"text": {}}, {"text": {"absent": 1}}, {"text": {"increment": 1}}, {"large": {"increment": "x"}},
                        {"large": {"assign": "x"}}, {"large": {"divide": 0}}, {"absent": {"assign": 1}}, {"home.absent": {"assign": 1}},
                        {"scores{a": {"assign": 1}}, {"ints[x]": {"assign": 1}}, {"ints": {"match": {"element": "x", "assign": 1}}},
                        {"weights": {"match": {"increment": 1}}}, {"words": {"add": "a"}}, {"words": {"add": [1]}},
                        {"text": {"assign": "\u0001"}}, {"text": {"assign": "new"}, "large": {"assign": 1.5}}):
            self.assertTrue(self.must(400, "PUT", ROOT + "update", {"fields": changes})["message"], changes)
        self.assertEqual(self.must(200, "GET", ROOT + "update")["fields"], {"text": "a", "large": 10})

    def test_selections(self):
        """Each is the condition of a put, and the selection of a visit."""
        self.must(200, "POST", ROOT + "sel", {"fields": {"text": "hello world", "large": 7, "flag": True, "precise": 2.5}})
        self.must(200, "POST", "/document/v1/values/thing/number/5/sel", {"fields": {"large": 1}})
        for selection, is_true in (
                ("thing", True), ("thing.large == 7", True), ("thing.large != 7", False), ("thing.large < 8", True),
                ("thing.large <= 6", False), ("thing.large > 6.5", True), ("thing.large >= 8", False), ('thing.text = "hel*"', True),
                ('thing.text = "h?llo*"', True), ('thing.text =~ "^hello.w"', True), ("thing.text =~ 'x$'", False),
                ("thing.large == 7 and not thing.text == 'x'", True), ("thing.large == 8 or (true and thing.precise == 2.5)", True),
                ("thing.large + 1 == 8", True), ("thing.large * 2 - 4 == 10", True), ("thing.large % 4 == 3", True),
                ("thing.large / 7 == 1", True), ("thing.words == null", True), ("thing.text == null", False), ("false", False),
                ("true", True), ("id.namespace == 'values'", True), ("id.type == 'thing'", True), ("id.specific == 'sel'", True),
                ("id.user == 5", False), ("id.group == 'x'", False), ("id.specific = 's*'", True), (r"thing.text == 'hello\x20world'", True)):
            status, answer = self.http.send("POST", f"{ROOT}sel?condition={quoted(selection)}",
                                            {"fields": {"text": "hello world", "large": 7, "flag": True, "precise": 2.5}})
            self.assertEqual(status, 200 if is_true else 412, f"{selection}: {answer}")
            self.assertEqual(answer["id"], "id:values:thing::sel")
            found = self.must(200, "GET", f"{ROOT}?wantedDocumentCount=1000&selection={quoted(selection)}")
            self.assertEqual("id:values:thing::sel" in [one["id"] for one in found["documents"]], is_true, selection)
        for number in (5, 18446744073709551615):
            path = f"/document/v1/values/thing/number/{number}/"
            self.must(200, "POST", path + "a/b", {"fields": {}})
            found = self.must(200, "GET", path + "?wantedDocumentCount=1000")
            self.assertIn(f"id:values:thing:n={number}:a/b", [one["id"] for one in found["documents"]])
        for selection in ("(", "thing.large ==", "absent", "absent.x == 1", "thing.absent == 1", "thing.large == 'x", "thing and", "7 ==",
                          "thing.large === 1", ")", "thing.text =~ '('"):
            for method, target in (("POST", f"{ROOT}sel?condition="), ("DELETE", f"{ROOT}sel?condition="), ("GET", f"{ROOT}?selection=")):
                body = {"fields": {"large": 99}} if method == "POST" else None
                self.assertTrue(self.must(400, method, target + quoted(selection), body)["message"], selection)
        self.assertEqual(self.must(200, "GET", ROOT + "sel")["fields"]["large"], 7)

    def test_one_of_many_writes_with_the_same_condition(self):
        self.must(200, "POST", ROOT + "race", {"fields": {"large": 0}})
        statuses = []

        def write(i):
            connection = self.connect()
            statuses.append(connection.send("POST", f"{ROOT}race?condition={quoted('thing.large == 0')}", {"fields": {"large": i}})[0])

        threads = [threading.Thread(target=write, args=(i,)) for i in range(1, 51)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(sorted(statuses), [200] + [412] * 49)

    def test_parameters(self):
        path = ROOT + "parameter"
        self.must(200, "POST", path, {"fields": {"large": 1}})
        for timeout in ("60000ms", "5s", "2.5", "1ks", "5000000%C2%B5s", "30"):
            self.must(200, "GET", f"{path}?timeout={timeout}")
            self.must(200, "PUT", f"{path}?timeout={timeout}&route=default&tracelevel=3", {"fields": {}})
        for name in ("timeout", "tracelevel", "condition", "create", "dryRun", "route"):
            self.assertIn(f"Expected non-empty value for request property '{name}'",
                          self.must(400, "POST", f"{path}?{name}=", {"fields": {"large": 9}})["message"])
        for parameter in ("timeout=soon", "timeout=-1s", "timeout=0", "timeout=5m", "create=1", "dryRun=maybe", "tracelevel=x",
                          "condition=%", "condition=%zz", "condition=false&condition=true", "condition=true&condition=true",
                          "create=true&create=false"):
            self.assertTrue(self.must(400, "POST", f"{path}?{parameter}", {"fields": {"large": 9}})["message"], parameter)
        for parameter in ("fieldSet=absent", "fieldSet=thing:absent", "fieldSet=absent:%5Bdocument%5D", "fieldSet=%5Babsent%5D", "fieldSet=",
                          "cluster=", "cluster=other", "dryRun=true", "timeout=x", "tracelevel=x"):
            self.assertTrue(self.must(400, "GET", f"{path}?{parameter}")["message"], parameter)
        self.assertEqual(self.must(200, "GET", path)["fields"], {"large": 1})

    def test_an_accept_header_that_cannot_be_read_is_refused(self):
        self.must(200, "POST", ROOT + "accept", {"fields": {"large": 1}})
        for accept in ("*/*", "application/json", "text/html, image/gif, *; q=.2, */*; q=.2", "application/json;q=0.5, ,*/*;q=0",
                       "text/html,application/xhtml+xml,application/signed-exchange;v=b3;q=0.7", "image/png", ""):
            self.must(200, "GET", ROOT + "accept", headers={"Accept": accept})
        for accept in ("application", "application/", "/json", "application/json;q=x", "application/json;q=", "*/*;q=2", "*/*;q=-1",
                       "application json", ";q=1", "application/json;;", "a/b/c", "application/json;q", "\u00e9/x"):
            for target in (ROOT + "accept", ROOT + "?stream=true", "/cluster/v1/status"):
                self.http.connection.request("GET", target, headers={"Accept": accept.encode("latin-1")})
                answer = self.http.connection.getresponse()
                message = json.loads(answer.read())["message"]
                self.assertEqual(answer.status, 400, accept)
                self.assertIn("the header Accept is", message)

    def test_ids(self):
        """Ids are bytes: no folding of case, no normalisation; each kind of id is another document."""
        paths = [ROOT + one for one in ("a", "A", "%C3%A9", "e%CC%81", "a%20", "a+b", "a%2Bb", "a%252Fb", "a%2Fb", "%3F", "%23", "a;b=c", "..%2F")]
        paths += ["/document/v1/values/thing/number/1/a", "/document/v1/values/thing/group/1/a", "/document/v1/values/thing/group/g%20h/a"]
        for i, path in enumerate(paths):
            self.must(200, "POST", path, {"fields": {"large": i}})
        for i, path in enumerate(paths):
            answer = self.must(200, "GET", path)
            self.assertEqual((answer["pathId"], answer["fields"]), (path, {"large": i}))
        self.assertEqual(self.must(200, "GET", ROOT + "a+b")["id"], "id:values:thing::a b")
        self.assertEqual(self.must(200, "GET", ROOT + "a/b")["id"], "id:values:thing::a/b")
        for path in (ROOT + "%FF", ROOT + "%", ROOT + "%4", ROOT + "%zz", "/document/v1/values/thing/number/-1/a",
                     "/document/v1/values/thing/number/18446744073709551616/a", "/document/v1/values/thing/number/x/a",
                     "/document/v1//thing/docid/a", "/document/v1/values//docid/a"):
            for method in ("GET", "POST", "DELETE"):
                self.assertTrue(self.must(400, method, path, {"fields": {}} if method == "POST" else None)["message"], path)
        for path in ("/document/v1/values/thing", "/document/v1/values", "/document/v1/values/thing/absent/a", "/document/v2/values/thing/docid/a",
                     "/document/v1/values/thing/number"):
            self.assertIn("/document/v1/", self.must(404, "GET", path)["message"])


if __name__ == "__main__":
    unittest.main()
