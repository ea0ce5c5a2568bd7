"""Prints what Prometheus has to scrape, for its `file_sd_configs`, from the configuration file of a cluster.

    python3 -B monitoring/targets.py cluster.yaml > targets.json

Each target has the labels `process`, such as storage.2, and `role`, by which the boards and the alert rules tell them apart. A
process without a line `http` has no metrics, which is said on standard error. Needs nothing but PyYAML.
"""

import json
import sys

import yaml

SECTIONS = {"fleetcontroller": "fleetcontroller", "fleet_controllers": "fleetcontroller", "distributors": "distributor",
            "storage": "storage", "gateways": "gateway"}


def targets(config):
    """Returns (process, role, address or None) of each process of a configuration."""
    found = []
    for section, role in SECTIONS.items():
        listed = config.get(section) or []
        if isinstance(listed, dict):
            # With `fleet_controllers`, the section `fleetcontroller` has what is common to them, and no address.
            listed = [listed] if "address" in listed else []
        for position, one in enumerate(listed):
            address = one.get("address") if role == "gateway" else one.get("http")
            found.append((f"{role}.{one.get('index', position)}", role, address))
    return found


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        found = targets(yaml.safe_load(file))
    for process, _, address in found:
        if not address:
            print(f"{process} has no line `http`, so it has no metrics", file=sys.stderr)
    print(json.dumps([{"targets": [address], "labels": {"process": process, "role": role}} for process, role, address in found if address],
                     indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
