"""Document types as classes of Python and as schemas of Arrow.

    >>> from fjord import schema
    >>> Item = schema.dataclass("item", client=client)
    >>> item = Item.get(client, "id:shop:item::1")
    >>> item.price
    3
    >>> item.price = 4
    >>> item.put(client).existed
    True
"""

import dataclasses
import keyword
from os import PathLike, fspath
from pathlib import Path
from typing import (TYPE_CHECKING, Any, Callable, ClassVar, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set,
                    Tuple, Type, TypeVar, Union)

from . import _core
from .documents import Document, Written
from .errors import UnknownType

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T", bound="TypedDocument")
S = TypeVar("S", bound="TypedStruct")
Schema = Union[str, "PathLike[str]"]


class TypedStruct:
    """The base of classes that python() makes for structs."""

    _names: ClassVar[Mapping[str, str]] = {}
    """Names of attributes that are not those of their fields."""
    _shapes: ClassVar[Mapping[str, Any]] = {}
    """Where structs are inside of fields: a class, [shape] for arrays, {str: shape} for maps."""

    def fields(self) -> Dict[str, Any]:
        """Returns the fields that are set, as a dict."""
        values = ((one.name, getattr(self, one.name)) for one in dataclasses.fields(self))  # type: ignore[arg-type]
        return {self._names.get(name, name): _plain(value) for name, value in values
                if value is not None and name not in self._not_fields()}

    @classmethod
    def of(cls: Type[S], fields: Mapping[str, Any]) -> S:
        """Makes an object of a dict of fields. Fields that the class does not have are left out."""
        return cls(**cls._arguments(fields))

    @classmethod
    def _arguments(cls, fields: Mapping[str, Any]) -> Dict[str, Any]:
        arguments = {}
        for one in dataclasses.fields(cls):  # type: ignore[arg-type]
            name = cls._names.get(one.name, one.name)
            if one.name not in cls._not_fields() and name in fields:
                arguments[one.name] = _typed(fields[name], cls._shapes.get(one.name))
        return arguments

    @classmethod
    def _not_fields(cls) -> Tuple[str, ...]:
        return ()


class TypedDocument(TypedStruct):
    """The base of classes that python() makes for document types. `id` is the document's id, `version` that of the document
    that was read."""

    id: str
    version: Optional[int]

    @classmethod
    def _not_fields(cls) -> Tuple[str, ...]:
        return ("id", "version")

    @classmethod
    def of_document(cls: Type[T], document: Document) -> T:
        """Makes an object of a document that was read."""
        made = cls(id=document.id, **cls._arguments(document))  # type: ignore[call-arg]
        made.version = document.version
        return made

    @classmethod
    def get(cls: Type[T], client: Any, id: str, **options: Any) -> T:
        """Reads a document. `options` are those of Client.get()."""
        return cls.of_document(client.get(id, **options))

    @classmethod
    def visit(cls: Type[T], client: Any, selection: Optional[str] = None, **options: Any) -> Iterator[T]:
        """Reads all documents that a selection matches. `options` are those of Client.visit()."""
        options.setdefault("type", cls._type)
        for document in client.visit(selection, **options):
            yield cls.of_document(document)

    _type: ClassVar[str] = ""

    def put(self, client: Any, **options: Any) -> Written:
        """Stores the document. `options` are those of Client.put()."""
        written: Written = client.put(self.id, self.fields(), **options)
        self.version = written.version
        return written

    def row(self) -> Tuple[str, Dict[str, Any]]:
        """Returns the document as a row for Client.feed()."""
        return self.id, self.fields()


def _plain(value: Any) -> Any:
    if isinstance(value, TypedStruct):
        return value.fields()
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value


def _typed(value: Any, shape: Any) -> Any:
    if shape is None or value is None:
        return value
    if isinstance(shape, list):
        return [_typed(one, shape[0]) for one in value]
    if isinstance(shape, dict):
        return {key: _typed(one, shape[str]) for key, one in value.items()}
    return shape.of(value)


# --- Classes from schemas

_SCALARS = {"string": "str", "int": "int", "long": "int", "byte": "int", "float": "float", "double": "float", "bool": "bool",
            "raw": "bytes"}


class _Writer:
    """Writes the source of the classes of one document type."""

    def __init__(self) -> None:
        self._classes: List[str] = []
        self._made: Set[str] = set()

    def annotation(self, kind: Any) -> str:
        if isinstance(kind, str):
            return _SCALARS[kind]
        if kind[0] == "array":
            return f"List[{self.annotation(kind[1])}]"
        if kind[0] == "weightedset":
            return f"Dict[{self.annotation(kind[1])}, int]"
        if kind[0] == "map":
            return f"Dict[{self.annotation(kind[1])}, {self.annotation(kind[2])}]"
        name = _class_name(kind[1])
        if name not in self._made:
            self._made.add(name)
            self._classes.append(self._class(name, "TypedStruct", f"The struct {kind[1]}.", [], kind[2]))
        return name

    def shape(self, kind: Any) -> Optional[str]:
        if isinstance(kind, str) or kind[0] == "weightedset":
            return None
        if kind[0] == "struct":
            return _class_name(kind[1])
        inner = self.shape(kind[-1])
        if inner is None:
            return None
        return f"[{inner}]" if kind[0] == "array" else f"{{str: {inner}}}"

    def _class(self, name: str, base: str, text: str, first: Sequence[str], fields: Sequence[Tuple[str, Any]]) -> str:
        taken = {"id", "version"} if base == "TypedDocument" else set()
        names, shapes, lines = {}, {}, list(first)
        for field, kind in fields:
            attribute = _attribute(field, taken)
            if attribute != field:
                names[attribute] = field
            lines.append(f"{attribute}: Optional[{self.annotation(kind)}] = None")
            shape = self.shape(kind)
            if shape is not None:
                shapes[attribute] = shape
        if names:
            lines.append(f"_names: ClassVar[Mapping[str, str]] = {names!r}")
        if shapes:
            pairs = ", ".join(f"{attribute!r}: {shape}" for attribute, shape in shapes.items())
            lines.append(f"_shapes: ClassVar[Mapping[str, Any]] = {{{pairs}}}")
        body = "\n".join(f"    {line}" for line in lines)
        return f'@dataclass\nclass {name}({base}):\n    """{text}"""\n\n{body}\n'

    def document(self, type: str, fields: Sequence[Tuple[str, Any]]) -> str:
        made = self._class(_class_name(type), "TypedDocument", f"A document of the type {type}.", ["id: str"],
                           fields)
        made += f"    version: Optional[int] = None\n    _type: ClassVar[str] = {type!r}\n"
        return ('"""Documents of Fjord, made by fjord.schema.python()."""\n\nfrom dataclasses import dataclass\n'
                "from typing import Any, ClassVar, Dict, List, Mapping, Optional\n\n"
                "from fjord.schema import TypedDocument, TypedStruct\n\n\n" + "\n\n".join([*self._classes, made]))


_RESERVED = {"fields", "of", "of_document", "get", "visit", "put", "row"}


def _attribute(field: str, taken: Set[str]) -> str:
    return field + "_" if keyword.iskeyword(field) or field in taken or field in _RESERVED or field.startswith("_") else field


def _class_name(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) or name


def _texts(client: Any, schemas: Union[Schema, Sequence[Schema], None]) -> List[str]:
    if schemas is None:
        if client is None:
            from . import Client
            with Client() as own:
                return own.admin.schemas()
        texts: List[str] = client.admin.schemas()
        return texts
    several = [schemas] if isinstance(schemas, (str, PathLike)) else schemas
    return [one if isinstance(one, str) and "{" in one else Path(fspath(one)).read_text(encoding="utf-8") for one in several]


def python(type: str, *, client: Any = None, schemas: Union[Schema, Sequence[Schema], None] = None) -> str:
    """Returns the source of dataclasses for a document type, to be kept as a file that type checkers read.

    The schema is that of `client`, of texts or paths of `schemas`, or else of the cluster that FJORD_CLUSTER names.

    >>> print(schema.python("pet", schemas="document pet { field name type string {} }"))
    \"\"\"Documents of Fjord, made by fjord.schema.python().\"\"\"
    ...
    @dataclass
    class Pet(TypedDocument):
        \"\"\"A document of the type pet.\"\"\"
    <BLANKLINE>
        id: str
        name: Optional[str] = None
        version: Optional[int] = None
        _type: ClassVar[str] = 'pet'
    <BLANKLINE>
    """
    types = _core.describe_types(_texts(client, schemas))
    if type not in types:
        raise UnknownType(f"there is no document type {type!r}; there are: {', '.join(sorted(types)) or 'none'}")
    return _Writer().document(type, types[type])


def dataclass(type: str, *, client: Any = None, schemas: Union[Schema, Sequence[Schema], None] = None) -> Any:
    """Returns the class that python() writes.

    >>> Pet = schema.dataclass("pet", schemas="document pet { field name type string {} }")
    >>> Pet(id="id:zoo:pet::1", name="Rex").fields()
    {'name': 'Rex'}
    """
    members: Dict[str, Any] = {"__name__": f"fjord.schema.{type}"}
    exec(compile(python(type, client=client, schemas=schemas), f"<fjord.schema.python({type!r})>", "exec"), members)
    return members[_class_name(type)]


# --- Arrow

class ArrowSchema:
    """The columns of a document type. pyarrow.schema() and other packages read it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __arrow_c_schema__(self) -> Any:
        """Returns the schema of the Arrow C data interface."""
        return self._make()


class ArrowFit(NamedTuple):
    """A document type for a table."""

    sd: str
    """The text for Admin.deploy_schemas()."""
    problems: List[str]
    """Columns that were left out or lose something, one line for each."""


def to_arrow(type: str, *, client: Any = None, schemas: Union[Schema, Sequence[Schema], None] = None) -> ArrowSchema:
    """Returns the columns that Client.visit_arrow() gives for a type.

    >>> import pyarrow
    >>> pyarrow.schema(schema.to_arrow("item", client=client)).names[:2]
    ['_id', 'name']
    """
    texts = _texts(client, schemas)
    return ArrowSchema(lambda: _core.arrow_schema_of_sd(texts, type))


def from_arrow(columns: Any, type: str) -> ArrowFit:
    """Returns a schema with a field for each column of a table, and what does not fit. `columns` is a schema of pyarrow or
    another object with __arrow_c_schema__.

    >>> import pyarrow
    >>> fit = schema.from_arrow(pyarrow.schema({"name": pyarrow.string(), "born": pyarrow.date32()}), "pet")
    >>> print(fit.sd)
    schema pet {
      document pet {
        field name type string {}
      }
    }
    <BLANKLINE>
    >>> fit.problems
    ['born: left out, because documents have no type for Arrow\\'s "tdD": cast it to one that they have, such as int64 or string']
    """
    return ArrowFit(*_core.sd_of_arrow_schema(columns, type))
