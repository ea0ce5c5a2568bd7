"""Fjord, a document store that computes where the documents are.

    >>> import fjord
    >>> client = fjord.Client("127.0.0.1:19110")
    >>> client.put("id:shop:item::1", {"name": "tea", "price": 3})
    Written(version=..., existed=...)
    >>> client.get("id:shop:item::1")["price"]
    3

`AsyncClient` has the same methods for asyncio. docs/python/README.md is the first page of the documentation.
"""

from typing import TYPE_CHECKING, Any, List

from .client import Client
from .documents import (BulkSummary, Change, Document, ExportSummary, FeedResult, FeedStats, ImportSummary, Removed,
                        RetryPolicy, Written)
from .errors import (AlreadyExists, Cancelled, ClientClosed, ConditionFailed, Corruption, DeadlineExceeded, Error,
                     ForkedProcess, InDoubt, InvalidArgument, InvalidField, InvalidId, InvalidRequest, InvalidSelection,
                     IoError, NoSpace, NotFound, NotImplementedByServer, NotReady, Throttled, TooLarge, Transient,
                     Unauthorized, Unavailable, UnknownType, WrongType)

if TYPE_CHECKING:
    from . import admin as admin, aggregate as aggregate, arrow as arrow, balance as balance, jobs as jobs, parquet as parquet
    from . import progress as progress, schema as schema, search as search, testing as testing, torch as torch, tune as tune
    from .aio import AsyncClient

__version__ = "0.1.0"

__all__ = [
    "AlreadyExists", "AsyncClient", "BulkSummary", "Cancelled", "Change", "Client", "ClientClosed", "ConditionFailed",
    "Corruption", "DeadlineExceeded", "Document", "Error", "ExportSummary", "FeedResult", "FeedStats", "ForkedProcess",
    "ImportSummary", "InDoubt", "InvalidArgument", "InvalidField", "InvalidId", "InvalidRequest", "InvalidSelection",
    "IoError", "NoSpace", "NotFound", "NotImplementedByServer", "NotReady", "Removed", "RetryPolicy", "Throttled", "TooLarge", "Transient",
    "Unauthorized", "Unavailable", "UnknownType", "Written", "WrongType",
]


_MODULES = ("admin", "aggregate", "arrow", "balance", "jobs", "parquet", "progress", "schema", "search", "testing", "torch",
            "tune")


def __getattr__(name: str) -> Any:
    # These take longer to import than everything else here; asyncio, too, which AsyncClient needs.
    if name == "AsyncClient":
        from .aio import AsyncClient
        return AsyncClient
    if name in _MODULES:
        from importlib import import_module
        return import_module(f"fjord.{name}")
    raise AttributeError(f"module 'fjord' has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__, *_MODULES})
