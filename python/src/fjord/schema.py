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
from os import PathLike
from typing import (TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, ClassVar, Dict, Iterator, List, Mapping, NamedTuple,
                    Optional, Sequence, Set, Tuple, Type, TypeVar, Union, overload)

from . import _core
from ._options import listed, text
from .admin import Schema, _schema_text
from .documents import Document, Written
from .errors import UnknownType

if TYPE_CHECKING:
    from .aio import AsyncClient
    from .client import Client

T = TypeVar("T", bound="TypedDocument")
S = TypeVar("S", bound="TypedStruct")


class TypedStruct:
    """The base of classes that python() makes for structs."""

    _names: ClassVar[Mapping[str, str]] = {}
    """Names of attributes that are not those of their fields."""
    _shapes: ClassVar[Mapping[str, Any]] = {}
    """Where structs are inside of fields: a class, [shape] for arrays, {str: shape} for maps."""

    def fields(self) -> Dict[str, Any]:
        """Returns the fields that are set, as a dict.

        >>> Pet = schema.dataclass("pet", schemas="document pet { field name type string {} }")
        >>> Pet(id="id:zoo:pet::1", name="Rex").fields()
        {'name': 'Rex'}
        """
        values = ((one.name, getattr(self, one.name)) for one in dataclasses.fields(self))  # type: ignore[arg-type]
        return {self._names.get(name, name): _plain(value) for name, value in values
                if value is not None and name not in self._not_fields()}

    @classmethod
    def of(cls: Type[S], fields: Mapping[str, Any]) -> S:
        """Makes an object of a dict of fields. Fields that the class does not have are left out.

        >>> Pet = schema.dataclass("pet", schemas="document pet { struct mark { field hue type string {} } field mark type mark {} }")
        >>> Pet(id="id:zoo:pet::1", mark=Pet._shapes["mark"].of({"hue": "red"})).mark.hue
        'red'
        """
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
        """Makes an object of a document that was read.

        >>> Item = schema.dataclass("item", client=client)
        >>> Item.of_document(client.get("id:shop:item::1")).price
        3
        """
        made = cls(id=document.id, **cls._arguments(document))  # type: ignore[call-arg]
        made.version = document.version
        return made

    @overload
    @classmethod
    def get(cls: Type[T], client: "Client", id: str, **options: Any) -> T: ...
    @overload
    @classmethod
    def get(cls: Type[T], client: "AsyncClient", id: str, **options: Any) -> Awaitable[T]: ...
    @classmethod
    def get(cls: Type[T], client: Any, id: str, **options: Any) -> Any:
        """Reads a document. `options` are those of Client.get(). With an AsyncClient it is awaited, as put() is.

        >>> Item = schema.dataclass("item", client=client)
        >>> Item.get(client, "id:shop:item::1").name
        'tea'
        """
        found = client.get(id, **options)
        if isinstance(found, Document):
            return cls.of_document(found)

        async def later() -> T:
            return cls.of_document(await found)
        return later()

    @overload
    @classmethod
    def visit(cls: Type[T], client: "Client", selection: Optional[str] = None, **options: Any) -> Iterator[T]: ...
    @overload
    @classmethod
    def visit(cls: Type[T], client: "AsyncClient", selection: Optional[str] = None, **options: Any) -> AsyncIterator[T]: ...
    @classmethod
    def visit(cls: Type[T], client: Any, selection: Optional[str] = None, **options: Any) -> Any:
        """Reads all documents that a selection matches. `options` are those of Client.visit(). With an AsyncClient it is for
        `async for`.

        >>> Item = schema.dataclass("item", client=client)
        >>> [item.name for item in Item.visit(client, "item.price > 2")]
        ['tea']
        """
        options.setdefault("type", cls._type)
        documents = client.visit(selection, **options)
        if hasattr(documents, "__iter__"):
            return map(cls.of_document, documents)

        async def later() -> AsyncIterator[T]:
            async for document in documents:
                yield cls.of_document(document)
        return later()

    _type: ClassVar[str] = ""

    @overload
    def put(self, client: "Client", **options: Any) -> Written: ...
    @overload
    def put(self, client: "AsyncClient", **options: Any) -> Awaitable[Written]: ...
    def put(self, client: Any, **options: Any) -> Any:
        """Stores the document. `options` are those of Client.put().

        >>> Item = schema.dataclass("item", client=client)
        >>> Item(id="id:shop:item::1", name="green tea").put(client).existed
        True
        """
        written = client.put(self.id, self.fields(), **options)
        if isinstance(written, Written):
            self.version = written.version
            return written

        async def later() -> Written:
            done: Written = await written
            self.version = done.version
            return done
        return later()

    def row(self) -> Tuple[str, Dict[str, Any]]:
        """Returns the document as a row for Client.feed().

        >>> Item = schema.dataclass("item", client=client)
        >>> client.feed(Item(id=f"id:shop:item::{n}", price=n).row() for n in range(3)).ok
        3
        """
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


# Names that a class body uses: an attribute of such a name would hide it there.
_USED = {"str", "int", "float", "bool", "bytes"}


class _Writer:
    """Writes the source of the classes of one document type. Names that a schema may have begin with no "_" there."""

    def __init__(self, type: str) -> None:
        self._type = type
        self._sources: List[str] = []
        self._names: Dict[str, str] = {}
        """The classes of structs, by the names of these."""
        self._taken: Set[str] = set()
        self._document = self._new_class(type)

    def _new_class(self, name: str) -> str:
        made = "".join(part[:1].upper() + part[1:] for part in name.split("_")) or name
        while made in self._taken or keyword.iskeyword(made):
            made += "_"
        self._taken.add(made)
        return made

    def annotation(self, kind: Any) -> str:
        if isinstance(kind, str):
            return _SCALARS[kind]
        if kind[0] == "array":
            return f"_t.List[{self.annotation(kind[1])}]"
        if kind[0] == "weightedset":
            return f"_t.Dict[{self.annotation(kind[1])}, int]"
        if kind[0] == "map":
            return f"_t.Dict[{self.annotation(kind[1])}, {self.annotation(kind[2])}]"
        name: str = kind[1]
        if name not in self._names:
            self._names[name] = self._new_class(name)
            self._sources.append(self._class(self._names[name], "_TypedStruct", f"The struct {name}.", [], kind[2]))
        return self._names[name]

    def shape(self, kind: Any) -> Optional[str]:
        if isinstance(kind, str) or kind[0] == "weightedset":
            return None
        if kind[0] == "struct":
            return self._names[kind[1]]
        inner = self.shape(kind[-1])
        if inner is None:
            return None
        return f"[{inner}]" if kind[0] == "array" else f"{{str: {inner}}}"

    def _attributes(self, base: str, fields: Sequence[Tuple[str, Any]]) -> Dict[str, str]:
        """Returns the attribute of each field: the field's name where that is possible, else with "_" behind."""
        forbidden = _RESERVED | _USED | self._taken | ({"id", "version"} if base == "_TypedDocument" else set())
        used = {field for field, _ in fields}
        attributes = {}
        for field, _ in fields:
            attribute = field
            if keyword.iskeyword(field) or field in forbidden or field.startswith("_"):
                while attribute in used or attribute in forbidden:
                    attribute += "_"
                used.add(attribute)
            attributes[field] = attribute
        return attributes

    def _class(self, name: str, base: str, text: str, first: Sequence[str], fields: Sequence[Tuple[str, Any]]) -> str:
        annotations = {field: self.annotation(kind) for field, kind in fields}  # makes the classes of all structs
        attributes = self._attributes(base, fields)
        names = {attribute: field for field, attribute in attributes.items() if attribute != field}
        lines = [*first, *(f"{attributes[field]}: _t.Optional[{kind}] = None" for field, kind in annotations.items())]
        shapes = {attributes[field]: self.shape(kind) for field, kind in fields if self.shape(kind) is not None}
        if names:
            lines.append(f"_names: _t.ClassVar[_t.Mapping[str, str]] = {names!r}")
        if shapes:
            pairs = ", ".join(f"{attribute!r}: {shape}" for attribute, shape in shapes.items())
            lines.append(f"_shapes: _t.ClassVar[_t.Mapping[str, _t.Any]] = {{{pairs}}}")
        body = "\n".join(f"    {line}" for line in lines)
        return f'@_d.dataclass\nclass {name}({base}):\n    """{text}"""\n\n{body}\n'

    def source(self, fields: Sequence[Tuple[str, Any]]) -> str:
        made = self._class(self._document, "_TypedDocument", f"A document of the type {self._type}.", ["id: str"], fields)
        made += f"    version: _t.Optional[int] = None\n    _type: _t.ClassVar[str] = {self._type!r}\n"
        return ('"""Documents of Fjord, made by fjord.schema.python()."""\n\nimport dataclasses as _d\nimport typing as _t\n\n'
                "from fjord.schema import TypedDocument as _TypedDocument, TypedStruct as _TypedStruct\n\n\n"
                + "\n\n".join([*self._sources, made]))


_RESERVED = {"fields", "of", "of_document", "get", "visit", "put", "row"}


def _texts(client: Any, schemas: Union[Schema, Sequence[Schema], None]) -> List[str]:
    if schemas is None:
        if client is None:
            from . import Client
            with Client() as own:
                return own.admin.schemas()
        texts: List[str] = client.admin.schemas()
        return texts
    several = [schemas] if isinstance(schemas, (str, PathLike)) else listed("schemas", schemas, "the text or path of a schema, or a list of these")
    return [_schema_text(one) for one in several]


def python(type: str, *, client: Any = None, schemas: Union[Schema, Sequence[Schema], None] = None) -> str:
    """Returns the source of dataclasses for a document type, to be kept as a file that type checkers read.

    The schema is that of `client`, of texts or paths of `schemas`, or else of the cluster that FJORD_CLUSTER names.

    >>> print(schema.python("pet", schemas="document pet { field name type string {} }"))
    \"\"\"Documents of Fjord, made by fjord.schema.python().\"\"\"
    ...
    @_d.dataclass
    class Pet(_TypedDocument):
        \"\"\"A document of the type pet.\"\"\"
    <BLANKLINE>
        id: str
        name: _t.Optional[str] = None
        version: _t.Optional[int] = None
        _type: _t.ClassVar[str] = 'pet'
    <BLANKLINE>
    """
    types = _core.describe_types(_texts(client, schemas))
    if text("type", type) not in types:
        raise UnknownType(f"there is no document type {type!r}; there are: {', '.join(sorted(types)) or 'none'}")
    return _Writer(type).source(types[type])


def dataclass(type: str, *, client: Any = None, schemas: Union[Schema, Sequence[Schema], None] = None) -> Any:
    """Returns the class that python() writes.

    >>> Pet = schema.dataclass("pet", schemas="document pet { field name type string {} }")
    >>> Pet(id="id:zoo:pet::1", name="Rex").fields()
    {'name': 'Rex'}
    """
    members: Dict[str, Any] = {"__name__": f"fjord.schema.{type}"}
    exec(compile(python(type, client=client, schemas=schemas), f"<fjord.schema.python({type!r})>", "exec"), members)
    return next(one for one in members.values() if getattr(one, "_type", None) == type)


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
    """Returns a schema with a field for each column of a table, and what does not fit. `columns` is a table or schema of
    pyarrow, a data frame, or another object with __arrow_c_schema__ or __arrow_c_stream__.

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
    ["born: left out, because documents have no type for Arrow's date32: cast it to one that they have, such as int64 or string"]
    """
    return ArrowFit(*_core.sd_of_arrow_schema(columns, type))
