"""TPC-H on Daft's SQL over Ray: two nodes with one CPU each, on 127.0.0.1."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

# Before Ray is imported: it would listen on all interfaces.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["DAFT_ANALYTICS_ENABLED"] = "0"
os.environ["DO_NOT_TRACK"] = "true"
os.environ["DAFT_PROGRESS_BAR"] = "0"

import daft
import ray
from asking import order, run
from ray.cluster_utils import Cluster


def main() -> None:
    asked = order()
    # Ray notes the address of the newest cluster there, for all programs to find.
    os.environ["RAY_TMPDIR"] = asked["local"]
    Path(asked["local"], "ray").mkdir()
    store = {"object_store_memory": 512 << 20}
    head = {"num_cpus": 0, "include_dashboard": False, "temp_dir": asked["local"], **store}
    # Else Ray runs Daft at a low priority, which it does not do with Queryard here.
    head["_system_config"] = {"worker_niceness": 0}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(asked["nodes"]):
            cluster.add_node(num_cpus=1, **store)
        ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
        daft.set_runner_ray(cluster.address)
        tables = {name: daft.read_parquet(file) for name, file in asked["tables"].items()}

        def ask(name: str) -> Any:
            answer = daft.sql(asked["queries"][name], **tables).to_arrow()
            return zip(*(column.to_pylist() for column in answer.columns), strict=True)

        list(daft.sql("SELECT count(*) AS n FROM nation", **tables).to_arrow().to_pylist())
        run(ask, asked)
    finally:
        ray.shutdown()
        cluster.shutdown()


main()
