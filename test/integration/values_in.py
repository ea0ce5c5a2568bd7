"""Ways into the store for the values of nasty_values.py: each stores documents `Value.id(way)` and returns what was refused."""

import csv
import http.client
import io
import json
import re
import urllib.parse

from nasty_values import FIELDS, VALUES
from thrift_client import Connection, name_of

from fjord_api.ttypes import OperationKind
from fjord_client.ttypes import WriteDocument


def fields_of(value):
    return f'{{"{value.field}":{value.text}}}'


def changes_of(value):
    return f'{{"{value.field}":{{"assign":{value.text}}}}}'


class WaysIn:
    """Each method named in WAYS takes the name of the way and returns number of a value -> error."""

    def __init__(self, cluster, port):
        self.cluster = cluster
        self.port = port

    # --- The command line

    def one_by_one(self, way, command, json_of):
        errors = {}
        for value in VALUES:
            text = json_of(value)
            is_long = len(text) > 50000  # Too long for an argument.
            done = self.cluster.fjord(*command(value), "-" if is_long else text, stdin=text if is_long else None)
            if done.code != 0:
                errors[value.number] = done.err
        return errors

    def put(self, way):
        return self.one_by_one(way, lambda value: ["put", value.id(way)], fields_of)

    def update(self, way):
        return self.one_by_one(way, lambda value: ["update", value.id(way), "--create"], changes_of)

    def lines(self, way, command, name, line_of, values=VALUES, head=""):
        """Stores lines with one command. Errors name the line of the file at which a record begins."""
        text, numbers = head, {}
        for value in values:
            numbers[text.count("\n") + 1] = value.number
            text += line_of(value) + "\n"
        path = self.cluster.file(name, text)
        done = self.cluster.fjord(command[0], path, *command[1:], "--errors-shown", "1000")
        found = {}
        for line, error in re.findall(rf"{re.escape(name)}:(\d+): (.*)", done.err):
            found[numbers[int(line)]] = error
        assert done.json()["failed"] == len(found), done
        return found

    def feed(self, way):
        return self.lines(way, ["feed"], "feed.jsonl", lambda value: f'{{"put":"{value.id(way)}","fields":{fields_of(value)}}}')

    def feed_updates(self, way):
        return self.lines(way, ["feed"], "updates.jsonl",
                          lambda value: f'{{"update":"{value.id(way)}","create":true,"fields":{changes_of(value)}}}')

    def import_lines(self, way):
        return self.lines(way, ["import"], "lines.jsonl", lambda value: f'{{"put":"{value.id(way)}","fields":{fields_of(value)}}}')

    def import_rows(self, way):
        return self.lines(way, ["import", "--type", "thing", "--namespace", way, "--id-field", "key"], "rows.jsonl",
                          lambda value: f'{{"key":{value.number},"{value.field}":{value.text}}}')

    def import_csv(self, way):
        errors = {}
        for field in FIELDS:
            errors.update(self.lines(
                way, ["import", "--type", "thing", "--namespace", way, "--id-field", "key"], f"{field}.csv",
                lambda value: f"{value.number},{csv_cell(value)}", [one for one in VALUES if one.field == field], f"key,{field}\n"))
        return errors

    # --- HTTP

    def http_each(self, method, path_of, body_of):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        errors = {}
        for value in VALUES:
            connection.request(method, path_of(value), body=f'{{"fields":{body_of(value)}}}')
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                errors[value.number] = json.loads(text)["message"]
        connection.close()
        return errors

    def http_put(self, way):
        return self.http_each("POST", lambda value: f"/document/v1/{way}/thing/docid/{value.number}", fields_of)

    def http_update(self, way):
        return self.http_each("PUT", lambda value: f"/document/v1/{way}/thing/docid/{value.number}?create=true", changes_of)

    def http_update_selection(self, way):
        """Puts empty documents, and changes each by a selection."""
        self.feed_empty(way)

        def path_of(value):
            selection = urllib.parse.quote_plus(f"id == '{value.id(way)}'")
            return f"/document/v1/{way}/thing/docid/?cluster=fjord&selection={selection}"
        return self.http_each("PUT", path_of, changes_of)

    def http_copy(self, way):
        """Writes the documents of a way again where they are."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        target = f"/document/v1/{way}/thing/docid/?cluster=fjord&destinationCluster=fjord&selection=true"
        connection.request("POST", target)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status == 200 and json.loads(text)["documentCount"] > 0, text

    def update_selection(self, way):
        self.feed_empty(way)
        return self.one_by_one(way, lambda value: ["update", "--selection", f"id == '{value.id(way)}'", "--type", "thing", "--yes"],
                               changes_of)

    def feed_empty(self, way):
        self.cluster.must("feed", "-", stdin="".join(f'{{"put":"{value.id(way)}","fields":{{}}}}\n' for value in VALUES))

    # --- Thrift

    def thrift(self, way, kind, json_of):
        errors = {}
        with Connection(self.cluster.address.split(",")[0]) as calls:
            for value in VALUES:
                reply = calls.writeDocument(WriteDocument(kind=kind, id=value.id(way), json=json_of(value), create=True))
                if name_of(reply.status) != "OK":
                    errors[value.number] = reply.status.message
        return errors

    def thrift_put(self, way):
        return self.thrift(way, OperationKind.PUT, fields_of)

    def thrift_update(self, way):
        return self.thrift(way, OperationKind.UPDATE, changes_of)


def csv_cell(value):
    """Returns the cell of a value: texts in quotes, numbers as they are."""
    text = json.loads(value.text) if value.text.startswith('"') else value.text
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="").writerow([text])
    return out.getvalue() if FIELDS[value.field] not in ("byte", "int", "long", "float", "double") else text
