#!/usr/bin/env python3
"""Makes the C++ structs of the messages and their field lists from api/fjord.thrift.

    messages.py fjord.thrift <folder> <header>...

Writes each header, and calls.h with the lists of all requests and replies, to <folder>/include/fjord/rpc; and
message_fields.h (for the codec) and api_calls.h (for its tests) to <folder>/private. A file whose text would be the same
is left alone, so that nothing that includes it is compiled again. Errors: one line that names the line of the IDL.
"""

import pathlib
import sys

import idl

BASE_TYPES = {"bool": "bool", "i32": "std::int32_t", "i64": "std::int64_t", "string": "std::string",
              "binary": "std::string"}
HAND_CODED = {"Status"}  # A class with private members, which wire.h reads and writes.
NOTICE = "// Made by rpc/generate/messages.py from api/fjord.thrift, which is the file to change.\n"


def enumerator(name):
    """CLEAN_UP -> CleanUp."""
    return "".join(word.capitalize() for word in name.split("_"))


def comment(lines, indent=""):
    return "".join(f"{indent}/// {line}".rstrip() + "\n" for line in lines)


class Generator:
    def __init__(self, parsed):
        self.idl = parsed
        self.calls = {method.request: method for method in parsed.methods}

    def cpp_type(self, name):
        """The C++ type of a type of the IDL that is not a list."""
        if name in BASE_TYPES:
            return BASE_TYPES[name]
        return self.idl.declarations[name].annotations.get("fjord.type", name)

    def member_type(self, field):
        if field.element:
            return f"std::vector<{self.cpp_type(field.element)}>"
        is_value = field.type in BASE_TYPES or self.idl.declarations[field.type].kind != "struct"
        if is_value and field.default is None:
            return f"std::optional<{self.cpp_type(field.type)}>"
        return self.cpp_type(field.type)

    def initial(self, field):
        """What stands behind the `=` of a member."""
        declared = self.idl.declarations.get(field.type)
        if declared and declared.kind == "enum" and field.default is not None:
            enum, _, value = field.default.partition(".")
            if enum != field.type or value not in [one.name for one in declared.values]:
                raise idl.IdlError(f"line {field.line}: {field.default} is not a value of {field.type}")
            return f"{field.type}::{enumerator(value)}"
        if field.default in (None, "[]", '""') or self.cpp_type(field.type) == "BucketId":
            return "{}"
        if field.default.startswith("-") and "uint" in self.cpp_type(field.type):
            return f"static_cast<{self.cpp_type(field.type)}>({field.default})"
        return field.default

    def is_always_written(self, field):
        """Returns whether the default is not the zero of the type, so that a zero must travel."""
        declared = self.idl.declarations.get(field.type)
        if declared and declared.kind == "enum":
            return field.default != f"{field.type}.{declared.values[0].name}"
        return field.default not in (None, "[]", '""', "0", "false")

    def struct(self, struct):
        text = comment(struct.comment) + f"struct {struct.name} {{\n"
        if struct.name in self.calls:
            method = self.calls[struct.name]
            text = f"struct {method.reply};\n" + text
            text += f"  using Reply = {method.reply};\n  static constexpr const char* kName = \"{method.name}\";\n\n"
        for field in struct.fields:
            text += comment(field.comment, "  ")
            text += f"  {self.member_type(field)} {field.cpp_name} = {self.initial(field)};\n"
        return text + f"\n  friend bool operator==(const {struct.name}&, const {struct.name}&) = default;\n}};\n"

    def enum(self, enum):
        values = "".join(comment(value.comment, "  ") + f"  {enumerator(value.name)} = {value.number},\n"
                         for value in enum.values)
        return comment(enum.comment) + f"enum class {enum.name} : std::int32_t {{\n{values}}};\n"

    def includes(self, header, declarations):
        used = {name for one in declarations for field in one.fields for name in [field.element or field.type]}
        found = set()
        for declaration in (self.idl.declarations[name] for name in used if name not in BASE_TYPES):
            own = declaration.annotations.get("fjord.header")
            if own:
                found.add(own)
            elif declaration.kind != "typedef" and declaration.header != header:
                found.add(f"fjord/rpc/{declaration.header}")
        return "".join(f'#include "{name}"\n' for name in sorted(found))

    def header(self, name):
        """The text of the header `name` with all structs and enums of its sections."""
        here = [one for one in self.idl.declarations.values()
                if one.header == name and one.kind != "typedef" and "fjord.header" not in one.annotations]
        text = f"#pragma once\n\n{NOTICE}\n#include <cstdint>\n#include <optional>\n#include <string>\n#include <vector>\n\n"
        text += self.includes(name, here) + "\nnamespace fjord::rpc {\n"
        for one in here:
            text += "\n" + (self.struct(one) if one.kind == "struct" else self.enum(one))
        return text + "\n}  // namespace fjord::rpc\n"

    def list_of(self, kind, namespace=""):
        return ", ".join(namespace + getattr(method, kind) for method in self.idl.methods)

    def calls_header(self, headers):
        includes = "".join(f'#include "fjord/rpc/{name}"\n' for name in headers)
        return (f"#pragma once\n\n{NOTICE}\n#include <variant>\n\n{includes}\nnamespace fjord::rpc {{\n\n"
                "/// All requests. The order is not part of the wire format, because calls travel by name.\n"
                f"using Request = std::variant<{self.list_of('request')}>;\n"
                "/// The reply to the request of the same index.\n"
                f"using Reply = std::variant<{self.list_of('reply')}>;\n\n}}  // namespace fjord::rpc\n")

    def fields_header(self):
        text = f"#pragma once\n\n{NOTICE}\n#include \"fields_of.h\"\n#include \"fjord/rpc/calls.h\"\n"
        text += "\n/// The field lists of all messages: see fields_of.h.\nnamespace fjord::rpc {\n"
        for struct in self.idl.of_kind("struct"):
            if struct.name in HAND_CODED:
                continue
            arguments = "V& visit, M& m" if struct.fields else "V&, M&"
            text += f"\ntemplate <typename V, Is<{struct.name}> M>\nvoid fields({arguments}) {{\n"
            for field in sorted(struct.fields, key=lambda one: one.number):
                text += f"  visit{'.always' if self.is_always_written(field) else ''}({field.number}, m.{field.cpp_name});\n"
            text += "}\n"
        return text + "\n}  // namespace fjord::rpc\n"

    def api_calls_header(self):
        return (f"#pragma once\n\n{NOTICE}\n#include <fjord_types.h>\n#include <tuple>\n\nnamespace fjord::rpc {{\n\n"
                "/// The types that the Thrift compiler makes, in the order of Request and Reply.\n"
                f"using ApiRequests = std::tuple<{self.list_of('request', 'api::')}>;\n"
                f"using ApiReplies = std::tuple<{self.list_of('reply', 'api::')}>;\n\n}}  // namespace fjord::rpc\n")

    def files(self, headers):
        """Returns path -> text of all files. `headers`: those that the build expects."""
        for one in self.idl.declarations.values():
            if one.kind != "typedef" and one.header not in headers:
                raise idl.IdlError(f"line {one.line}: {one.name} belongs to no header of {' '.join(headers)}")
        result = {f"include/fjord/rpc/{name}": self.header(name) for name in headers}
        result["include/fjord/rpc/calls.h"] = self.calls_header(headers)
        result["private/message_fields.h"] = self.fields_header()
        result["private/api_calls.h"] = self.api_calls_header()
        return result


def main(source, folder, *headers):
    try:
        files = Generator(idl.parse(pathlib.Path(source).read_text())).files(headers)
    except idl.IdlError as error:
        return f"{source}: {error}"
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
