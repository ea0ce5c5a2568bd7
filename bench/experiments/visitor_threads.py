#!/usr/bin/env python3
"""How many visitors a storage node should run at once: the applications over 1,000 documents on one node, by the number of
visitors [VDS 2007, 6.3 and appendices B to D]."""

import json
import os
import random

import experiment
from experiment import harness

SCHEMA = "document place { field city type string { header } field text type string { body } }"
DOCUMENTS = 1000
ITERATIONS = 400_000
APPLICATIONS = {
    "citycount": ("citycount", 0),
    "heavycpu": ("heavycpu", ITERATIONS),
    "heavycpu, tripled": ("heavycpu", 3 * ITERATIONS),
    "heavycity": ("heavycity", ITERATIONS),
    "heavycity, tripled": ("heavycity", 3 * ITERATIONS),
}


def feed(cluster):
    chooser = random.Random(1)
    cities = [f"city {i}" for i in range(200)]
    lines = [json.dumps({"put": f"id:local:place::{i}", "fields": {"city": chooser.choice(cities), "text": "x" * 700}}) for i in range(DOCUMENTS)]
    cluster.must("feed", cluster.file("feed.jsonl", "\n".join(lines) + "\n"))


def measure(options):
    with harness.Cluster(storage=1, redundancy=1) as cluster:
        cluster.deploy(SCHEMA)
        feed(cluster)
        cluster.must("config", "set", "storage.visitors_max=64")
        for run in range(1 if options.quick else 3):
            for visitors in (1, 2, 5) if options.quick else (1, 2, 3, 4, 5, 6, 8, 12):
                for name, (application, iterations) in APPLICATIONS.items():
                    arguments = ["job", "run", application, "--type", "place", "--shuffle", "store", "--visitors-per-node", visitors]
                    arguments += ["--param", f"iterations={iterations}"] if iterations else []
                    arguments += ["--param", "field=city"] if "city" in application else []
                    job = cluster.must(*arguments).out.split()[-1]
                    ended = cluster.wait_for_job(job, ["done", "failed"], 600)
                    assert ended["phase"] == "done" and ended["documents_read"] == DOCUMENTS, ended
                    yield {"application": name, "visitors": visitors, "run": run, "seconds": ended["seconds"]}
                experiment.say(f"{visitors} visitors, run {run + 1}")


def show(rows, output):
    seconds = experiment.medians(rows, ["application", "visitors"], "seconds")
    visitors = sorted({key[1] for key in seconds})
    print(f"Seconds of a job, {os.cpu_count()} cores\n")
    experiment.table(["application"] + [f"{count} visitor{'s' if count > 1 else ''}" for count in visitors],
                     [[name] + [float(seconds[name, count]) for count in visitors] for name in APPLICATIONS])
    experiment.plot_lines(output / "visitor-threads.png",
                          {name: [(count, seconds[name, count]) for count in visitors] for name in APPLICATIONS},
                          "visitors at once", "seconds", "jobs over 1,000 documents on one node", log_x=False)


if __name__ == "__main__":
    experiment.run(__doc__, "visitor-threads", measure, show)
