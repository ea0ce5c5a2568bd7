"""Checks that every row of test/data/vectors/behaviours.tsv about a storage engine has a test case or a line in
README.md with the reason.

Arguments: the test program.
"""

import pathlib
import subprocess
import sys

VECTORS = pathlib.Path(__file__).resolve().parents[3] / "test" / "data" / "vectors"
AREAS = {"provider errors", "changed buckets", "storage operations", "split execution"}


def table(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    columns = lines[0].split("\t")
    return [dict(zip(columns, line.split("\t"))) for line in lines[1:]]


def lines_of_readme():
    readme = pathlib.Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in readme.splitlines() if line.startswith("| B")]
    return {row[0]: row for row in cells}


def main():
    listed = subprocess.run([sys.argv[1], "--list-test-names-only"], stdout=subprocess.PIPE, text=True, check=False)
    names = [line for line in listed.stdout.splitlines() if line.strip()]
    rows = table(VECTORS / "behaviours.tsv")
    excused = lines_of_readme()
    faults = []
    covered = 0
    prefixes = {f"{row['area']}: {row['scenario']}: " for row in rows}
    for row in rows:
        prefix = f"{row['area']}: {row['scenario']}: "
        tested = any(name.startswith(prefix) for name in names)
        excuse = excused.pop(row["id"], None)
        covered += tested
        if excuse and tested:
            faults.append(f"{row['id']} {prefix} has a test, and a line that says why not")
        if excuse and (excuse[1], excuse[2]) != (row["area"], row["scenario"]):
            faults.append(f"{row['id']} is {prefix} README.md calls it {excuse[1]}: {excuse[2]}")
        if excuse and not excuse[3]:
            faults.append(f"{row['id']} {prefix} has no reason")
        if (row["layer"] == "persistence" or row["area"] in AREAS) and not tested and not excuse:
            faults.append(f"{row['id']} {prefix} has neither a test nor a line in README.md")
    faults += [f"{row} is not in the table" for row in excused]
    for name in names:
        if not name.startswith("provider: ") and not any(name.startswith(prefix) for prefix in prefixes):
            faults.append(f"the table has no row for the test case {name!r}")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{covered} rows with a test case, {len(lines_of_readme())} with a reason, {len(names)} test cases")
    return 1 if faults or not covered else 0


if __name__ == "__main__":
    sys.exit(main())
