"""Hive's plans of the TPC-H queries that TLS names, and of some more, as steps over tables.

The paper prints few shapes: Q14 is two jobs, Q17 four, Q21 reads lineitem in two aggregates and a
join; Q5, 9, 10 and 12 are chains, Q7, 8, 17, 18, 21 and a version of Q9 are trees. All else follows
the statements as Hive 0.12 compiles them: a job for each join, aggregate and sort, with joins of
nation and region done inside the maps. Selectivities are those of TPC-H's predicates and column
widths, in bytes and rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from queryard.core.model import Operator

# Bytes of a table over those of the whole data set, as the generator writes them.
SHARES: Mapping[str, float] = {
    "lineitem": 0.690,
    "orders": 0.156,
    "partsupp": 0.108,
    "customer": 0.022,
    "part": 0.022,
    "supplier": 0.0013,
}


@dataclass(frozen=True, slots=True)
class Step:
    """A job to be: `medium` and `final` are its map output and its output over its input.

    `one_reduce` is for sorts and for sums over everything, which Hive gives one reduce.
    """

    name: str
    operator: Operator
    tables: tuple[str, ...]
    upstream: tuple[str, ...]
    medium: float
    final: float
    one_reduce: bool = False
    has_reduce: bool = True


Plan = tuple[Step, ...]


def _join(
    name: str, tables: str, upstream: str, medium: float, final: float, operator: Operator = "join"
) -> Step:
    return Step(name, operator, tuple(tables.split()), tuple(upstream.split()), medium, final)


def _group(name: str, tables: str, upstream: str, medium: float, final: float) -> Step:
    return _join(name, tables, upstream, medium, final, "groupby")


def _sum(upstream: str, tables: str = "") -> Step:
    """A sum over everything: combined in the maps, then one reduce."""
    return Step(
        "sum",
        "groupby",
        tuple(tables.split()),
        tuple(upstream.split()),
        1e-4,
        1e-4,
        one_reduce=True,
    )


def _sort(upstream: str) -> Step:
    return Step("sort", "extract", (), (upstream,), 1.0, 1.0, one_reduce=True)


def _groups_sorted(upstream: str, medium: float = 0.05, final: float = 0.001) -> Plan:
    """How most of the queries end."""
    return (_group("agg", "", upstream, medium, final), _sort("agg"))


PLANS: Mapping[str, Plan] = {
    "Q1": (_group("agg", "lineitem", "", 5e-4, 1e-5), _sort("agg")),
    "Q3": (
        _join("co", "customer orders", "", 0.15, 0.03),
        _join("col", "lineitem", "co", 0.165, 0.01),
        *_groups_sorted("col", 0.8, 0.4),
    ),
    "Q4": (
        _group("late", "lineitem", "", 0.06, 0.03),
        _join("lo", "orders", "late", 0.12, 0.01),
        *_groups_sorted("lo"),
    ),
    "Q5": (
        _join("ls", "lineitem supplier", "", 0.30, 0.07),
        _join("lso", "orders", "ls", 0.26, 0.035),
        _join("lsoc", "customer", "lso", 0.32, 0.05),
        *_groups_sorted("lsoc"),
    ),
    "Q6": (_sum("", "lineitem"),),
    "Q7": (
        _join("co", "customer orders", "", 0.18, 0.02),
        _join("ls", "lineitem supplier", "", 0.12, 0.012),
        _join("all", "", "co ls", 1.0, 0.10),
        *_groups_sorted("all"),
    ),
    "Q8": (
        _join("co", "customer orders", "", 0.07, 0.011),
        _join("lp", "lineitem part", "", 0.29, 0.0023),
        _join("colp", "", "co lp", 1.0, 0.10),
        _join("all", "supplier", "colp", 0.5, 0.3),
        *_groups_sorted("all"),
    ),
    "Q9": (
        _join("ls", "lineitem supplier", "", 0.35, 0.36),
        _join("lsps", "partsupp", "ls", 0.74, 0.70),
        _join("lspsp", "part", "lsps", 0.92, 0.04),
        _join("all", "orders", "lspsp", 0.20, 0.05),
        *_groups_sorted("all", 0.1, 0.002),
    ),
    # The version that the paper uses where it compares job orders.
    "Q9 tree": (
        _join("pps", "part partsupp", "", 0.13, 0.008),
        _join("ls", "lineitem supplier", "", 0.35, 0.36),
        _join("ppsls", "", "pps ls", 1.0, 0.045),
        _join("all", "orders", "ppsls", 0.20, 0.05),
        *_groups_sorted("all", 0.1, 0.002),
    ),
    "Q10": (
        _join("co", "customer orders", "", 0.12, 0.04),
        _join("col", "lineitem", "co", 0.06, 0.012),
        *_groups_sorted("col", 0.8, 0.35),
    ),
    "Q12": (_join("lo", "lineitem orders", "", 0.05, 0.002), *_groups_sorted("lo")),
    "Q14": (_sum("", "lineitem part"), _sort("sum")),
    "Q17": (
        _group("agg", "lineitem", "", 0.08, 0.004),
        _join("lp", "lineitem part", "", 0.20, 3e-4),
        _join("small", "", "agg lp", 1.0, 0.02),
        _sum("small"),
    ),
    "Q18": (
        _group("large", "lineitem", "", 0.03, 1e-5),
        _join("co", "customer orders", "", 0.30, 0.30),
        _join("col", "lineitem", "co large", 0.16, 1e-4),
        *_groups_sorted("col", 0.8, 0.5),
    ),
    "Q21": (
        _group("all-of", "lineitem", "", 0.10, 0.04),
        _group("late-of", "lineitem", "", 0.06, 0.03),
        _join("ls", "lineitem supplier", "", 0.06, 0.004),
        _join("lso", "orders", "ls", 0.066, 0.01),
        _join("others", "", "lso all-of", 0.95, 0.05),
        _join("alone", "", "others late-of", 0.95, 0.02),
        *_groups_sorted("alone", 0.3, 0.1),
    ),
}

CHAINS = ("Q5", "Q9", "Q10", "Q12")
TREES = ("Q7", "Q8", "Q17", "Q21")
# What mixes are drawn from.
MIXED = tuple(name for name in PLANS if name != "Q9 tree")

# The single jobs of QMix. They read a table of their own, as large as their whole input.
LOG = "log"
SINGLE_JOBS: Mapping[str, Plan] = {
    "terasort": (Step("job", "extract", (LOG,), (), 1.0, 1.0),),
    "wordcount": (Step("job", "groupby", (LOG,), (), 0.15, 0.03),),
    "grep": (Step("job", "extract", (LOG,), (), 0.001, 0.001, has_reduce=False),),
}


def input_share(plan: Plan) -> float:
    """The bytes of all tables that a plan reads, each once, over those of the data set."""
    tables = {table for step in plan for table in step.tables}
    return 1.0 if tables == {LOG} else sum(SHARES[table] for table in tables)
