"""The metrics of a running cluster: each is on docs/reference/metrics.md, as it is shown."""

import json
import re
import unittest
import urllib.request

import harness
import metrics_page

SCHEMA = """document item {
  field number type int { header }
}
"""


def shown_at(address):
    """Returns kind, meaning and label names of the metrics of a process, by name."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    found = {}
    for line in lines:
        if line.startswith("# HELP "):
            name, meaning = line[len("# HELP "):].split(" ", 1)
            found.setdefault(name, {"labels": set()})["meaning"] = meaning
        elif line.startswith("# TYPE "):
            name, kind = line[len("# TYPE "):].split(" ")
            found.setdefault(name, {"labels": set()})["kind"] = kind
        elif line and not line.startswith("#"):
            name = re.match(r"\w+", line).group()
            metric = found.get(name) or found[re.sub(r"_(bucket|sum|count)$", "", name)]
            metric["labels"].update(set(re.findall(r'(\w+)="', line)) - {"le"})
    return found


class MetricsTest(unittest.TestCase):
    def test_the_page_is_what_the_sources_say(self):
        self.assertEqual(metrics_page.PAGE.read_text(), metrics_page.page(),
                         f"to bring the page up to date: {metrics_page.__doc__.splitlines()[2].strip()}")

    def test_every_metric_of_a_cluster_is_on_the_page(self):
        known = metrics_page.metrics()
        with harness.Cluster(storage=2, distributors=1, redundancy=2, gateways=1) as cluster:
            cluster.deploy(SCHEMA)
            lines = [json.dumps({"put": f"id:m:item::{i}", "fields": {"number": i}}) for i in range(200)]
            cluster.must("feed", cluster.file("feed.jsonl", "\n".join(lines) + "\n"))
            cluster.must("remove", "id:m:item::7")
            cluster.fjord("put", "id:m:item::8", "-", "--condition", "item.number == 1", stdin="{}")
            self.assertEqual(len(cluster.must("visit", "--type", "item").json_lines()), 199)
            cluster.must("job", "run", "citycount", "--type", "item", "--param", "field=number", "--shuffle", "store", "--wait")
            cluster.must("aggregate", "--type", "item", "--incremental", "count()")
            shown = {}
            for process in json.loads(cluster.local("status", "-o", "json").out):
                shown.update(shown_at(process["http"]))
        ours = {name: metric for name, metric in shown.items() if name.startswith("fjord_")}
        self.assertGreater(len(ours), 80)
        for name, metric in sorted(ours.items()):
            with self.subTest(metric=name):
                self.assertIn(name, known)
                self.assertEqual((metric["kind"], metric["meaning"]), (known[name].kind, known[name].meaning))
                self.assertLessEqual(metric["labels"], set(known[name].labels))


if __name__ == "__main__":
    harness.main()
