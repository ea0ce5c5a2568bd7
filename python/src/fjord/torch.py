"""Documents as a data set of PyTorch. Importing this module imports torch."""

from typing import Any, Dict, Iterator, Optional, Sequence

import torch.utils.data  # type: ignore[import-not-found, unused-ignore]


class VisitDataset(torch.utils.data.IterableDataset):  # type: ignore[misc, unused-ignore]
    """The documents of a type as dicts of their fields, or as batches of columns.

    Each worker of a DataLoader makes a client of its own and reads one slice, so that together they give each document once.

        dataset = fjord.torch.VisitDataset("127.0.0.1:19110", type="listing", fields=["price", "area"])
        for row in torch.utils.data.DataLoader(dataset, batch_size=256, num_workers=2):
            ...

    `batches=True` gives the batches of Arrow as dicts of columns in place of rows; use it with `batch_size=None`.
    """

    def __init__(self, addresses: Optional[str] = None, selection: Optional[str] = None, *, type: Optional[str] = None,
                 fields: Optional[Sequence[str]] = None, batch_rows: int = 8192, batches: bool = False) -> None:
        super().__init__()
        self._addresses = addresses
        self._visit = {"selection": selection, "type": type, "fields": fields, "batch_rows": batch_rows}
        self._batches = batches

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        from . import Client

        worker = torch.utils.data.get_worker_info()
        part = (0, 1) if worker is None else (worker.id, worker.num_workers)
        with Client(self._addresses) as client:
            for batch in client.visit_arrow(slice=part, **self._visit):  # type: ignore[arg-type]
                if self._batches:
                    yield batch.to_pydict()
                else:
                    yield from batch.to_pylist()
