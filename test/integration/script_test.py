"""Jobs whose map and reduce are a Lua program that is sent with the job."""

import contextlib
import json
import pathlib
import subprocess
import time
import unittest

import harness

SCHEMA = """document sale {
  field city type string { header }
  field price type int { header }
  field text type string { body }
}
"""
MEAN = """
header_only = true
function map(doc, emit)
  emit(doc.fields.city, {n = 1, sum = doc.fields.price})
end
function combine(city, a, b)
  return {n = a.n + b.n, sum = a.sum + b.sum}
end
function reduce(city, values)
  local all = {n = 0, sum = 0}
  for _, value in ipairs(values) do all = combine(city, all, value) end
  return {n = all.n, mean = all.sum / all.n}
end
"""
DOCUMENTS = 3000


def sale(number):
    return {"city": f"city {number % 37}", "price": number, "text": "x" * 100}


def script_hosts(cluster):
    """Returns the processes of scripts that the nodes of the cluster run now, by their node."""
    found = {path.read_text().split()[0]: [] for path in (cluster.directory / "run").glob("*.pid")}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, fields = stat.read_text().split(" (", 1)[1].rsplit(") ", 1)
            node = fields.split()[1]
            if "fjord-script" in name and node in found:
                found[node].append(stat.parent.name)
    return found


class ScriptTest(unittest.TestCase):
    def test_a_program_of_the_user(self):
        with harness.Cluster(storage=3, redundancy=2) as cluster:
            cluster.deploy(SCHEMA)
            lines = [json.dumps({"put": f"id:shop:sale::{i}", "fields": sale(i)}) for i in range(DOCUMENTS)]
            cluster.must("feed", cluster.file("feed.jsonl", "\n".join(lines) + "\n"))
            self.check_results(cluster)
            self.check_errors(cluster)

    def test_what_scripts_take_is_limited(self):
        with harness.Cluster(storage=2, redundancy=1, distributors=1) as cluster:
            cluster.must("config", "set", "mapreduce.script_memory_bytes=300MiB")
            cluster.deploy(SCHEMA)
            lines = [json.dumps({"put": f"id:shop:sale::{i}", "fields": sale(i)}) for i in range(DOCUMENTS)]
            cluster.must("feed", cluster.file("feed.jsonl", "\n".join(lines) + "\n"))
            self.check_loading(cluster)
            self.check_memory(cluster)
            self.assertEqual(cluster.status()["health"], "healthy")

    def check_loading(self, cluster):
        """A script whose first lines do not end holds up nobody, whatever its submitter permits."""
        program = cluster.file("endless.lua", "while true do end\n" + MEAN)
        loops = [cluster.begin("job", "run", "script", "--type", "sale", "--script", program, "--param", "timeout_ms=3600000", "--wait",
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for _ in range(5)]
        begun = time.monotonic()
        while any(one.poll() is None for one in loops):
            self.assertEqual(cluster.fjord("aggregate", "--type", "sale", "count()", timeout=20).code, harness.OK)
            self.assertEqual(cluster.fjord("job", "list", timeout=20).code, harness.OK)
            self.assertLess(time.monotonic() - begun, 120)
        for one in loops:
            self.assertNotEqual(one.returncode, harness.OK)
            self.assertIn("took longer than 1000 ms", one.communicate()[1])

    def check_memory(self, cluster):
        refused = self.run_job(cluster, MEAN, "--param", "memory_mb=300")
        self.assertEqual(refused.code, harness.USAGE, refused)
        self.assertIn("mapreduce.script_memory_bytes", refused.err)
        # Two of these fit into a node.
        slow = "function map(doc, emit) for i = 1, 100000 do end emit('n', 1) end\nfunction reduce(k, v) return #v end"
        job = cluster.begin("job", "run", "script", "--type", "sale", "--script", cluster.file("slow.lua", slow), "--wait",
                            "--shuffle", "store", "--param", "memory_mb=120", "--param", "cpu_seconds=600", "-o", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        most, scores = 0, {}  # The score of each process, as it was seen last: the first thing that it does is to set it.
        while job.poll() is None:
            hosts = script_hosts(cluster)
            most = max([most, *(len(pids) for pids in hosts.values())])
            for pid in sum(hosts.values(), []):
                with contextlib.suppress(OSError):
                    scores[pid] = pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text().strip()
        out, err = job.communicate()
        self.assertEqual(job.returncode, harness.OK, err)
        self.assertEqual(cluster.results(json.loads(out)["job"]), {"n": DOCUMENTS})
        self.assertIn(most, (1, 2))
        self.assertIn("1000", scores.values())

    def run_job(self, cluster, program, *more):
        return cluster.fjord("job", "run", "script", "--type", "sale", "--script", cluster.file("program.lua", program), "--wait",
                             "-o", "json", *more)

    def check_results(self, cluster):
        prices = {}
        for i in range(DOCUMENTS):
            prices.setdefault(sale(i)["city"], []).append(i)
        expected = {city: {"n": len(all_), "mean": sum(all_) / len(all_)} for city, all_ in prices.items()}
        for shuffle in ("store", "direct"):
            ended = self.run_job(cluster, MEAN, "--shuffle", shuffle)
            self.assertEqual(ended.code, harness.OK, ended)
            self.assertEqual(ended.json()["documents_read"], DOCUMENTS)
            self.assertEqual(cluster.results(ended.json()["job"]), expected)
            print(f"{DOCUMENTS} documents, shuffle {shuffle}: {ended.json()['seconds']:.2f} s", flush=True)
            some = self.run_job(cluster, MEAN, "--shuffle", shuffle, "--selection", "sale.price < 37")
            self.assertEqual(cluster.results(some.json()["job"]), {f"city {i}": {"n": 1, "mean": i} for i in range(37)})

    def check_errors(self, cluster):
        refused = self.run_job(cluster, "function map(doc)\n  emit(\nend")
        self.assertNotEqual(refused.code, harness.OK)
        self.assertIn("script:3:", refused.err)
        for program, why in (("function map(doc) local x = nil + doc.fields.price end", "attempt to perform arithmetic"),
                             ("function map(doc) while true do end end", "took longer than 200 ms"),
                             ("function map(doc) local t = {} while true do t[#t + 1] = {} end end", "not enough memory")):
            failed = self.run_job(cluster, program + "\nfunction reduce() end", "--param", "timeout_ms=200" if "longer" in why else "timeout_ms=60000")
            self.assertNotEqual(failed.code, harness.OK, program)
            self.assertIn(why, failed.err)
        # Processor time is counted where it is spent: in the processes of the script.
        for shuffle in ("store", "direct"):
            greedy = self.run_job(cluster, "function map(doc)\n  for i = 1, 1000000 do end\nend\nfunction reduce() end", "--shuffle", shuffle,
                                  "--param", "timeout_ms=60000", "--set", "cpu_max=1")
            self.assertNotEqual(greedy.code, harness.OK)
            self.assertIn("cpu_max=1", greedy.err)
        # The processes are gone, and the cluster is as before.
        cluster.wait_healthy()
        self.assertEqual(self.run_job(cluster, MEAN).code, harness.OK)


if __name__ == "__main__":
    harness.main()
