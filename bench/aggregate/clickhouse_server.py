"""Runs SQL with ClickHouse inside this process (chdb), in the Python of a virtual environment that has it. The protocol is that of
duckdb_server.py; "rows" gets the result as ClickHouse writes it, an array of JSON in each line."""

import json
import pathlib
import sys
import time

import chdb.session


def main():
    session = chdb.session.Session(sys.argv[1])
    session.query(f"SET max_threads = {sys.argv[2]}, output_format_json_quote_64bit_integers = 0")
    version = str(session.query("SELECT version()", "TabSeparated")).strip()
    for line in sys.stdin:
        request = json.loads(line)
        begun, cpu = time.perf_counter(), time.process_time()
        result = session.query(request["sql"], "JSONCompactEachRow")
        answer = {"seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - cpu, "version": version}
        if request.get("rows"):
            pathlib.Path(request["rows"]).write_text(str(result), encoding="utf-8")
        print(json.dumps(answer), flush=True)


main()
