"""An aggregation of 300,000 groups, one for each document, takes less than 64 MiB in every process: in the storage
nodes, which compute partial results, and in the distributor, which merges them; or, through the store, in the
storage nodes alone, which also store the 300,000 results as documents."""

import pathlib
import unittest

import harness

DOCUMENTS = 300_000
BUDGET = 64 << 20
SCHEMA = """document sale {
  field number type long { header }
  field amount type int { header }
}
"""


def memory(pid):
    """Returns the resident bytes now, and the peak since forget_peak()."""
    fields = dict(line.split(":", 1) for line in (pathlib.Path("/proc") / str(pid) / "status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) << 10, int(fields["VmHWM"].split()[0]) << 10


def forget_peak(pid):
    (pathlib.Path("/proc") / str(pid) / "clear_refs").write_text("5")


class AggregateMemoryTest(unittest.TestCase):
    def test_each_process_stays_within_the_budget(self):
        with harness.Cluster(storage=3, distributors=1, redundancy=1) as cluster:
            cluster.deploy(SCHEMA)
            # The last digits do not come in order.
            numbers = [number * 100_003 % DOCUMENTS for number in range(DOCUMENTS)]
            path = cluster.file("sales.csv", "number,amount\n" + "".join(f"{number},{number % 1000}\n" for number in numbers))
            cluster.must("import", "--type", "sale", "--id-field", "number", path, timeout=200)
            # Data that is read once stays in memory, with or without groups.
            cluster.must("aggregate", "--type", "sale", "count()", "sum(amount)")
            pids = {file.stem: int(file.read_text().split()[0]) for file in (cluster.directory / "run").glob("*.pid")}
            for shuffle in ("direct", "store"):
                with self.subTest(shuffle=shuffle):
                    before = {}
                    for node, pid in pids.items():
                        forget_peak(pid)
                        before[node] = memory(pid)[0]
                    said = cluster.must("aggregate", "--type", "sale", "--group-by", "number", "count()", "sum(amount)", "-o",
                                        "csv", "--shuffle", shuffle, timeout=200)
                    grown = {node: memory(pid)[1] - before[node] for node, pid in pids.items()}
                    print(shuffle, {node: f"{grown[node] / (1 << 20):.1f} MiB" for node in sorted(grown)}, flush=True)
                    rows = said.out.splitlines()[1:]
                    self.assertEqual(sorted(rows), sorted(f"{number},1,{number % 1000}" for number in numbers))
                    self.assertLess(max(grown.values()), BUDGET, grown)


if __name__ == "__main__":
    harness.main()
