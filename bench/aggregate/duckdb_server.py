"""Runs SQL with DuckDB, in the Python of a virtual environment that has it. Standard input: one JSON object per line,
{"sql": ...}, with "rows" a file for the result. Standard output: {"seconds": ..., "cpu_seconds": ..., "version":
...} for each query. A result counts as readable when its columns are arrays in memory."""

import json
import sys
import time

import duckdb


def main():
    connection = duckdb.connect(sys.argv[1], config={"threads": int(sys.argv[2])})
    for line in sys.stdin:
        request = json.loads(line)
        begun, cpu = time.perf_counter(), time.process_time()
        cursor = connection.execute(request["sql"])
        columns = list(cursor.fetchnumpy().values()) if request.get("rows") else []
        answer = {"seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - cpu,
                  "version": duckdb.__version__}
        if columns:
            with open(request["rows"], "w", encoding="utf-8") as file:
                for row in zip(*(column.tolist() for column in columns)):
                    file.write(json.dumps(row) + "\n")
        print(json.dumps(answer), flush=True)


main()
