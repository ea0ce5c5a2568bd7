"""schemathesis (PyPI) drives every operation of openapi.yaml against a live cluster for 90 seconds: each answer is one that the
description has, no request makes the gateway fail, and each kind of change by selection succeeds at least once. Skipped with a message
where PyPI cannot be reached."""

import collections
import json
import os
import re
import subprocess
import unittest

from http_clients import CLIENTS, SCHEMATHESIS, python_folder
from http_documents import HttpCluster

SECONDS = 90


def statuses_of(report):
    """Returns the status codes of each operation, such as "GET /jobs/v1", in a report of schemathesis."""
    statuses = collections.defaultdict(set)
    with open(report, encoding="utf-8") as lines:
        for line in lines:
            recorder = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
            for exchange in (recorder.get("interactions") or {}).values():
                if exchange.get("response"):
                    statuses[recorder["label"]].add(exchange["response"]["status_code"])
    return statuses


class OpenApiTest(HttpCluster):
    def test_every_operation(self):
        programs = python_folder(SCHEMATHESIS)
        for i in range(20):
            self.must(200, "POST", f"/document/v1/shop/item/docid/{i}", {"fields": {"sold": i}})
        folder = self.cluster.folder
        report = folder / "report.ndjson"
        done = subprocess.run(
            [programs / "st", "run", f"http://127.0.0.1:{self.port}/openapi.yaml", "--max-time", str(SECONDS), "--seed", "1",
             "--phases", "examples,coverage,fuzzing", "--continue-on-failure", "--max-examples", "20", "--request-timeout", "30",
             "--suppress-health-check", "all", "--report", "ndjson", "--report-ndjson-path", report, "--no-color", "--checks",
             "status_code_conformance,content_type_conformance,response_schema_conformance,errors_say_what_is_wrong"],
            env={**os.environ, "SCHEMATHESIS_HOOKS": str(CLIENTS / "schemathesis_hooks.py")}, cwd=folder, capture_output=True,
            text=True, timeout=3 * SECONDS + 60, check=False)
        self.assertEqual(done.returncode, 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}")
        answered = statuses_of(report)
        changes = {name for name in answered if re.fullmatch(r"(POST|PUT|DELETE) /document/v1/(.*/)?", name)}
        self.assertEqual(len(changes), 11, "changes by selection that were asked for")
        self.assertEqual([], sorted(name for name in changes if 200 not in answered[name]), "changes by selection that never succeeded")
        self.cluster.wait_healthy()
        self.http = self.connect()  # The other connection was idle for too long.
        self.assertEqual(self.must(200, "GET", "/state/v1/health")["status"], {"code": "up"})


if __name__ == "__main__":
    unittest.main()
