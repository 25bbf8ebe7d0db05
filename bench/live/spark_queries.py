"""Queries at once on Spark; run by `bench.live.spark` with an interpreter that has pyspark.

spark_queries.py ASKED ANSWERED: reads what to do from one JSON file and writes another.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark import InheritableThread
from pyspark.sql import SparkSession


def open_session(order: dict[str, Any]) -> SparkSession:
    """Spark on this machine only, with fair sharing between pools."""
    slots = order["slots"]
    return (
        SparkSession.builder.master(f"local[{slots}]")
        .appName("bench")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", f"{order['memory_mib']}m")
        .config("spark.driver.maxResultSize", "0")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.sql.shuffle.partitions", str(4 * slots))
        .config("spark.local.dir", order["local"])
        .config("spark.sql.warehouse.dir", order["local"])
        .getOrCreate()
    )


def main() -> None:
    asked, answered = map(Path, sys.argv[1:])
    order = json.loads(asked.read_text(encoding="utf-8"))
    spark = open_session(order)
    spark.sparkContext.setLogLevel("ERROR")
    for table, file in order["tables"].items():
        spark.read.parquet(file).createOrReplaceTempView(table)
    spark.sql("SELECT count(*) FROM nation").collect()
    responses_s: dict[str, float] = {}
    rows: dict[str, int] = {}
    errors: dict[str, str] = {}
    start = threading.Event()

    def ask(name: str, sql: str) -> None:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
        start.wait()
        try:
            rows[name] = len(spark.sql(sql).collect())
            responses_s[name] = time.perf_counter() - began
        except Exception as error:
            errors[name] = str(error)[:1000]

    threads = [InheritableThread(target=ask, args=item) for item in order["queries"].items()]
    for thread in threads:
        thread.start()
    began = time.perf_counter()
    start.set()
    for thread in threads:
        thread.join()
    answer = {"responses_s": responses_s, "rows": rows, "errors": errors}
    answered.write_text(json.dumps(answer), encoding="utf-8")
    spark.stop()


main()
