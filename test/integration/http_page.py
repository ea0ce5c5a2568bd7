"""docs/http/reference.md, made from gateway/http/openapi.yaml; a test compares.

    python3 -B test/integration/http_page.py > docs/http/reference.md
"""

import pathlib
import sys

try:
    import yaml
except ImportError:
    print("skipped: there is no python3-yaml")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "gateway" / "http" / "openapi.yaml"
PAGE = ROOT / "docs" / "http" / "reference.md"
HEAD = """# Reference of the HTTP paths

Made from `gateway/http/openapi.yaml` by `test/integration/http_page.py`; a test compares. Each gateway serves that
description at `/openapi.yaml`, from which programs can make clients.

"""


def cell(text):
    return " ".join(str(text).split()).replace("|", "\\|")


class Page:
    def __init__(self, api):
        self.api = api
        self.is_request = False  # Only members of requests say whether they are required.

    def resolve(self, what):
        while "$ref" in what:
            _, _, group, name = what["$ref"].split("/")
            what = self.api["components"][group][name]
        return what

    def type_of(self, schema):
        """Returns the type in a few words, with a link if it has a section."""
        if "$ref" in schema:
            name = schema["$ref"].split("/")[-1]
            return f"[{name}](#{name.lower()})"
        if "enum" in schema:
            return ", ".join(f"`{value}`" for value in schema["enum"])
        kind = schema.get("type", "any value")
        if kind == "array":
            return "list of " + self.type_of(schema["items"])
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"object of {self.type_of(schema['additionalProperties'])}s by name"
        bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
        return " ".join([kind] + bounds) + (" or null" if schema.get("nullable") else "")

    def members(self, schema, prefix=""):
        """Returns the rows of a table of members, also of the objects in them that have no name."""
        rows = []
        for name, member in schema.get("properties", {}).items():
            notes = [member["description"]] if "description" in member else []
            if self.is_request and name in schema.get("required", []):
                notes.append("Required.")
            if "default" in member:
                notes.append(f"Default: {str(member['default']).lower()}.")
            rows.append(f"| `{prefix}{name}` | {cell(self.type_of(member))} | {cell(' '.join(notes))} |")
            inner = member.get("items", member)
            if "properties" in inner:
                rows += self.members(inner, f"{prefix}{name}.")
        return rows

    def table(self, schema):
        rows = self.members(schema)
        return ["| member | value | |", "|---|---|---|"] + rows + [""] if rows else []

    def body(self, title, content):
        lines = []
        for kind, media in content.items():
            schema = media["schema"]
            named = f": {self.type_of(schema)}" if "$ref" in schema else ""
            lines += [f"{title}, `{kind}`{named}", ""]
            if "$ref" not in schema:
                lines += self.table(schema)
        return lines

    def operation(self, path, method, shared, operation):
        lines = [f"### {method.upper()} {path}", "", operation["summary"]]
        if "description" in operation:
            lines += ["", operation["description"]]
        lines.append("")
        parameters = [self.resolve(one) for one in shared + operation.get("parameters", [])]
        if parameters:
            lines += ["| parameter | value | |", "|---|---|---|"]
            for one in parameters:
                notes = [one["description"]] + (["Required."] if one.get("required") and one["in"] == "query" else [])
                if "default" in one["schema"]:
                    notes.append(f"Default: {str(one['schema']['default']).lower()}.")
                place = " (path)" if one["in"] == "path" else ""
                lines.append(f"| `{one['name']}`{place} | {cell(self.type_of(one['schema']))} | {cell(' '.join(notes))} |")
            lines.append("")
        self.is_request = True
        if "requestBody" in operation:
            lines += self.body("Body", self.resolve(operation["requestBody"])["content"])
        self.is_request = False
        for status, answer in operation["responses"].items():
            if status != "default":
                answer = self.resolve(answer)
                lines += self.body(f"{status}: {answer['description'].rstrip('.')}", answer.get("content", {}))
        return lines

    def text(self):
        lines = [self.api["info"]["description"], ""]
        for tag in self.api["tags"]:
            lines += [f"## {tag['name']}", "", tag["description"], ""]
            for path, item in self.api["paths"].items():
                for method, operation in item.items():
                    if method != "parameters" and tag["name"] in operation["tags"]:
                        lines += self.operation(path, method, item.get("parameters", []), operation)
        lines += ["## Values", ""]
        for name, schema in self.api["components"]["schemas"].items():
            lines += [f"### {name}", ""] + ([schema["description"], ""] if "description" in schema else [])
            if "enum" in schema:
                lines += [self.type_of(schema), ""]
            self.is_request = schema.get("additionalProperties") is False
            lines += self.table(schema)
        return HEAD + "\n".join(lines).rstrip() + "\n"


def main():
    text = Page(yaml.safe_load(SOURCE.read_text())).text()
    if "--check" not in sys.argv:
        print(text, end="")
    elif text != PAGE.read_text():
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what test/integration/http_page.py prints")


if __name__ == "__main__":
    main()
