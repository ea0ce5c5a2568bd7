"""Clusters of real processes for tests.

    >>> from fjord.testing import LocalCluster
    >>> with LocalCluster(storage=3, schemas="document item { field price type int {} }") as mine:
    ...     client = mine.client()
    ...     written = client.put("id:shop:item::1", {"price": 3})
    ...     mine.kill("storage.2")
    ...     client.get("id:shop:item::1")["price"]
    3

pytest finds the fixture `fjord_cluster` by itself once the package is installed.
"""

from fjord.testing.local_cluster import ClusterError, LocalCluster, PartitionNotPermitted

__all__ = ["ClusterError", "LocalCluster", "PartitionNotPermitted"]
