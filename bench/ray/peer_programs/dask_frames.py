"""Some queries of TPC-H written for Dask's data frames: two workers of one thread, on 127.0.0.1.

Dask has no SQL. Decimals are read as floats and dates as timestamps, as its users do: Python's
decimals are slower by orders of magnitude.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

# Before Dask is imported: it warns of every shuffle that begins and ends.
os.environ["DASK_LOGGING__DISTRIBUTED"] = "error"

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from asking import order, run
from dask import dataframe as dd
from dask.distributed import Client, LocalCluster

Tables = Callable[..., Any]
"""The columns of a table that a query needs, as a data frame."""


def q01(read: Tables) -> Any:
    line = read(
        "lineitem",
        "l_returnflag l_linestatus l_quantity l_extendedprice l_discount l_tax l_shipdate",
    )
    line = line[line.l_shipdate <= pd.Timestamp("1998-09-02")]
    line["disc_price"] = line.l_extendedprice * (1 - line.l_discount)
    line["charge"] = line.disc_price * (1 + line.l_tax)
    found = line.groupby(["l_returnflag", "l_linestatus"]).agg(
        sum_qty=("l_quantity", "sum"),
        sum_base_price=("l_extendedprice", "sum"),
        sum_disc_price=("disc_price", "sum"),
        sum_charge=("charge", "sum"),
        avg_qty=("l_quantity", "mean"),
        avg_price=("l_extendedprice", "mean"),
        avg_disc=("l_discount", "mean"),
        count_order=("l_quantity", "count"),
    )
    return found.reset_index().compute().sort_values(["l_returnflag", "l_linestatus"])


def q03(read: Tables) -> Any:
    day = pd.Timestamp("1995-03-15")
    customer = read("customer", "c_custkey c_mktsegment")
    orders = read("orders", "o_orderkey o_custkey o_orderdate o_shippriority")
    line = read("lineitem", "l_orderkey l_extendedprice l_discount l_shipdate")
    customer = customer[customer.c_mktsegment == "BUILDING"][["c_custkey"]]
    orders = orders[orders.o_orderdate < day]
    line = line[line.l_shipdate > day]
    line["revenue"] = line.l_extendedprice * (1 - line.l_discount)
    joined = orders.merge(customer, left_on="o_custkey", right_on="c_custkey")
    joined = joined.merge(line, left_on="o_orderkey", right_on="l_orderkey")
    keys = ["l_orderkey", "o_orderdate", "o_shippriority"]
    found = joined.groupby(keys)["revenue"].sum().reset_index().compute()
    found = found.sort_values(["revenue", "o_orderdate"], ascending=[False, True]).head(10)
    return found[["l_orderkey", "revenue", "o_orderdate", "o_shippriority"]]


def q05(read: Tables) -> Any:
    low, high = pd.Timestamp("1994-01-01"), pd.Timestamp("1995-01-01")
    region = read("region", "r_regionkey r_name")
    nation = read("nation", "n_nationkey n_regionkey n_name")
    supplier = read("supplier", "s_suppkey s_nationkey")
    customer = read("customer", "c_custkey c_nationkey")
    orders = read("orders", "o_orderkey o_custkey o_orderdate")
    line = read("lineitem", "l_orderkey l_suppkey l_extendedprice l_discount")
    nation = nation.merge(
        region[region.r_name == "ASIA"], left_on="n_regionkey", right_on="r_regionkey"
    )[["n_nationkey", "n_name"]]
    supplier = supplier.merge(nation, left_on="s_nationkey", right_on="n_nationkey")
    orders = orders[(orders.o_orderdate >= low) & (orders.o_orderdate < high)]
    orders = orders.merge(customer, left_on="o_custkey", right_on="c_custkey")
    line["revenue"] = line.l_extendedprice * (1 - line.l_discount)
    joined = line.merge(orders, left_on="l_orderkey", right_on="o_orderkey")
    joined = joined.merge(
        supplier, left_on=["l_suppkey", "c_nationkey"], right_on=["s_suppkey", "s_nationkey"]
    )
    found = joined.groupby("n_name")["revenue"].sum().reset_index().compute()
    return found.sort_values("revenue", ascending=False)


def q06(read: Tables) -> Any:
    line = read("lineitem", "l_quantity l_extendedprice l_discount l_shipdate")
    line = line[
        (line.l_shipdate >= pd.Timestamp("1994-01-01"))
        & (line.l_shipdate < pd.Timestamp("1995-01-01"))
        & (line.l_discount >= 0.05 - 1e-9)
        & (line.l_discount <= 0.07 + 1e-9)
        & (line.l_quantity < 24)
    ]
    return pd.DataFrame({"revenue": [(line.l_extendedprice * line.l_discount).sum().compute()]})


def q10(read: Tables) -> Any:
    low, high = pd.Timestamp("1993-10-01"), pd.Timestamp("1994-01-01")
    orders = read("orders", "o_orderkey o_custkey o_orderdate")
    line = read("lineitem", "l_orderkey l_extendedprice l_discount l_returnflag")
    nation = read("nation", "n_nationkey n_name")
    customer = read(
        "customer", "c_custkey c_name c_acctbal c_nationkey c_address c_phone c_comment"
    )
    orders = orders[(orders.o_orderdate >= low) & (orders.o_orderdate < high)]
    line = line[line.l_returnflag == "R"]
    line["revenue"] = line.l_extendedprice * (1 - line.l_discount)
    joined = line.merge(orders, left_on="l_orderkey", right_on="o_orderkey")
    joined = joined.merge(customer, left_on="o_custkey", right_on="c_custkey")
    joined = joined.merge(nation, left_on="c_nationkey", right_on="n_nationkey")
    keys = ["c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment"]
    found = joined.groupby(keys)["revenue"].sum().reset_index().compute()
    found = found.sort_values("revenue", ascending=False).head(20)
    return found[["c_custkey", "c_name", "revenue", *keys[2:]]]


def q12(read: Tables) -> Any:
    line = read("lineitem", "l_orderkey l_shipmode l_shipdate l_commitdate l_receiptdate")
    orders = read("orders", "o_orderkey o_orderpriority")
    line = line[
        line.l_shipmode.isin(["MAIL", "SHIP"])
        & (line.l_commitdate < line.l_receiptdate)
        & (line.l_shipdate < line.l_commitdate)
        & (line.l_receiptdate >= pd.Timestamp("1994-01-01"))
        & (line.l_receiptdate < pd.Timestamp("1995-01-01"))
    ]
    joined = line.merge(orders, left_on="l_orderkey", right_on="o_orderkey")
    high = joined.o_orderpriority.isin(["1-URGENT", "2-HIGH"])
    joined["high_line_count"] = high.astype("int64")
    joined["low_line_count"] = (~high).astype("int64")
    counts = ["high_line_count", "low_line_count"]
    return joined.groupby("l_shipmode")[counts].sum().reset_index().compute()


def q14(read: Tables) -> Any:
    line = read("lineitem", "l_partkey l_extendedprice l_discount l_shipdate")
    part = read("part", "p_partkey p_type")
    line = line[
        (line.l_shipdate >= pd.Timestamp("1995-09-01"))
        & (line.l_shipdate < pd.Timestamp("1995-10-01"))
    ]
    joined = line.merge(part, left_on="l_partkey", right_on="p_partkey")
    revenue = joined.l_extendedprice * (1 - joined.l_discount)
    promo = revenue.where(joined.p_type.str.startswith("PROMO"), 0.0)
    found = dd.concat([promo.sum().to_series(), revenue.sum().to_series()]).compute().tolist()
    return pd.DataFrame({"promo_revenue": [100.0 * found[0] / found[1]]})


QUERIES = {"Q1": q01, "Q3": q03, "Q5": q05, "Q6": q06, "Q10": q10, "Q12": q12, "Q14": q14}


def part(place: tuple[str, int], columns: list[str] | None = None) -> pd.DataFrame:
    """A row group of a file; decimals as floats, dates as timestamps."""
    file, group = place
    rows = pq.ParquetFile(file).read_row_group(group, columns)
    return rows.cast(pa.schema([(f.name, plain(f.type)) for f in rows.schema])).to_pandas(
        types_mapper=lambda kind: pd.ArrowDtype(kind) if kind == pa.string() else None
    )


def plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.float64()
    return pa.timestamp("ms") if pa.types.is_date(kind) else kind


def main() -> None:
    asked = order()

    def read(table: str, columns: str) -> Any:
        """A part per row group; Dask's own reader would leave decimals to Python."""
        file = asked["tables"][table]
        groups = range(pq.ParquetFile(file).num_row_groups)
        return dd.from_map(part, [(file, group) for group in groups], columns=columns.split())

    def ask(name: str) -> Any:
        # Threads that share a client and compute the same keys release each other's results.
        if threading.current_thread() is threading.main_thread():
            found = QUERIES[name](read)
        else:
            with Client(cluster, set_as_default=False) as own, own.as_current():
                found = QUERIES[name](read)
        return found.itertuples(index=False, name=None)

    with (
        LocalCluster(
            n_workers=asked["nodes"],
            threads_per_worker=1,
            memory_limit=f"{asked['memory_mib']}MiB",
            host="127.0.0.1",
            dashboard_address=None,
            local_directory=asked["local"],
        ) as cluster,
        Client(cluster),
    ):
        len(read("nation", "n_name"))
        asked["queries_in_order"] = [n for n in asked["queries_in_order"] if n in QUERIES]
        run(ask, asked)


if __name__ == "__main__":
    main()
