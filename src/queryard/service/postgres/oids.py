"""The numbers of PostgreSQL's types, their sizes, and what is told of them in three words."""

from __future__ import annotations

BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT2VECTOR, INT4 = 16, 17, 18, 19, 20, 21, 22, 23
REGPROC, TEXT, OID, TID, XID, CID, OIDVECTOR, JSON = 24, 25, 26, 27, 28, 29, 30, 114
FLOAT4, FLOAT8, UNKNOWN, ACLITEM, BPCHAR, VARCHAR = 700, 701, 705, 1033, 1042, 1043
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, TIMETZ = 1082, 1083, 1114, 1184, 1186, 1266
NUMERIC, REGCLASS, REGTYPE, UUID, PG_NODE_TREE = 1700, 2205, 2206, 2950, 194
REGNAMESPACE, REGROLE, JSONB = 4089, 4096, 3802

# Arrays by the type of their elements.
ARRAYS = {
    BOOL: 1000,
    BYTEA: 1001,
    CHAR: 1002,
    NAME: 1003,
    INT2: 1005,
    INT4: 1007,
    REGPROC: 1008,
    TEXT: 1009,
    XID: 1011,
    CID: 1012,
    OID: 1028,
    ACLITEM: 1034,
    BPCHAR: 1014,
    VARCHAR: 1015,
    INT8: 1016,
    FLOAT4: 1021,
    FLOAT8: 1022,
    TIMESTAMP: 1115,
    DATE: 1182,
    TIME: 1183,
    TIMESTAMPTZ: 1185,
    INTERVAL: 1187,
    NUMERIC: 1231,
    TIMETZ: 1270,
    JSON: 199,
    UUID: 2951,
    REGCLASS: 2210,
    REGTYPE: 2211,
}
ELEMENTS = {array: element for element, array in ARRAYS.items()}
# Arrays that are written as numbers with spaces between, and are counted from 0.
VECTORS = {INT2VECTOR: INT2, OIDVECTOR: OID}

# Whole numbers by their bytes; those of 4 bytes without a sign are PostgreSQL's object numbers.
SIGNED = {INT2: 2, INT4: 4, INT8: 8}
UNSIGNED = frozenset({OID, XID, CID, REGPROC, REGCLASS, REGTYPE, REGNAMESPACE, REGROLE})
# Types whose binary form is their text.
TEXTS = frozenset({TEXT, VARCHAR, BPCHAR, NAME, CHAR, JSON, UNKNOWN, PG_NODE_TREE})

_SIZES = {
    **SIGNED,
    **dict.fromkeys(UNSIGNED, 4),
    BOOL: 1,
    CHAR: 1,
    NAME: 64,
    FLOAT4: 4,
    FLOAT8: 8,
    DATE: 4,
    TIME: 8,
    TIMESTAMP: 8,
    TIMESTAMPTZ: 8,
    TIMETZ: 12,
    INTERVAL: 16,
    UUID: 16,
    UNKNOWN: -2,
}


def size_of(oid: int) -> int:
    """The bytes of a value, -1 where they differ.

    >>> size_of(INT8), size_of(TEXT)
    (8, -1)
    """
    return _SIZES.get(oid, -1)
