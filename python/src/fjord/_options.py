"""Arguments that both clients pass on to the C++ library."""

from os import environ
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, TypeVar, Union

from .errors import InvalidArgument, WrongType

Fields = Union[str, Sequence[str], None]

DEFAULT_ADDRESS = "127.0.0.1:19110"

_EXPECTED: Dict[str, str] = {
    "selection": "str", "type": "str", "fields": "list of str", "resume": "str", "visitor": "str", "mode": "str",
    "id_field": "str", "id_namespace": "str", "progress_file": "str", "priority": "str", "parameters": "dict of str",
    "ids_only": "bool", "include_removed": "bool", "snapshot": "bool", "all_types": "bool", "dry_run": "bool",
    "from_now": "bool", "is_feed": "bool", "ignore_unknown": "bool", "create_only": "bool", "convert_values": "bool", "slice": "a pair (index, count) of int", "since": "int", "until": "int",
    "slices": "int above 0", "buffer_bytes": "int above 0", "in_flight": "int above 0", "timeout": "a number of seconds",
    "attempt_timeout": "a number of seconds", "backoff_min": "a number of seconds", "backoff_max": "a number of seconds",
    "budget_percent": "int", "budget_per_second": "int", "budget_burst": "int", "time_limit": "a number of seconds", "no_progress_limit": "a number of seconds", "poll_interval": "a number of seconds",
    "period": "a number of seconds", "target": "a number of seconds", "scan_share": "a number from 0 to 1",
    "batch_rows": "int above 0", "batch_bytes": "int above 0", "version": "bool", "visitors_per_node": "int above 0",
    "buckets_per_visitor": "int above 0", "buckets_at_once": "int above 0", "id_column": "str", "query": "str",
    "context": "dict of str", "limit": "int above 0", "session": "bool", "group_by": "list of str", "aggregates": "list of str",
    "having": "str", "order_by": "list of str", "into": "str", "into_namespace": "str", "name": "str", "name_space": "str",
    "incremental": "bool", "settings": "dict of str", "output_namespace": "str", "output_buckets": "int above 0",
    "application": "str", "action": "str", "nodes": "list of str", "force": "bool", "reason": "str", "address": "str",
    "group": "str", "capacity": "str", "balance_to": "str", "controller": "str", "if_version": "int", "metrics": "list of str",
    "controllers": "dict of str", "periods": "int",
}

T = TypeVar("T")


def fill(options: T, **values: Any) -> T:
    """Sets those members of C++ options that are given."""
    for name, value in values.items():
        if value is None:
            continue
        try:
            setattr(options, name, value)
        except TypeError:
            raise WrongType(name, _EXPECTED[name], value) from None
    return options


def field_set(fields: Fields) -> str:
    """Returns "title,year" for names of fields; "" for all."""
    if fields is None:
        return ""
    if isinstance(fields, str):
        return fields
    return ",".join(field_list(fields))


def field_list(fields: Fields) -> "list[str]":
    """Returns the names of fields as a list; empty: all. No name stands for no field, only the id."""
    if fields is None or fields == "":
        return []
    if isinstance(fields, str):
        return [one.strip() for one in fields.split(",")]
    names = listed("fields", fields)
    for index, name in enumerate(names):
        if not isinstance(name, str):
            raise WrongType(f"fields[{index}]", "str", name)
    return names or ["[id]"]


def text(name: str, value: Any) -> str:
    """Returns an argument that has to be a text."""
    if not isinstance(value, str):
        raise WrongType(name, "str", value)
    return value


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Returns an argument that has to be a mapping of names."""
    if not isinstance(value, Mapping):
        raise WrongType(name, "a mapping of names", value)
    for key in value:
        if not isinstance(key, str):
            raise WrongType(f"a name in {name}", "str", key)
    return value


def listed(name: str, value: Any, expected: str = "a list of str") -> List[Any]:
    """Returns an argument that has to be a list. A text is none: its letters are not meant."""
    if not isinstance(value, (str, bytes)):
        try:
            return list(value)
        except TypeError:
            pass
    raise WrongType(name, expected, value)


def whole(name: str, value: Any) -> int:
    """Returns an argument that has to be a whole number from 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise WrongType(name, "int from 0", value)
    return value


def in_flight(max_inflight: Union[int, str]) -> Optional[int]:
    """Returns the number of writes in flight; None if the library chooses."""
    if max_inflight == "auto":
        return None
    if not isinstance(max_inflight, int) or isinstance(max_inflight, bool) or max_inflight < 1:
        raise WrongType("max_inflight", 'int above 0 or "auto"', max_inflight)
    return max_inflight


def seconds(timeout: Any, name: str = "timeout") -> float:
    """Returns a number of seconds above 0."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise WrongType(name, "a number of seconds", timeout)
    return float(timeout)


def addresses_of(addresses: Union[str, Iterable[str], None]) -> str:
    """Returns "host:port,host:port"; without addresses those of the environment variable FJORD_CLUSTER."""
    if addresses is None:
        return environ.get("FJORD_CLUSTER", DEFAULT_ADDRESS)
    if isinstance(addresses, str):
        return addresses
    try:
        names = list(addresses)
    except TypeError:
        raise WrongType("addresses", "str or list of str", addresses) from None
    for index, name in enumerate(names):
        if not isinstance(name, str):
            raise WrongType(f"addresses[{index}]", "str", name)
    return ",".join(names)


def needs_scope(type: Optional[str], all_types: bool) -> None:
    """A change of many documents names what it changes."""
    if type is None and not all_types:
        raise InvalidArgument("type: name the type of the documents to change, or say all_types=True")
