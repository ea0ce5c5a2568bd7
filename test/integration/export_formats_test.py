"""Exports in the formats that other programs read: CSV, and Parquet where pyarrow is installed. Both come back unchanged."""

import csv
import json
import subprocess
import unittest

import harness
from python_package import PYTHON, has_module

SCHEMA = """document thing {
  struct point { field x type double {} field label type string {} }
  field name type string { header }
  field count type int { header }
  field whole type long { header }
  field small type byte { header }
  field part type double { header }
  field single type float { header }
  field yes type bool { header }
  field data type raw { }
  field tags type array<string> { }
  field numbers type array<double> { }
  field weights type weightedset<string> { }
  field pairs type map<string, int> { }
  field place type point { }
  field never type int { header }
}"""
DOCUMENTS = {
    "id:p:thing::1": {"name": "[1, 2]", "count": 7, "whole": 2**62 + 1, "small": -5, "part": 1.0, "single": 0.5, "yes": True,
                      "data": "AAEC/w==", "tags": ["a", '{"'], "numbers": [1, 2.5], "weights": {"x": 3},
                      "pairs": {"k": -1}, "place": {"x": 0.25, "label": "here, \"there\""}},
    "id:p:thing::2": {"name": 'line\nbreak, "é" \u0007', "whole": -5, "part": -1e-300, "yes": False, "tags": []},
    "id:p:thing::3": {"name": "", "part": 3.0},
    "id:p:thing:n=3:4": {"name": " blanks ", "part": 12345678901234567890.0},
}
TYPES = {"_id": "VARCHAR", "name": "VARCHAR", "count": "INTEGER", "whole": "BIGINT", "small": "TINYINT", "part": "DOUBLE",
         "single": "FLOAT", "yes": "BOOLEAN", "data": "BLOB", "tags": "VARCHAR[]", "numbers": "DOUBLE[]",
         "weights": "MAP(VARCHAR, INTEGER)", "pairs": "MAP(VARCHAR, INTEGER)",
         "place": 'STRUCT(x DOUBLE, "label" VARCHAR)', "never": "INTEGER"}


def run_python(script, *arguments):
    done = subprocess.run([PYTHON, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class ExportFormatsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(storage=2, redundancy=2)
        cls.cluster.start()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.deploy(SCHEMA)

    def setUp(self):
        lines = "".join(json.dumps({"put": name, "fields": fields}) + "\n" for name, fields in DOCUMENTS.items())
        self.cluster.must("feed", "-", stdin=lines)

    def read_back(self, *arguments):
        """Returns the documents after all were removed and imported again."""
        before = self.cluster.documents("--type", "thing")
        self.cluster.must("remove", "--selection", "true", "--type", "thing", "--yes")
        self.assertEqual(self.cluster.documents("--type", "thing"), {})
        self.cluster.must("import", *arguments)
        self.assertEqual(self.cluster.documents("--type", "thing"), before)
        self.assertEqual(set(before), set(DOCUMENTS))

    def test_csv_holds_flat_fields_as_they_are_and_nested_ones_as_json(self):
        for name in ("things.csv", "things.csv.gz"):
            path = self.cluster.folder / name
            summary = self.cluster.must("export", path, "--type", "thing").json()
            self.assertEqual(summary["documents"], len(DOCUMENTS))
            self.read_back("--type", "thing", "--id-field", "_id", path)
        with open(self.cluster.folder / "things.csv", newline="", encoding="utf-8") as file:
            rows = {row["_id"]: row for row in csv.DictReader(file)}
        self.assertEqual(set(rows), set(DOCUMENTS))
        one = rows["id:p:thing::1"]
        self.assertEqual(list(one), list(TYPES))
        self.assertEqual((one["name"], one["whole"], one["part"], one["yes"]), ("[1, 2]", str(2**62 + 1), "1", "true"))
        self.assertEqual(json.loads(one["tags"]), ["a", '{"'])
        self.assertEqual(json.loads(one["place"]), {"x": 0.25, "label": 'here, "there"'})
        self.assertEqual(rows["id:p:thing::2"]["name"], 'line\nbreak, "é" \u0007')
        self.assertEqual(rows["id:p:thing::3"]["count"], "")
        self.assertIn('id:p:thing::3,"",', (self.cluster.folder / "things.csv").read_text())

    def test_csv_of_some_fields_in_the_order_asked_for_resumed(self):
        path = self.cluster.folder / "some.csv"
        self.cluster.must("export", path, "--type", "thing", "--fields", "whole,name", "--resume")
        self.assertEqual(path.read_text().splitlines()[0], "_id,whole,name")
        again = self.cluster.fjord("export", path, "--type", "thing")
        self.assertEqual(again.code, harness.FAILED, again)
        self.assertIn("--overwrite", again.err)

    def test_what_cannot_be_written_is_refused_before_anything_is(self):
        for name, arguments, why in (("cars.txt", ["--type", "thing"], "the ending says the format"),
                                     ("cars", [], "the ending says the format"),
                                     ("cars.csv.zip", ["--type", "thing"], "the ending says the format"),
                                     ("cars.csv", [], "needs --type")):
            path = self.cluster.folder / name
            refused = self.cluster.fjord("export", path, *arguments)
            self.assertEqual(refused.code, harness.USAGE, refused)
            self.assertIn(why, refused.err)
            self.assertFalse(path.exists())
        for fields in ("[id]", "nothing"):
            refused = self.cluster.fjord("export", self.cluster.folder / "f.csv", "--type", "thing", "--fields", fields)
            self.assertNotEqual(refused.code, harness.OK, refused)

    @unittest.skipUnless(has_module("fjord", "pyarrow"), "SKIPPED: no Python package, or no pyarrow")
    def test_parquet_columns_have_the_types_of_the_schema(self):
        path = self.cluster.folder / "things.parquet"
        self.cluster.must("export", path, "--type", "thing", "--overwrite")
        columns = run_python("import json, sys, pyarrow.parquet as pq\n"
                             "print(json.dumps({c.name: str(c.type) for c in pq.read_schema(sys.argv[1])}))", path)
        self.assertEqual(set(columns), set(TYPES))
        self.assertEqual({name: columns[name] for name in ("part", "single", "whole", "count", "yes", "numbers")},
                         {"part": "double", "single": "float", "whole": "int64", "count": "int32", "yes": "bool",
                          "numbers": "list<element: double>"})
        self.read_back(path)
        again = self.cluster.fjord("export", path, "--type", "thing")
        self.assertEqual(again.code, harness.FAILED, again)
        self.assertIn("--overwrite", again.err)

    @unittest.skipUnless(has_module("fjord", "pyarrow"), "SKIPPED: no Python package, or no pyarrow")
    def test_options_of_a_parquet_export(self):
        path = self.cluster.folder / "some.parquet"
        ids = "import json, sys, pyarrow.parquet as pq\ntable = pq.read_table(sys.argv[1])\n" \
              "print(json.dumps([table.column_names, sorted(table['_id'].to_pylist())]))"

        def exported(*options):
            summary = self.cluster.must("export", path, "--overwrite", *options).json()
            columns, found = run_python(ids, path)
            self.assertEqual(summary["documents"], len(found))
            self.assertEqual(summary["bytes"], path.stat().st_size)
            return columns, found

        self.assertEqual(exported("--type", "thing", "--fields", "whole,name", "--selection", "thing.count == 7"),
                         (["_id", "name", "whole"], ["id:p:thing::1"]))
        parts = [exported("--type", "thing", "--slice", f"{part}/2", "--snapshot", "--priority", "high",
                          "--visitors-per-node", "1", "--buckets-per-visitor", "1", "--buckets-at-once", "2")[1]
                 for part in (1, 2)]
        self.assertEqual(sorted(parts[0] + parts[1]), sorted(DOCUMENTS))
        self.assertEqual(exported("--type", "thing", "--to", "2001-01-01T00:00:00Z")[1], [])
        self.assertEqual(exported("--type", "thing", "--from", "1h")[1], sorted(DOCUMENTS))

    @unittest.skipUnless(has_module("fjord", "pyarrow"), "SKIPPED: no Python package, or no pyarrow")
    def test_mistakes_with_parquet_have_the_exit_codes_of_the_command_line(self):
        path = self.cluster.folder / "mistakes.parquet"
        new = self.cluster.folder / "new.parquet"
        self.cluster.must("export", path, "--type", "thing")
        lines = self.cluster.folder / "lines.jsonl"
        lines.write_text("")
        for code, arguments in (
                (harness.USAGE, ["export", new, "--from", "abc"]), (harness.USAGE, ["export", new, "--slice", "9/4"]),
                (harness.USAGE, ["export", new, "--selection", "thing.count >"]),
                (harness.USAGE, ["import", path, lines]), (harness.USAGE, ["import", path, path, "--cursor", "position"]),
                (harness.NOT_FOUND, ["export", new, "--type", "nosuch"]), (harness.NOT_FOUND, ["import", "nofile.parquet"]),
                (harness.NOT_FOUND, ["import", "--type", "nosuch", "--id-row", path])):
            refused = self.cluster.fjord(*arguments)
            self.assertEqual(refused.code, code, refused)
            self.assertTrue(refused.err.startswith("fjord: "), refused)
        self.assertEqual(list(self.cluster.folder.glob("new.parquet*")), [])
        path.write_bytes(b"PAR1")
        self.assertEqual(self.cluster.fjord("import", path).code, harness.FAILED)

    def test_parquet_without_the_python_package_says_what_is_missing(self):
        empty = self.cluster.folder / "empty"
        empty.mkdir()
        for command in (["export", "x.parquet"], ["import", "x.parquet"]):
            refused = harness.run_program("fjord", *command, env={"FJORD_CLUSTER": self.cluster.address, "PATH": str(empty)})
            self.assertEqual(refused.code, harness.FAILED, refused)
            self.assertIn("the packages fjord and pyarrow", refused.err)

    @unittest.skipUnless(has_module("fjord", "pyarrow", "duckdb"), "SKIPPED: no Python package, pyarrow or duckdb")
    def test_duckdb_reads_parquet_and_csv(self):
        parquet, table = self.cluster.folder / "duck.parquet", self.cluster.folder / "duck.csv"
        self.cluster.must("export", parquet, "--type", "thing", "--overwrite")
        self.cluster.must("export", table, "--type", "thing", "--overwrite")
        columns, total, rows = run_python("""
import duckdb, json, sys
parquet, table = sys.argv[1:]
columns = {row[0]: row[1] for row in duckdb.sql(f"describe select * from '{parquet}'").fetchall()}
total = duckdb.sql(f"select sum(part), sum(whole)::varchar, count(*) from '{parquet}'").fetchall()[0]
print(json.dumps([columns, total, duckdb.sql(f"select _id, name, whole from read_csv('{table}', header=true)").fetchall()]))""",
                                          parquet, table)
        self.assertEqual(columns, TYPES)
        self.assertEqual(total, [1.0 + -1e-300 + 3.0 + 12345678901234567890.0, str(2**62 - 4), len(DOCUMENTS)])
        self.assertEqual({row[0]: row[2] for row in rows}, {name: fields.get("whole") for name, fields in DOCUMENTS.items()})


if __name__ == "__main__":
    harness.main()
