"""TPC-H on Spark: a standalone cluster of two workers with one core each, on 127.0.0.1."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from asking import order, run
from pyspark.sql import SparkSession

START_S = 180.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def cluster(asked: dict[str, Any]) -> Iterator[str]:
    """A master and the workers, ended by their ids; the address of the master."""
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    deploy = "org.apache.spark.deploy"
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    log = Path(asked["local"]) / "spark.log"
    started: list[subprocess.Popen[bytes]] = []
    with log.open("wb") as told:

        def start(*arguments: str) -> None:
            command = [str(program), *arguments]
            started.append(subprocess.Popen(command, stdout=told, stderr=told, cwd=asked["local"]))

        try:
            start(f"{deploy}.master.Master", *here, "--port", str(port))
            _wait_for(port)
            memory = f"{asked['memory_mib']}m"
            for number in range(asked["nodes"]):
                work = ["--work-dir", f"{asked['local']}/worker-{number}"]
                size = ["--cores", "1", "--memory", memory]
                start(f"{deploy}.worker.Worker", *here, *size, *work, address)
            yield address
        finally:
            for process in reversed(started):
                process.terminate()
            for process in started:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _wait_for(port: int) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.2)
    raise SystemExit(f"error: Spark's master did not start within {START_S:g} s")


def main() -> None:
    asked = order()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # An executor has the memory of its worker, less what Spark itself sets aside.
    memory_mib = max(512, asked["memory_mib"] - 512)
    with cluster(asked) as address:
        spark = (
            SparkSession.builder.master(address)
            .appName("bench")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.executor.memory", f"{memory_mib}m")
            .config("spark.driver.maxResultSize", "0")
            .config("spark.scheduler.mode", "FAIR")
            .config("spark.sql.shuffle.partitions", str(4 * asked["nodes"]))
            .config("spark.local.dir", asked["local"])
            .config("spark.sql.warehouse.dir", asked["local"])
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        for table, file in asked["tables"].items():
            spark.read.parquet(file).createOrReplaceTempView(table)
        _wait_for_executors(spark, asked["nodes"])
        spark.sql("SELECT count(*) FROM nation").collect()

        def ask(name: str) -> Any:
            # Queries at once share fairly, each from a thread of its own.
            pool = name if threading.current_thread() is not threading.main_thread() else None
            spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
            return spark.sql(asked["queries"][name]).collect()

        run(ask, asked)
        spark.stop()


def _wait_for_executors(spark: Any, number: int) -> None:
    until_s = time.monotonic() + START_S
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    while len(tracker.getExecutorInfos()) < number + 1:  # the driver is one of them
        if time.monotonic() > until_s:
            raise SystemExit(f"error: Spark has not got {number} executors in {START_S:g} s")
        time.sleep(0.2)


main()
