"""As duckdb_server.py, with Spark: the lines of JSON are the view `places`."""

import json
import sys
import time

import pyspark
from pyspark.sql import SparkSession


def main():
    path, threads = sys.argv[1], sys.argv[2]
    spark = (SparkSession.builder.master(f"local[{threads}]").appName("fjord-bench")
             .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", threads)
             .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    schema = "number bigint, city string, country string, population int, description string"
    spark.read.schema(schema).json(path).createOrReplaceTempView("places")
    for line in sys.stdin:
        request = json.loads(line)
        begun = time.perf_counter()
        rows = spark.sql(request["sql"]).collect()
        answer = {"seconds": time.perf_counter() - begun, "version": pyspark.__version__}
        with open(request["rows"], "w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(list(row)) + "\n")
        print(json.dumps(answer), flush=True)
    spark.stop()


main()
