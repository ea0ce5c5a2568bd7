"""The types of console/page/lib/types.ts are those of gateway/http/openapi.yaml: an interface with a comment `openapi.yaml: NAME`, or
`NAME.member` for the object in a member, has only members of that schema.
"""

import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    print("SKIPPED: there is no python3-yaml", file=sys.stderr)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = yaml.safe_load((ROOT / "gateway/http/openapi.yaml").read_text())["components"]["schemas"]
TYPES = ROOT / "console/page/lib/types.ts"
INTERFACE = re.compile(r"^/\*\* openapi\.yaml: ([\w.]+) \*/\nexport interface (\w+) \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)


def resolve(schema):
    if "$ref" in schema:
        return resolve(SCHEMAS[schema["$ref"].split("/")[-1]])
    return resolve(schema["items"]) if schema.get("type") == "array" else schema


def main():
    faults = []
    interfaces = INTERFACE.findall(TYPES.read_text())
    if len(interfaces) < 25:
        faults.append(f"only {len(interfaces)} interfaces name their schema")
    for place, name, body in interfaces:
        schema, *members = place.split(".")
        if schema not in SCHEMAS:
            faults.append(f"{name}: openapi.yaml has no schema {schema}")
            continue
        found = resolve(SCHEMAS[schema])
        for member in members:
            found = resolve(found["properties"][member])
        for member in re.findall(r"^  (\w+)\??:", body, re.MULTILINE):
            if member not in found.get("properties", {}):
                faults.append(f"{name}: {place} has no member {member}")
    for fault in faults:
        print(f"console/page/lib/types.ts: {fault}")
    print(f"{len(interfaces)} interfaces, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
