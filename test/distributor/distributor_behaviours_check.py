"""Checks that every core row of test/data/vectors/behaviours.tsv about distribution has a line in
behaviours-distribution.tsv, and that each case that a line names exists. The things that a reason names have to
exist, too: another line with a case, a planted bug, and names of the code.

Arguments: the test programs.
"""

import pathlib
import re
import subprocess
import sys

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "test" / "data" / "vectors"
HERE = pathlib.Path(__file__).parent
AREAS = {
    "distributor": {
        "bucket database", "bucket info gathering", "delete bucket", "distributor main loop", "distributor top level",
        "ideal state manager", "join", "maintenance blocking", "maintenance queue", "maintenance scan",
        "maintenance schedule", "maintenance throttling", "merge", "merge node limit", "ownership", "pending messages",
        "replica bookkeeping", "split", "state checks: delete", "state checks: garbage collection", "state checks: join",
        "state checks: merge and move", "state checks: split", "target choice",
    },
    "storage node": {
        "abort", "bucket deletion", "bucket lists", "changed buckets", "cluster state handling", "merge blocking",
        "merge chain and throttling", "merge execution", "ownership", "split bit choice", "split execution",
    },
}  # fmt: skip


ROOT = HERE.parent.parent
MODULES = ("cluster", "common", "distributor", "document", "rpc", "storage")
NAME_OF_CODE = re.compile(r"\b(?:[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|k[A-Z]\w+|\w+::\w+|\w+\.(?:h|cpp))\b")


def untrue(reason, lines, cases, code, planted):
    """Returns the things that a reason names but that do not exist."""
    for name in NAME_OF_CODE.findall(reason):
        if any(part not in code for part in re.split(r"::", name)):
            yield f"names {name}, which is nowhere in the code"
    for bug in re.findall(r'mutant "([^"]+)"', reason):
        if bug not in planted:
            yield f'names the planted bug "{bug}", which there is not'
    for other in re.findall(r"see (B\d+)", reason):
        if other not in lines or lines[other]["how"].partition(": ")[0] not in cases:
            yield f"refers to {other}, which has no case"


def words_of_code():
    words = set()
    for module in MODULES:
        for path in (ROOT / module).rglob("*"):
            if path.suffix in (".h", ".cpp"):
                words.add(path.name)
                words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return words


def table(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    columns = lines[0].split("\t")
    return [dict(zip(columns, line.split("\t"))) for line in lines[1:]]


def main():
    cases = {}
    for program in sys.argv[1:]:
        listed = subprocess.run([program, "--list-test-names-only"], stdout=subprocess.PIPE, text=True, check=False)
        cases[pathlib.Path(program).name] = set(listed.stdout.splitlines())
    wanted = {
        row["id"]: row
        for row in table(VECTORS / "behaviours.tsv")
        if row.get("relevance") == "core" and row["area"] in AREAS.get(row.get("layer"), ())
    }
    rows = table(HERE / "behaviours-distribution.tsv")
    lines = {row["id"]: row for row in rows}
    faults = [f"{number} {row['scenario']} has no line" for number, row in wanted.items() if number not in lines]
    faults += [f"{row['id']} has two lines" for row in rows if lines[row["id"]] is not row]
    code = words_of_code()
    planted = {line.split("\t")[0] for path in (ROOT / "test" / "mutants").glob("*.tsv") for line in path.read_text().splitlines()}
    tested = 0
    for number, line in lines.items():
        if number not in wanted or wanted[number]["scenario"] != line["scenario"] or not line["how"]:
            faults.append(f"the line of {number} is not about a row of the table, or says nothing")
        program, _, name = line["how"].partition(": ")
        if program not in cases:
            faults += [f"{number} {fault}" for fault in untrue(line["how"], lines, cases, code, planted)]
            continue
        tested += 1
        if name not in cases[program]:
            faults.append(f"{number}: there is no case \"{name}\" in {program}")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{tested} rows with a test case, {len(lines) - tested} with a reason")
    return 1 if faults or not tested else 0


if __name__ == "__main__":
    sys.exit(main())
