"""Checks that every core row of test/data/vectors/behaviours.tsv about a controller, and every row of
test/data/vectors/state/generation.tsv, has a test case or a line in behaviours-controller.tsv.

Arguments: the test program.
"""

import pathlib
import re
import subprocess
import sys

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "test" / "data" / "vectors"
HERE = pathlib.Path(__file__).parent


def table(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    columns = lines[0].split("\t")
    return [dict(zip(columns, line.split("\t"))) for line in lines[1:]]


def main():
    listed = subprocess.run([sys.argv[1], "--list-test-names-only"], stdout=subprocess.PIPE, text=True, check=False)
    tested = set(re.findall(r"\bB\d{4}\b", listed.stdout))
    rows = {row["id"]: row for row in table(VECTORS / "behaviours.tsv") if row.get("layer") == "controller"}
    excuses = table(HERE / "behaviours-controller.tsv")
    excused = {row["id"]: row for row in excuses if row["id"] != "generation"}
    faults = []
    for number, row in rows.items():
        if row["relevance"] == "core" and number not in tested and number not in excused:
            faults.append(f"{number} {row['scenario']} has neither a test case nor a line")
    for number, row in excused.items():
        if number not in rows or rows[number]["scenario"] != row["scenario"] or not row["why"]:
            faults.append(f"the line of {number} is not about a row of the table, or gives no reason")
        if number in tested:
            faults.append(f"{number} has a test case, and a line that says why not")
    faults += [f"the table has no row {number}" for number in tested - set(rows)]
    source = "".join((HERE / name).read_text(encoding="utf-8") for name in ("generation_table_test.cpp", "behaviours_test.cpp"))
    excused_rows = {row["scenario"] for row in excuses if row["id"] == "generation"}
    for row in table(VECTORS / "state" / "generation.tsv"):
        if row["test"] in excused_rows:
            continue
        published = row["published"].removeprefix("verbose: ")
        state = published if re.match(r"(cluster|bits|distributor):", published) else ""
        if row["test"] not in source or state not in source:
            faults.append(f"generation.tsv: {row['test']} -> {published} is in no test")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(tested)} rows with a test case, {len(excused)} with a reason")
    return 1 if faults or not tested else 0


if __name__ == "__main__":
    sys.exit(main())
