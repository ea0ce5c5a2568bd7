"""Searches for ads by keywords."""

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional

from . import _core
from ._options import fill, mapping

if TYPE_CHECKING:
    from .client import Client


class SearchPlace(NamedTuple):
    """A place that an ad has won."""

    ad: str
    """The id of the ad's document."""
    advertiser: int
    keyword: str
    title: str
    matched: str
    """The words of the keyword."""
    bid_micros: int
    price_micros: int
    """What a click costs, in millionths of a unit of money."""
    quality_ppm: int


class SearchResult(NamedTuple):
    """The places of a search, best first."""

    places: List[SearchPlace]
    is_complete: bool
    """Whether all documents were searched in time."""
    missing: Optional[str]
    """Why some were not."""
    slices: int
    slices_searched: int
    keywords_matched: int
    seconds: float
    variants: List[str]


def search(client: "Client", query: str, context: Optional[Mapping[str, Any]], limit: int, timeout: Optional[float],
           session: bool) -> SearchResult:
    """Does what Client.search() says.

    >>> client.search("green tea").is_complete
    True
    """
    texts: Dict[str, str] = {name: str(value) for name, value in mapping("context", context or {}).items()}
    request = fill(_core.SearchRequest(), query=query, context=texts, limit=limit, timeout=timeout, session=session)
    members = _core.search(client._core, request)
    return SearchResult(**{**members, "places": [SearchPlace(**place) for place in members["places"]]})
