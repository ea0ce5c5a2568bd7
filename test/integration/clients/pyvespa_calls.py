"""Drives pyvespa, with the address of a gateway as argument. Ends with an error if an answer is another than expected."""

import asyncio
import sys

from vespa.application import Vespa

PLACE = {"schema": "item", "namespace": "py"}


def check(response, status):
    assert response.status_code == status, (response.status_code, response.json)
    return response.json


def single_documents(app):
    check(app.feed_data_point(data_id="a/b c+d ø", fields={"title": "x", "sold": 1}, **PLACE), 200)
    assert check(app.get_data(data_id="a/b c+d ø", **PLACE), 200)["fields"] == {"title": "x", "sold": 1}
    check(app.update_data(data_id="a/b c+d ø", fields={"sold": 2}, **PLACE), 200)
    check(app.update_data(data_id="made", fields={"sold": 7}, create=True, **PLACE), 200)
    check(app.update_data(data_id="missing", fields={"sold": 7}, create=False, **PLACE), 200)
    assert check(app.get_data(data_id="a/b c+d ø", **PLACE), 200)["fields"]["sold"] == 2
    check(app.get_data(data_id="missing", raise_on_not_found=False, **PLACE), 404)
    check(app.delete_data(data_id="a/b c+d ø", **PLACE), 200)
    check(app.delete_data(data_id="a/b c+d ø", **PLACE), 200)
    check(app.get_data(data_id="a/b c+d ø", **PLACE), 404)
    # Longer than pyvespa sends uncompressed.
    check(app.feed_data_point(data_id="long", fields={"title": "z" * 5000}, **PLACE), 200)
    assert check(app.get_data(data_id="long", **PLACE), 200)["fields"]["title"] == "z" * 5000


def conditions(app):
    check(app.feed_data_point(data_id="c", fields={"sold": 1}, **PLACE), 200)
    with app.syncio() as session:
        check(session.feed_data_point(data_id="c", fields={"sold": 2}, condition="item.sold == 1", **PLACE), 200)
        try:
            answer = session.feed_data_point(data_id="c", fields={"sold": 3}, condition="item.sold == 1", **PLACE)
            status = answer.status_code
        except Exception as error:  # pyvespa raises its own error or requests' HTTPError, by version
            status = 412 if "412" in str(error) or "condition" in str(error).lower() else str(error)
        assert status == 412, status
    assert check(app.get_data(data_id="c", **PLACE), 200)["fields"]["sold"] == 2


def visit(app, **options):
    """Returns the ids of a whole visit."""
    ids = []
    for part in app.visit(content_cluster_name="fjord", **PLACE, **options):
        for answer in part:
            assert answer.is_successful(), answer.get_json()
            assert answer.number_documents_retrieved == len(answer.documents)
            ids += [one["id"] for one in answer.documents]
    return ids


def visits_and_deletes(app):
    app.delete_all_docs(content_cluster_name="fjord", **PLACE)
    assert visit(app) == []
    documents = [{"id": str(i), "fields": {"sold": i}} for i in range(1500)]
    app.feed_iterable(documents, callback=lambda answer, id: check(answer, 200), **PLACE)
    wanted = sorted(f"id:py:item::{i}" for i in range(1500))
    assert sorted(visit(app, slices=4)) == wanted
    assert sorted(visit(app, selection="item.sold < 10")) == sorted(f"id:py:item::{i}" for i in range(10))
    app.delete_all_docs(content_cluster_name="fjord", slices=3, **PLACE)
    assert visit(app) == []


async def asynchronous(app):
    async with app.asyncio(connections=1) as session:
        answers = await asyncio.gather(*(session.feed_data_point(data_id=f"async{i}", fields={"sold": i}, **PLACE)
                                         for i in range(200)))
        for answer in answers:
            check(answer, 200)
        got = await session.get_data(data_id="async7", **PLACE)
        assert check(got, 200)["fields"] == {"sold": 7}
        check(await session.update_data(data_id="async7", fields={"sold": 8}, **PLACE), 200)
        check(await session.update_data(data_id="async7", fields={"sold": 9}, condition="item.sold == 8", **PLACE), 200)
        check(await session.update_data(data_id="async7", fields={"sold": 10}, condition="item.sold == 8", **PLACE), 412)
        assert check(await session.get_data(data_id="async7", **PLACE), 200)["fields"] == {"sold": 9}
        check(await session.delete_data(data_id="async8", **PLACE), 200)
        check(await session.get_data(data_id="async8", **PLACE), 404)


def feed(app, how, count):
    """Feeds documents, with a line before and one after, and says on which ids it failed."""
    failed = []
    print("begun", flush=True)

    def on_answer(answer, document_id):
        if answer.status_code != 200:
            failed.append((document_id, answer.status_code))

    documents = ({"id": str(i), "fields": {"sold": i, "title": "x" * 100}} for i in range(count))
    how(documents, callback=on_answer, schema="item", namespace="feed")
    print("failed", failed[:5], flush=True)
    assert not failed, failed[:5]


def main():
    url, port = sys.argv[1].rsplit(":", 1)
    app = Vespa(url=url, port=int(port))
    what = sys.argv[2]
    if what == "calls":
        app.wait_for_application_up(10)
        single_documents(app)
        conditions(app)
        visits_and_deletes(app)
    elif what == "async":
        asyncio.run(asynchronous(app))
    elif what == "feed":
        feed(app, app.feed_iterable, int(sys.argv[3]))
    else:
        feed(app, app.feed_async_iterable, int(sys.argv[3]))


if __name__ == "__main__":
    main()
