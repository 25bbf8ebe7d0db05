"""Specs of loads in TOML (or JSON). The format is described in docs/load.md.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> text = 'queries = 4\\narrivals = "at once"\\n[data]\\ntpch = { small = 0.01 }\\n'
>>> with TemporaryDirectory() as folder:
...     file = Path(folder, "tiny.toml")
...     _ = file.write_text(text)
...     spec = read_spec(file)
>>> spec.name, spec.amount.queries, len(spec.templates)
('tiny', 4, 22)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

from queryard.core.errors import InvalidRecord, unknown_name
from queryard.core.model import Tenant
from queryard.core.tenants import check_together, read_tenant
from queryard.workload.fields import Fields
from queryard.workload.files import parse_file

from .model import Amount, ArrivalKind, Arrivals, Asker, Data, LoadSpec, Template
from .templates import folder_templates, tpch_templates

SPEC_FIELDS = (
    "name",
    "seed",
    "queries",
    "duration",
    "slots",
    "memory",
    "profile",
    "data",
    "arrivals",
    "tenants",
)
DATA_FIELDS = ("tpch", "place", "sql")
ARRIVAL_FIELDS: Mapping[str, tuple[str, ...]] = {
    "poisson": ("rate", "load"),
    "bursty": ("rate", "load", "on", "off"),
    "at once": (),
    "every": ("every",),
    "recorded": ("file",),
}
TENANT_FIELDS = (
    "name",
    "weight",
    "guarantee",
    "cap",
    "share",
    "priority",
    "mix",
    "variants",
    "deadlines",
    "tightness",
    "deadline",
    "arrivals",
    "queries",
    "duration",
)
DEFAULT_QUERIES = 100
_KINDS: tuple[ArrivalKind, ...] = get_args(ArrivalKind)
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]*")


def read_spec(path: str | Path) -> LoadSpec:
    """Read a spec; every mistake is told with its file, line and key."""
    file = Path(path)
    source, data = parse_file(file)
    top = Fields(source, (), data, "", SPEC_FIELDS)
    what = _read_data(top, file.parent)
    templates = _templates(top, what)
    arrivals = _read_arrivals(top, file.parent)
    askers = _read_askers(top, templates)
    recorded = arrivals.kind == "recorded"
    if not templates and not recorded:
        top.fail("data", "there is nothing to ask; name a folder of .sql files as sql, or use tpch")
    return LoadSpec(
        name=top.text("name", file.stem),
        data=what,
        templates=templates,
        askers=askers,
        arrivals=arrivals,
        amount=_read_amount(top, arrivals, Amount(None if recorded else DEFAULT_QUERIES)),
        seed=top.whole("seed", 0, least=0),
        slots=top.whole("slots") if "slots" in top else None,
        memory_bytes=_memory(top),
        profile=top.text("profile", "marshal"),
    )


def _memory(top: Fields) -> int | None:
    return int(top.bytes("memory")) if "memory" in top else None


def _read_data(top: Fields, base: Path) -> Data:
    if "data" not in top:
        top.fail("data", "what is read? add [data] with tpch = { small = 0.1 }, or place and sql")
    fields = top.table("data", DATA_FIELDS)
    if ("tpch" in fields) == ("place" in fields):
        fields.fail(None, "give either tpch (schemas and their scales) or place (your own data)")
    sql = base / fields.text("sql") if "sql" in fields else None
    if "place" in fields:
        return Data({}, base / fields.text("place"), sql)
    scales = fields["tpch"]
    if not isinstance(scales, dict) or not scales:
        fields.fail("tpch", f"expected schemas and scales as {{ small = 0.1 }}, got {scales!r}")
    for schema, scale in scales.items():
        if not _SCHEMA.fullmatch(schema):
            fields.fail("tpch", f"{schema!r}: letters, digits and _ make a schema", (schema,))
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not scale > 0:
            fields.fail("tpch", f"a scale is a number above 0, got {scale!r}", (schema,))
    return Data({schema: float(scale) for schema, scale in scales.items()}, None, sql)


def _templates(top: Fields, data: Data) -> dict[str, Template]:
    found = tpch_templates(data.tpch)
    if data.sql is not None:
        try:
            found |= folder_templates(data.sql)
        except InvalidRecord as error:
            top.table("data", DATA_FIELDS).fail("sql", str(error))
    return found


# --- when ----------------------------------------------------------------------------------------


def _read_arrivals(owner: Fields, base: Path) -> Arrivals:
    """A word, or a table with its settings."""
    if "arrivals" not in owner or isinstance(owner["arrivals"], str):
        kind = owner.choice("arrivals", _KINDS, "at once")
        if ARRIVAL_FIELDS[kind]:
            needs = " or ".join(ARRIVAL_FIELDS[kind][:2])
            owner.fail("arrivals", f"say more: {{ kind = {kind!r}, … }} with {needs}")
        return Arrivals("at once")
    named = owner["arrivals"].get("kind") if isinstance(owner["arrivals"], dict) else None
    every = {name for names in ARRIVAL_FIELDS.values() for name in names}
    own = ARRIVAL_FIELDS.get(named, every) if isinstance(named, str) else every
    fields = owner.table("arrivals", ("kind", "start", *sorted(own)))
    kind = fields.choice("kind", _KINDS, "poisson")
    valid = _KINDS[_KINDS.index(kind)]
    start_s = fields.seconds("start", 0.0)
    if valid == "at once":
        return Arrivals(valid, start_s=start_s)
    if valid == "every":
        every_s = fields.seconds("every")
        if not every_s:
            fields.fail("every", "must be above 0; for all at the same moment use 'at once'")
        return Arrivals(valid, every_s=every_s, start_s=start_s)
    if valid == "recorded":
        return Arrivals(valid, file=base / fields.text("file"), start_s=start_s)
    if ("rate" in fields) == ("load" in fields):
        fields.fail(None, "give either rate (queries per second) or load (share of the machine)")
    rate = fields.positive("rate", 1.0) if "rate" in fields else None
    load = fields.positive("load", 1.0) if "load" in fields else None
    on_s = off_s = 0.0
    if valid == "bursty":
        on_s, off_s = fields.seconds("on"), fields.seconds("off")
        if not on_s:
            fields.fail("on", "must be above 0, or no query would ever arrive")
    return Arrivals(valid, rate, load, on_s, off_s, start_s=start_s)


def _read_amount(owner: Fields, arrivals: Arrivals, default: Amount) -> Amount:
    by_time = "duration" in owner
    if "queries" in owner and by_time:
        owner.fail("queries", "duration says how many, too; give one of them")
    if "queries" in owner:
        return Amount(queries=owner.whole("queries"))
    if not by_time:
        return default
    duration_s = owner.seconds("duration")
    if not duration_s:
        owner.fail("duration", "must be above 0")
    if arrivals.kind == "at once":
        owner.fail("duration", "does not say how many come at once; give queries")
    return Amount(duration_s=duration_s)


# --- tenants and their queries -------------------------------------------------------------------


def _read_askers(top: Fields, templates: Mapping[str, Template]) -> tuple[Asker, ...]:
    evenly = dict.fromkeys(templates, 1.0)
    if "tenants" not in top:
        return (Asker(Tenant("default"), evenly),)
    entries = top.tables("tenants", "tenant", "name", TENANT_FIELDS)
    found = [(_read_asker(fields, templates, evenly), fields.fail) for fields in entries]
    check_together([(asker.tenant, fail) for asker, fail in found])
    return tuple(asker for asker, _ in found)


def _read_asker(
    fields: Fields, templates: Mapping[str, Template], evenly: Mapping[str, float]
) -> Asker:
    tenant = read_tenant(fields.text("name"), fields, fields.fail)
    arrivals, amount = None, Amount()
    if "arrivals" in fields:
        arrivals = _read_arrivals(fields, Path())
        if arrivals.kind == "recorded":
            fields.fail("arrivals", "a recording names its tenants itself; give it for the whole")
        if "share" in fields:
            fields.fail("share", "is of the common arrivals, and the tenant has its own")
        amount = _read_amount(fields, arrivals, Amount())
        if amount == Amount():
            fields.fail("arrivals", "how many? give queries or duration")
    elif "queries" in fields or "duration" in fields:
        name = "queries" if "queries" in fields else "duration"
        fields.fail(name, "belongs to arrivals of its own; give arrivals, too, or a share")
    due = "deadline" in fields or "tightness" in fields
    if "deadline" in fields and "tightness" in fields:
        fields.fail("tightness", "deadline says the same; give one of them")
    return Asker(
        tenant=tenant,
        mix=_read_mix(fields, templates) if "mix" in fields else evenly,
        share=fields.positive("share", 1.0),
        priority=fields.number("priority", 0.0),
        variants=fields.whole("variants") if "variants" in fields else None,
        deadlines=fields.share("deadlines", 1.0 if due else 0.0),
        tightness=_read_tightness(fields),
        deadline_s=fields.seconds("deadline") if "deadline" in fields else None,
        arrivals=arrivals,
        amount=amount,
    )


def _read_tightness(fields: Fields) -> tuple[float, float]:
    """Two factors, or one."""
    if "tightness" not in fields:
        return 1.0, 3.0
    given = fields["tightness"]
    both = given if isinstance(given, list) else [given, given]
    numbers = [
        item for item in both if isinstance(item, int | float) and not isinstance(item, bool)
    ]
    if len(both) != 2 or len(numbers) != 2 or not 0 < both[0] <= both[1] < float("inf"):
        problem = "expected two factors of the time alone, as in [1, 3]"
        fields.fail("tightness", f"{problem}; got {given!r}")
    return float(both[0]), float(both[1])


def _read_mix(fields: Fields, templates: Mapping[str, Template]) -> dict[str, float]:
    """Weights of templates; a pattern divides its weight evenly among all it matches."""
    given = fields["mix"]
    if isinstance(given, list | str):
        weights = dict.fromkeys(fields.names("mix"), 1.0)
    elif isinstance(given, dict):
        weights = _flat(fields, given, ())
    else:
        fields.fail("mix", f"expected weights as {{ 'small.q06' = 2 }} or names, got {given!r}")
    mix: dict[str, float] = {}
    for pattern, weight in weights.items():
        matched = [name for name in templates if fnmatchcase(name, pattern)]
        if not matched:
            fields.fail("mix", unknown_name("query", pattern, templates))
        for name in matched:
            mix[name] = mix.get(name, 0.0) + weight / len(matched)
    if not mix:
        fields.fail("mix", "names no query; leave it out for all of them")
    return mix


def _flat(fields: Fields, given: Mapping[str, object], path: tuple[str, ...]) -> dict[str, float]:
    """Weights by dotted names: TOML reads `small.q06 = 2` as a table in a table."""
    found: dict[str, float] = {}
    for key, value in given.items():
        at = (*path, key)
        if isinstance(value, dict):
            found |= _flat(fields, value, at)
        elif isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            fields.fail("mix", f"a weight is a number above 0, got {value!r}", at)
        else:
            found[".".join(at)] = float(value)
    return found
