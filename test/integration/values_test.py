"""Nasty numbers and texts through every way in and out: each is kept exactly or refused, and never changed.

docs/testing.md has the table of the ways. A command, a path of HTTP, a call of the Python client or of Thrift that is missing there
fails this test.
"""

import fnmatch
import json
import math
import re
import subprocess
import unittest
from fractions import Fraction

import harness
import yaml
from nasty_values import FIELDS, KEPT, NUMBERS, REFUSED, SCALARS, SCHEMA, VALUES, canonical, canonical_fields, loads
from python_package import PYTHON, has_module
from values_in import WaysIn
from values_out import ResultsOut, RowsOut, WaysOut, lines_of

from fjord_client import ClientService

HAS_PYTHON = has_module("fjord", "pyarrow", "pandas", "polars")
IN = ("put", "update", "feed", "feed-updates", "import-lines", "import-rows", "import-csv", "update-selection", "http-put", "http-update",
      "http-update-selection", "thrift-put", "thrift-update")
OUT = ("get", "get-json", "get-yaml", "visit", "visit-yaml", "subscribe", "export-lines", "export-lines-gz", "export-csv", "http-get",
       "http-visit", "http-stream", "http-changes", "thrift-get", "thrift-visit", "thrift-subscription")
ROWS_OUT = ("aggregate-json", "aggregate-csv", "http-aggregate-json", "http-aggregate-lines", "http-aggregate-csv", "thrift-aggregate")
WITHOUT_EMPTY = ("http-get", "http-visit", "http-stream", "http-changes")  # Fields without content are left out (docs/clients/http.md).
SPACE = "id.namespace == 'put'"  # The documents of one way in.
FINITE = "{0} >= -1.7976931348623157e308 and {0} <= 1.7976931348623157e308"
RESULTS_OUT = ("job-results", "http-results", "thrift-results")
PYTHON_OUT = ("python-get", "python-get-many", "python-visit", "python-arrow-table", "python-arrow-df", "python-arrow-pl", "python-subscribe",
              "python-export", "export-parquet", "python-aggregate", "python-aggregate-arrow", "python-aggregate-df", "python-aggregate-pl")
PAGE = harness.pathlib.Path(__file__).resolve().parents[2] / "docs" / "testing.md"


def section(page, heading):
    """Returns the rows of the table below a heading, without its head."""
    text = page[page.index(heading):].split("\n## ")[0]
    return [line for line in text.splitlines() if line.startswith("| `")]


def method(owner, way):
    return getattr(owner, way.replace("-", "_"))


class ValuesTest(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(storage=2, redundancy=2, gateways=1)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.cluster.deploy(SCHEMA)
        status = cls.cluster.local("status").out
        cls.port = next(line.split()[3].rsplit(":", 1)[1] for line in status.splitlines() if line.startswith("gateway.0"))
        cls.refused = {}
        ways = WaysIn(cls.cluster, cls.port)
        for way in IN:
            cls.refused[way] = method(ways, way)(way)
        if HAS_PYTHON:
            for way, errors in cls.python("in").items():
                cls.refused[way] = {int(number): error for number, error in errors.items()}
        ways.http_copy("put")
        cls.stored = WaysOut(cls.cluster, cls.port, []).visit()

    @classmethod
    def python(cls, what, given=None):
        done = subprocess.run([PYTHON, "-B", str(harness.pathlib.Path(__file__).parent / "values_python.py"), cls.cluster.address, what,
                               str(cls.cluster.folder)], input=json.dumps(given), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-5000:]
        return json.loads(done.stdout)

    def test_each_way_in_keeps_a_value_or_refuses_it(self):
        wrong = []
        for way, refused in self.refused.items():
            for value in VALUES:
                found = self.stored.get(value.id(way), {}).get(value.field)
                if value.number in refused:
                    error = refused[value.number]
                    if found is not None:
                        wrong.append(f"{way}: {value}: an error, and stored as {str(found)[:80]}: {error}")
                    elif value.verdict == KEPT and error is not None:
                        wrong.append(f"{way}: {value}: refused: {error[:300]}")
                    elif error == "":
                        wrong.append(f"{way}: {value}: refused without a word")
                elif value.verdict == REFUSED:
                    wrong.append(f"{way}: {value}: taken, stored as {str(found)[:80]}")
                elif found != value.stored:
                    wrong.append(f"{way}: {value}: stored as {str(found)[:80]}, not {str(value.stored)[:80]}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_each_way_out_gives_what_is_stored(self):
        ways = WaysOut(self.cluster, self.port, sorted(self.stored))
        found = {}
        for way in OUT:
            try:
                found[way] = method(ways, way)()
            except Exception as error:
                found[way] = error
        if HAS_PYTHON:
            found.update(self.python("out", sorted(self.stored)))
        wrong = []
        for way, documents in found.items():
            if isinstance(documents, Exception):
                wrong.append(f"{way}: {documents!r}"[:500])
                continue
            for name in sorted({*documents, *self.stored}):
                expected = expected_from(way, self.stored.get(name, {}))
                if name not in documents or documents[name] != expected:
                    wrong.append(f"{way}: {name}: {str(documents.get(name))[:150]}, not {str(expected)[:150]}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_each_way_to_aggregate_computes_exactly(self):
        questions, answers, kinds = [], [], []
        for field in SCALARS:
            if field != "data":  # Raw values are no expressions.
                questions.append({"selection": SPACE, "group_by": [field], "aggregates": ["count()"]})
                answers.append(self.groups(field))
                kinds.append([FIELDS[field], "long"])
        for field in NUMBERS:
            finite = f"{SPACE} and {FINITE.format(field)}"
            questions.append({"selection": finite, "aggregates": [f"sum({field})", f"min({field})", f"max({field})", f"avg({field})"]})
            answers.append([self.totals(field)])
            kind = FIELDS[field]
            kinds.append(["double" if kind in ("float", "double") else "digits", kind, kind, "double"])
        found = [{way: method(RowsOut(self.cluster, self.port), way)(words) for way in ROWS_OUT} for words in questions]
        if HAS_PYTHON:
            for rows, more in zip(found, self.python("rows", questions)):
                rows.update(more)
        wrong = []
        for words, by_way, expected, kind in zip(questions, found, answers, kinds):
            for way, rows in by_way.items():
                try:
                    have = sorted(([cell_of(one, cell) for one, cell in zip(kind, row)] for row in rows), key=str)
                except ValueError as error:
                    have = error
                if have != sorted(expected, key=str):
                    wrong.append(f"{way}: {words}: {str(have)[:600]}, not {str(sorted(expected, key=str))[:600]}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_a_selection_compares_exactly(self):
        wrong, rows = [], RowsOut(self.cluster, self.port)
        limits = ["9007199254740992", "9007199254740993", "9007199254740992.5", "9223372036854775807", "9223372036854775808.0", "1e19", "-1e19",
                  "-9223372036854775808", "0.1", "0", "-0.0", "5e-324", "1e308", "127", "16777217", "3.4028234663852886e38"]
        compare = {"==": lambda a, b: a == b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b}
        for field in NUMBERS:
            values = [exact(one) for one in self.numbers(field) if one != "nan"]
            for limit in limits:
                # As everywhere, a number that is no integer of 64 bits is the nearest double.
                number = Fraction(int(limit)) if limit.lstrip("-").isdigit() and -2**63 <= int(limit) < 2**63 else Fraction(float(limit))
                for sign, holds in compare.items():
                    expected = sum(holds(value, number) for value in values)
                    words = {"selection": f"{SPACE} and {field} {sign} {limit}", "aggregates": ["count()"]}
                    found = json.loads(rows.post(words, "json"))["rows"][0][0]
                    if found != expected:
                        wrong.append(f"{words}: {found}, not {expected}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_an_update_computes_exactly_or_refuses(self):
        cases = [(field, start, action, operand) for field, starts, operands in (
            ("large", ("9007199254740993", "9223372036854775807", "-9223372036854775808", "0", "-7"),
             ("1", "1.0", "-1", "-1.0", "0.0", "1e3", "2", "3", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
              "9223372036854775809", "-18446744073709551615", "9007199254740993.0", "9007199254740993e0", "1e19")),
            ("small", ("127", "-128", "5"), ("1", "-1", "1.0", "2", "256", "1e10")),
            ("precise", ("9007199254740992", "0", "-0.5"), ("1", "2", "0.5", "-1", "1e300")),
        ) for start in starts for action in ("increment", "decrement", "multiply", "divide") for operand in operands]
        put = "".join(f'{{"put":"id:compute:figure::{i}","fields":{{"{case[0]}":{case[1]}}}}}\n' for i, case in enumerate(cases))
        self.cluster.must("feed", "-", stdin=put)
        change = "".join(f'{{"update":"id:compute:figure::{i}","fields":{{"{case[0]}":{{"{case[2]}":{case[3]}}}}}}}\n'
                         for i, case in enumerate(cases))
        self.cluster.fjord("feed", "-", "--errors-shown", "1000", stdin=change)
        texts = WaysOut(self.cluster, self.port, [f"id:compute:figure::{i}" for i in range(len(cases))]).get()
        wrong = []
        for i, (field, start, action, operand) in enumerate(cases):
            found = texts[f"id:compute:figure::{i}"][field]
            allowed = [canonical(FIELDS[field], start)] + computed(FIELDS[field], Fraction(start), action, Fraction(operand))
            if found not in allowed:
                wrong.append(f"{field} {start} {action} {operand}: {found}, not one of {allowed}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_a_script_gets_and_gives_values_exactly(self):
        script = self.cluster.file("same.lua", "function map(doc, emit) emit(doc.id, doc.fields) end\n"
                                               "function reduce(key, values) return values[1] end\n")
        job = self.cluster.must("job", "run", "script", "--type", "thing", "--selection", SPACE, "--script", script, "--wait", "-o",
                                "json").json()["job"]
        ways = ResultsOut(self.cluster, self.port)
        found = {way: method(ways, way)(job) for way in RESULTS_OUT}
        if HAS_PYTHON:
            found["python-results"] = self.python("results", job)
        expected = {name: fields for name, fields in self.stored.items() if name.startswith("id:put:")}
        wrong = [f"{way}: {name}: {documents.get(name)}, not {fields}"[:400] for way, documents in found.items()
                 for name, fields in expected.items() if documents.get(name) != fields]
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_two_ways_of_one_form_give_the_same_bytes(self):
        ways, rows = WaysOut(self.cluster, self.port, sorted(self.stored)), RowsOut(self.cluster, self.port)
        lines = {"get": lines_of(self.cluster.must("get", *sorted(self.stored)).out),
                 "visit": lines_of(self.cluster.must("visit", "--type", "thing").out),
                 "subscribe": [re.sub(r',"timestamp_us":\d+}$', "}", line) for line in
                               lines_of(self.cluster.must("subscribe", "--type", "thing", "--once").out)],
                 "export": lines_of(ways.export("same.jsonl").read_bytes().decode()),
                 "thrift-get": ways.thrift_lines(),
                 "http-stream": [line for line in ways.stream_lines() if line.startswith('{"put"')]}
        for way, found in lines.items():
            empty = '"fields":{"text":""}' if way != "http-stream" else '"fields":{}'  # Without fields that have no content.
            expected = [line.replace('"fields":{"text":""}', empty) for line in lines["get"]]
            self.assertEqual(sorted(found), sorted(expected), way)
        for field in SCALARS:
            if field != "data":
                words = {"selection": SPACE, "group_by": [field], "aggregates": ["count()"], "order_by": [field]}
                self.assertEqual(rows.fjord("csv", words), rows.post(words, "csv"))
                self.assertEqual([f'{{"row":{line}}}' for line in lines_of(rows.fjord("json", words))], lines_of(rows.post(words, "jsonl"))[:-1])
                if field in NUMBERS:
                    words = {"selection": SPACE, "aggregates": [f"min({field})", f"sum({field})", f"avg({field})", f"quantile(0.5,{field})"]}
                    self.assertEqual(rows.fjord("csv", words), rows.post(words, "csv"))

    def test_each_text_is_a_key_of_its_own(self):
        texts = {fields["text"] for name, fields in self.stored.items() if name.startswith("id:put:") and "text" in fields}
        texts = {one for one in texts if len(one) < 1000}  # A key is a part of an id.
        script = self.cluster.file("keys.lua", "function map(doc, emit) emit(doc.fields.text, 1) end\n"
                                               "function reduce(key, values) return {key = key, count = #values} end\n")
        job = self.cluster.must("job", "run", "script", "--type", "thing", "--selection", f"{SPACE} and thing.text != null and not thing.text = 'aaaa*'",
                                "--script", script, "--wait", "-o", "json").json()["job"]
        found = {line["key"]: line["value"] for line in map(json.loads, lines_of(self.cluster.must("job", "results", job, "-o", "json").out))}
        self.assertEqual({value["key"] for value in found.values()}, texts)
        self.assertEqual({value["count"] for value in found.values()}, {1})
        self.assertEqual(set(found), texts)

    def test_rows_that_are_stored_are_those_that_are_printed(self):
        wrong = []
        for field in SCALARS:
            if field != "data":
                self.cluster.must("aggregate", "--type", "thing", "--selection", SPACE, "--group-by", field, "count() AS number", "--into", "row",
                                  "--name", field)
                lines = self.cluster.must("visit", "--type", "row", "--selection", f"id.specific = '{field}/*'").out.split("\n")
                rows = [dict(dict(loads(line))["fields"]) for line in lines if line]
                have = sorted(([cell_of(FIELDS[field], row.get(field)), int(row["number"])] for row in rows), key=str)
                if have != sorted(self.groups(field), key=str):
                    wrong.append(f"{field}: {str(have)[:600]}, not {str(sorted(self.groups(field), key=str))[:600]}")
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_every_way_is_in_the_table_of_the_page(self):
        rows = [[re.findall("`([^`]*)`", cell) for cell in line.split("|")[1:5]] for line in section(PAGE.read_text(), "## Every way of a value")]
        named = [name for row in rows for name in row[0]]
        tested = {way for row in rows for cell in row[1:] for way in cell}
        python = {"python-results", *self.refused, *PYTHON_OUT} if HAS_PYTHON else set()
        ways = {*IN, *OUT, *ROWS_OUT, *RESULTS_OUT, "into", "selection", "operand", *python}
        if HAS_PYTHON:
            self.assertEqual(ways, tested, "the ways of this test, and those of the table in docs/testing.md")
        missing, twice = [], []
        for one in self.names():
            matching = [name for name in named if fnmatch.fnmatchcase(one, name.replace("[", "[[]"))]
            if not matching:
                missing.append(one)
            elif len(matching) > 1:
                twice.append((one, matching))
        self.assertEqual((missing, twice), ([], []), "ways that no row, or several rows, of docs/testing.md name")

    def names(self):
        """Returns all commands, paths of HTTP, calls of Thrift and of the Python client."""
        text = harness.run_program("fjord", "help").out
        names = [f"fjord {line.split()[0]}" for line in re.search(r"Subcommands:\n(.*?)\n\n", text, re.S).group(1).splitlines()]
        paths = yaml.safe_load(WaysOut(self.cluster, self.port, []).http_text("GET", "/openapi.yaml"))["paths"]
        names += [f"{one.upper()} {path}" for path, methods in paths.items() for one in methods if one in ("get", "post", "put", "delete")]
        names += [f"ClientService.{name}" for name in dir(ClientService.Iface) if not name.startswith("_")]
        if HAS_PYTHON:
            names += [f"{kind}.{name}" for kind, members in self.python("names").items() for name in members]
        return names

    def numbers(self, field):
        return [one[field] for name, one in self.stored.items() if name.startswith("id:put:") and field in one]

    def groups(self, field):
        """Returns the rows of groups by a field, as SQL has them: equal numbers are one group, NaN is not set."""
        documents = [one for name, one in self.stored.items() if name.startswith("id:put:")]
        counts = {}
        for one in documents:
            key = one.get(field)
            key = None if key == "nan" else 0.0.hex() if key == (-0.0).hex() else key
            counts[key] = counts.get(key, 0) + 1
        return [[key, count] for key, count in counts.items()]

    def totals(self, field):
        values = self.numbers(field)
        if FIELDS[field] in ("float", "double"):
            exact = [Fraction(float.fromhex(one)) for one in values if one not in ("nan", "inf", "-inf")]
            as_hex = lambda number: (float(number) + 0.0).hex()  # noqa: E731
            return [as_hex(sum(exact)), as_hex(min(exact)), as_hex(max(exact)), as_hex(sum(exact) / len(exact))]
        return [sum(values), min(values), max(values), float(Fraction(sum(values), len(values))).hex()]


def expected_from(way, fields):
    if way == "python-arrow-df":  # NaN and what is missing are the same in a float column of pandas.
        return {name: value for name, value in fields.items() if value != "nan"}
    return {name: value for name, value in fields.items() if way not in WITHOUT_EMPTY or value != ""}


def exact(value):
    """Returns the exact value of a canonical number; infinite ones are floats."""
    if isinstance(value, int):
        return Fraction(value)
    number = float.fromhex(value)
    return number if math.isinf(number) else Fraction(number)


def computed(kind, start, action, operand):
    """Returns the results that arithmetic may have; none if it has to fail."""
    if action == "divide" and operand == 0:
        return []
    result = {"increment": start + operand, "decrement": start - operand, "multiply": start * operand,
              "divide": start / operand if operand else 0}[action]
    if kind == "double":
        return [float(result).hex(), (float(result) * -1).hex()] if result == 0 else [float(result).hex()] if abs(result) < 2**1024 else []
    whole = math.trunc(result)  # Quotients are cut off towards zero.
    bits = {"byte": 7, "long": 63}[kind]
    return [whole] if -2**bits <= whole < 2**bits else []


def cell_of(kind, cell):
    """Returns the canonical value of a cell of a row."""
    if isinstance(cell, dict):
        cell = {"inf": "Infinity", "-inf": "-Infinity"}.get(cell["number"], cell["number"])
    if isinstance(cell, float) and math.isinf(cell):
        cell = "Infinity" if cell > 0 else "-Infinity"
    if cell is None or kind == "digits":
        return None if cell is None else int(cell)
    value = canonical(kind, str(cell) if kind in ("float", "double") else cell)
    return 0.0.hex() if value == (-0.0).hex() else value


if __name__ == "__main__":
    harness.main()
