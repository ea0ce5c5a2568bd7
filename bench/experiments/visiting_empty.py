#!/usr/bin/env python3
"""What a bucket costs a visit: visits of clusters without documents, by the number of buckets [VDS 2007, 5.4]."""

import experiment
from experiment import harness

SCHEMA = "document item { field text type string { body } }"


def measure(options):
    for bits in (4, 10, 16) if options.quick else range(4, 17, 2):
        with harness.Cluster(storage=2, redundancy=1, cluster_settings=f"  distribution_bits: {bits}\n") as cluster:
            cluster.deploy(SCHEMA)
            cluster.wait_healthy()
            for _ in range(1 if options.quick else 5):
                seconds, cpu, visit = experiment.timed(lambda: cluster.must("visit", "--count", "-o", "json"))
                assert visit.json() == 0, visit
                yield {"bits": bits, "buckets": 1 << bits, "seconds": seconds, "client_cpu": cpu}
            experiment.say(f"{1 << bits} buckets: {seconds:.3f} s")


def show(rows, output):
    seconds = experiment.medians(rows, ["buckets"], "seconds")
    cpu = experiment.medians(rows, ["buckets"], "client_cpu")
    least = min(seconds)
    experiment.table(["buckets", "visit s", "CPU of the client s", "µs a bucket above the smallest"],
                     [(key[0], seconds[key], cpu[key],
                       "" if key == least else (seconds[key] - seconds[least]) / (key[0] - least[0]) * 1e6) for key in sorted(seconds)])
    experiment.plot_lines(output / "visiting-empty.png", {"time": [(key[0], value) for key, value in seconds.items()],
                                                          "CPU of the client": [(key[0], value) for key, value in cpu.items()]},
                          "buckets", "seconds", "a visit that finds nothing", log_y=True)


if __name__ == "__main__":
    experiment.run(__doc__, "visiting-empty", measure, show)
