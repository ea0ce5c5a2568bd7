"""Reads the part of Thrift's interface language that api/fjord.thrift uses, and keeps the comments.

A comment /** ... */ belongs to the declaration, field or value that follows it. A comment `// Title (C++: x.h)` names the
header of the structs and enums below it.
"""

import re
from dataclasses import dataclass, field

TOKEN = re.compile(r"""
    (?P<space>\s+|/\*(?!\*)[\s\S]*?\*/)
  | (?P<comment>/\*\*[\s\S]*?\*/)
  | (?P<line>(?://|\#)[^\n]*)
  | (?P<word>[A-Za-z_][\w.]*)
  | (?P<number>-?\d+)
  | (?P<string>"[^"\n]*"|'[^'\n]*')
  | (?P<mark>[{}()<>\[\]:=,;])""", re.VERBOSE)
HEADING = re.compile(r"//.*\(C\+\+: (\w+\.h)\)$")


class IdlError(Exception):
    """The text is not in the language, or breaks a rule of api/README.md. The message names the line."""


@dataclass
class Field:
    number: int
    type: str  # "list<X>" for a list.
    name: str
    default: str | None
    comment: list[str]
    line: int
    annotations: dict[str, str]

    @property
    def cpp_name(self):
        """The member's name in C++: another one where Thrift does not accept it, such as `set`."""
        return self.annotations.get("fjord.name", self.name)

    @property
    def element(self):
        """The type of an element of a list; None for other fields."""
        return self.type[5:-1] if self.type.startswith("list<") else None


@dataclass
class Value:
    """One value of an enum."""
    name: str
    number: int
    comment: list[str]


@dataclass
class Declaration:
    """A struct (with fields), an enum (with values) or a typedef (with a base type)."""
    kind: str
    name: str
    header: str
    comment: list[str]
    line: int
    fields: list[Field] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    base: str = ""
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass
class Method:
    name: str
    request: str
    reply: str


@dataclass
class Idl:
    declarations: dict[str, Declaration]
    methods: list[Method]  # A method of several services is listed once.

    def of_kind(self, kind):
        return [declaration for declaration in self.declarations.values() if declaration.kind == kind]


def comment_lines(token):
    """The text of a comment /** ... */, line by line, without its stars."""
    lines = [re.sub(r"^\s*\*? {0,2}", "", line).rstrip() for line in token[3:-2].split("\n")]
    return [line for line in lines if line]


class Parser:
    def __init__(self, text):
        self.declarations = {}
        self.methods = {}
        self.header = ""
        self.tokens = list(self.read_tokens(text))
        self.position = 0

    def read_tokens(self, text):
        """Yields (kind, text, line, comment lines before it), at the end a token of the kind "end"."""
        at, line, comment = 0, 1, []
        while at < len(text):
            match = TOKEN.match(text, at)
            if not match:
                raise IdlError(f"line {line}: unexpected {text[at]!r}")
            kind, token = match.lastgroup, match.group()
            if kind == "comment":
                comment = comment_lines(token)
            elif kind == "line" and HEADING.match(token):
                yield "heading", HEADING.match(token).group(1), line, []
            elif kind not in ("space", "line"):
                yield kind, token, line, comment
                comment = []
            at = match.end()
            line += token.count("\n")
        yield "end", "the end", line, []

    def fail(self, why):
        raise IdlError(f"line {self.tokens[self.position][2]}: {why}")

    def peek(self):
        return self.tokens[self.position][1]

    def take(self, kind=None, text=None):
        token = self.tokens[self.position]
        if (kind and token[0] != kind) or (text and token[1] != text):
            self.fail(f"expected {text or kind}, found {token[1]}")
        self.position += 1
        return token

    def accept(self, text):
        if self.peek() != text:
            return False
        self.position += 1
        return True

    def parse(self):
        while self.tokens[self.position][0] != "end":
            kind, word, line, comment = self.take()
            if kind == "heading":
                self.header = word
            elif word == "namespace":
                self.take("word"), self.take("word")
            elif word == "service":
                self.service()
            elif word in ("struct", "enum", "typedef"):
                base = self.type() if word == "typedef" else ""
                self.declaration(Declaration(word, self.take("word")[1], self.header, comment, line, base=base))
            else:
                self.position -= 1
                self.fail(f"expected a declaration, found {word}")
        return Idl(self.declarations, list(self.methods.values()))

    def declaration(self, declaration):
        if declaration.name in self.declarations:
            self.fail(f"{declaration.name} is declared twice")
        if declaration.kind != "typedef":
            self.take(text="{")
            while not self.accept("}"):
                self.value(declaration) if declaration.kind == "enum" else self.field(declaration)
        declaration.annotations = self.annotations()
        self.declarations[declaration.name] = declaration

    def value(self, enum):
        _, name, _, comment = self.take("word")
        self.take(text="=")
        enum.values.append(Value(name, int(self.take("number")[1]), comment))
        self.accept(",")

    def field(self, struct):
        _, number, line, comment = self.take("number")
        self.take(text=":")
        self.take(text="optional")
        type_name, name = self.type(), self.take("word")[1]
        default = self.constant() if self.accept("=") else None
        annotations = self.annotations()
        self.accept(",")
        if any(int(number) == other.number or name == other.name for other in struct.fields):
            raise IdlError(f"line {line}: {struct.name} has the number {number} or the name {name} twice")
        struct.fields.append(Field(int(number), type_name, name, default, comment, line, annotations))

    def type(self):
        name = self.take("word")[1]
        if name != "list":
            return self.known(name)
        self.take(text="<")
        element = self.known(self.take("word")[1])
        self.take(text=">")
        return f"list<{element}>"

    def known(self, name):
        if name not in ("bool", "i32", "i64", "string", "binary") and name not in self.declarations:
            self.position -= 1
            self.fail(f"the type {name} is not declared above")
        return name

    def constant(self):
        if self.accept("["):
            self.take(text="]")
            return "[]"
        return self.take()[1]

    def annotations(self):
        result = {}
        if self.accept("("):
            while not self.accept(")"):
                key = self.take("word")[1]
                self.take(text="=")
                result[key] = self.take("string")[1][1:-1]
                self.accept(",")
        return result

    def service(self):
        self.take("word"), self.take(text="{")
        while not self.accept("}"):
            reply, name = self.known(self.take("word")[1]), self.take("word")[1]
            self.take(text="("), self.take(text="1"), self.take(text=":")
            request = self.known(self.take("word")[1])
            self.take("word"), self.take(text=")")
            self.accept(",")
            method = Method(name, request, reply)
            if self.methods.setdefault(name, method) != method:
                self.fail(f"{name} differs from the method of that name in another service")


def parse(text):
    """Returns the Idl of a text. Errors: IdlError."""
    return Parser(text).parse()
