"""Drives the client that openapi-python-client has made as `fjord_http`, with the address of a gateway as argument. Ends with an error
if an answer is another than expected."""

import sys

from fjord_http import Client
from fjord_http.api.aggregation import aggregate
from fjord_http.api.cluster import get_cluster_status
from fjord_http.api.documents import get_document, put_document, remove_document, update_document, visit_type
from fjord_http.models import AggregateBody, Error, Fields, PutDocumentBody, UpdateDocumentBody

PLACE = ("generated", "item")


def values(**fields):
    made = Fields()
    made.additional_properties = fields
    return made


def main(url):
    with Client(base_url=url) as client:
        written = put_document.sync(*PLACE, "a b/ø", client=client, body=PutDocumentBody(fields=values(title="ø", sold=2**53 + 1)))
        assert written.id == "id:generated:item::a b/ø", written
        update_document.sync(*PLACE, "a b/ø", client=client, body=UpdateDocumentBody(fields=values(sold={"increment": 1})))
        found = get_document.sync(*PLACE, "a b/ø", client=client)
        assert found.fields.to_dict() == {"title": "ø", "sold": 2**53 + 2}, found
        chunk = visit_type.sync(*PLACE, client=client)
        assert [one.fields["sold"] for one in chunk.documents] == [2**53 + 2], chunk
        sums = aggregate.sync(client=client, body=AggregateBody(type_="item", selection="id.namespace == 'generated'",
                                                                aggregates=["count()", "sum(sold)"]))
        assert sums.rows == [[1, 2**53 + 2]], sums
        assert get_cluster_status.sync(client=client).nodes, "a cluster has nodes"
        wrong = put_document.sync(*PLACE, "x", client=client, body=PutDocumentBody(fields=values(absent=1)))
        assert isinstance(wrong, Error) and "absent" in wrong.message, wrong
        remove_document.sync(*PLACE, "a b/ø", client=client)
        assert get_document.sync_detailed(*PLACE, "a b/ø", client=client).status_code == 404


main(sys.argv[1])
