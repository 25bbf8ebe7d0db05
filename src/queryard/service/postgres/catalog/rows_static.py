"""The rows of the catalogs that are the same on every server: types, functions and the like."""

from __future__ import annotations

import csv
from functools import cache
from typing import Any

from .function_rows import function_rows
from .objects import OWNER, PG_CATALOG, Objects
from .types import oid_of, read_data, type_rows

HEAP, BTREE = 2, 403  # access methods


def pg_type(objects: Objects) -> tuple[int, dict[str, Any]]:
    rows = type_rows()
    numbers = [
        "oid",
        "typlen",
        "typsubscript",
        "typelem",
        "typarray",
        "typinput",
        "typoutput",
        "typreceive",
        "typsend",
        "typmodin",
        "typmodout",
        "typcollation",
    ]
    texts = ["typname", "typtype", "typcategory", "typdelim", "typalign", "typstorage"]
    flags = ["typbyval", "typispreferred"]
    columns: dict[str, Any] = {name: [int(row[name]) for row in rows] for name in numbers}
    columns |= {name: [row[name] for row in rows] for name in texts}
    columns |= {name: [row[name] == "True" for row in rows] for name in flags}
    return len(rows), columns | {
        "typnamespace": PG_CATALOG,
        "typowner": OWNER,
        "typisdefined": True,
        "typrelid": 0,
        "typanalyze": 0,
        "typnotnull": False,
        "typbasetype": 0,
        "typtypmod": -1,
        "typndims": 0,
    }


def pg_proc(objects: Objects) -> tuple[int, dict[str, Any]]:
    rows = function_rows()
    numbers = ["oid", "prolang", "provariadic", "pronargs", "prorettype"]
    texts = ["proname", "prokind", "provolatile", "proparallel", "prosrc"]
    flags = ["prosecdef", "proleakproof", "proisstrict", "proretset"]
    columns: dict[str, Any] = {name: [int(row[name]) for row in rows] for name in numbers}
    columns |= {name: [row[name] for row in rows] for name in texts}
    columns |= {name: [row[name] == "True" for row in rows] for name in flags}
    return len(rows), columns | {
        "pronamespace": PG_CATALOG,
        "proowner": OWNER,
        "procost": [float(row["procost"]) for row in rows],
        "prorows": [float(row["prorows"]) for row in rows],
        "prosupport": 0,
        "pronargdefaults": 0,
        "proargtypes": [[int(text) for text in row["proargtypes"].split()] for row in rows],
    }


def pg_opclass(objects: Objects) -> tuple[int, dict[str, Any]]:
    rows = _opclasses()
    columns: dict[str, Any] = {
        name: [int(row[name]) for row in rows]
        for name in [
            "oid",
            "opcmethod",
            "opcnamespace",
            "opcowner",
            "opcfamily",
            "opcintype",
            "opckeytype",
        ]
    }
    return len(rows), columns | {
        "opcname": [row["opcname"] for row in rows],
        "opcdefault": [row["opcdefault"] == "True" for row in rows],
    }


@cache
def _opclasses() -> tuple[dict[str, str], ...]:
    return tuple(csv.DictReader(read_data("opclasses.csv").splitlines()))


@cache
def default_opclass() -> dict[int, int]:
    found = {
        int(row["opcintype"]): int(row["oid"])
        for row in _opclasses()
        if row["opcdefault"] == "True"
    }
    found[oid_of("varchar")] = found[oid_of("text")]
    return found


def pg_am(objects: Objects) -> tuple[int, dict[str, Any]]:
    return 2, {
        "oid": [HEAP, BTREE],
        "amname": ["heap", "btree"],
        "amhandler": [3, 330],
        "amtype": ["t", "i"],
    }


def pg_collation(objects: Objects) -> tuple[int, dict[str, Any]]:
    return 3, {
        "oid": [100, 950, 951],
        "collname": ["default", "C", "POSIX"],
        "collnamespace": PG_CATALOG,
        "collowner": OWNER,
        "collprovider": ["d", "c", "c"],
        "collisdeterministic": True,
        "collencoding": -1,
        "collcollate": [None, "C", "POSIX"],
        "collctype": [None, "C", "POSIX"],
    }


def pg_language(objects: Objects) -> tuple[int, dict[str, Any]]:
    return 3, {
        "oid": [12, 13, 14],
        "lanname": ["internal", "c", "sql"],
        "lanowner": OWNER,
        "lanispl": False,
        "lanpltrusted": [False, False, True],
        "lanplcallfoid": 0,
        "laninline": 0,
        "lanvalidator": [2246, 2247, 2248],
    }


def pg_tablespace(objects: Objects) -> tuple[int, dict[str, Any]]:
    return 2, {"oid": [1663, 1664], "spcname": ["pg_default", "pg_global"], "spcowner": OWNER}
