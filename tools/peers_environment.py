"""An environment of its own with Spark, Daft on Ray and Dask, to compare with them."""

from __future__ import annotations

from tools.environment import Environment

PEERS = Environment(
    name="peers",
    what="Spark, Daft, Ray and Dask",
    packages=("pyspark>=4,<5", "daft>=0.7", "ray>=2.49", "dask[dataframe]>=2026.1", "distributed"),
    given="QUERYARD_PEERS_PYTHON",
    install_s=900.0,
)
