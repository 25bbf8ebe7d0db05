"""What a COPY asks for: rows to or from the client, and how they are written."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from queryard.engine.syntax.classify import unquoted

from .errors import PostgresError, not_supported
from .texts import Text

Format = Literal["text", "csv", "binary"]
SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)


@dataclass(frozen=True, slots=True)
class CopyOut:
    """Rows of a query, and how they are written."""

    query: str
    format: Format = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] = ()  # "*" for all columns


@dataclass(frozen=True, slots=True)
class CopyIn:
    """Rows for a table, and how they are written; `names` are columns as SQL, "*" for all."""

    table: str
    names: str = "*"
    format: Format = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    matches: bool = False  # whether the header must name the columns
    quote: str = '"'
    escape: str = '"'


def copy_of(text: Text) -> CopyOut | CopyIn | None:
    """What a COPY TO STDOUT or FROM STDIN asks for; None for all other statements.

    >>> copy_of(Text("COPY (SELECT 1) TO STDOUT (FORMAT csv, HEADER)"))
    ... # doctest: +NORMALIZE_WHITESPACE
    CopyOut(query='SELECT 1', format='csv', delimiter=',', null='', header=True, quote='"',
            escape='"', force_quote=())
    """
    words = text.words
    if text.first != "copy":
        return None
    depths = accumulate((word == "(") - (word == ")") for word in words)
    outside = [place for place, depth in enumerate(depths) if depth == 0]
    at = next((place for place in outside if words[place] in ("to", "from")), 0)
    target = words[at + 1 : at + 2]
    if target == ("program",):
        raise PostgresError("42501", "COPY … PROGRAM: clients run no programs on the server")
    reads = words[at] == "from"
    if target != (("stdin",) if reads else ("stdout",)):
        return None
    if words[1] == "(":
        if reads:
            raise PostgresError("42601", "COPY … FROM STDIN: rows go into a table, not a query")
        return CopyOut(text.between(2, at - 1), **_options(text, at + 2))
    opened = words.index("(", 1, at) if "(" in words[1:at] else at
    names = text.between(opened + 1, at - 1) if opened < at else "*"
    table = text.between(1, opened)
    if reads:
        return CopyIn(table, names, **_options(text, at + 2, reads=True))
    return CopyOut(f"SELECT {names} FROM {table}", **_options(text, at + 2))


def _options(text: Text, at: int, *, reads: bool = False) -> dict[str, Any]:
    if text.words[at : at + 1] == ("with",):
        at += 1
    options: dict[str, Any] = {}
    if text.words[at : at + 1] == ("(",):
        _listed(text, at + 1, options)
    else:
        _in_a_row(text, at, options)
    form = options.pop("format", "text")
    if form not in ("text", "csv", "binary"):
        raise PostgresError("22023", f'COPY format "{form}" not recognized')
    if form == "csv":
        options = {"delimiter": ",", "null": "", **options}
        options.setdefault("escape", options.get("quote", '"'))
    allowed = {"binary": set(), "text": {"delimiter", "null", "header", "matches"}}.get(form)
    for name in options:
        if allowed is not None and name not in allowed:
            raise PostgresError("42601", f"COPY {name} is not possible in {form} format")
    for name in ("delimiter", "quote", "escape"):
        sign = options.get(name, ",")
        if len(sign.encode()) != 1 or sign in "\n\r":
            raise PostgresError("0A000", f"COPY {name} must be a single one-byte character")
    for name in ("force_quote",) if reads else ("matches",):
        if options.pop(name, False):
            what = "force_quote" if reads else "header match"
            raise PostgresError("42601", f"COPY {what} is not possible in this direction")
    return {"format": form, **options}


def _listed(text: Text, at: int, options: dict[str, Any]) -> None:
    """(FORMAT csv, HEADER true …)"""
    while at < len(text.words) and text.words[at] != ")":
        name = text.name(at)
        end, depth = at + 1, 0
        while end < len(text.words) and (depth or text.words[end] not in (",", ")")):
            depth += (text.words[end] == "(") - (text.words[end] == ")")
            end += 1
        _put(options, name, [text.tokens.texts[place] for place in range(at + 1, end)])
        at = end + (text.words[end : end + 1] == (",",))


def _in_a_row(text: Text, at: int, options: dict[str, Any]) -> None:
    """BINARY, or CSV HEADER DELIMITER AS ';' …: as it was written before version 9."""
    words = text.words
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("binary", "csv"):
            options["format"] = word
        elif word == "header":
            options["header"] = True
        elif word in ("delimiter", "delimiters", "null", "quote", "escape"):
            at += words[at : at + 1] == ("as",)
            if at >= len(words):
                raise PostgresError("42601", "syntax error at end of input")
            _put(options, word.removesuffix("s"), [text.tokens.texts[at]])
            at += 1
        else:
            raise PostgresError("42601", f"syntax error at or near {word!r}")


def _put(options: dict[str, Any], name: str, values: list[str]) -> None:
    value = unquoted(values[0].removeprefix("E")) if values else ""
    if name == "format":
        options["format"] = value.lower()
    elif name == "header":
        options["header"] = value.lower() not in ("false", "off", "0")
        options["matches"] = value.lower() == "match"
    elif name == "force_quote":
        names = [unquoted(word).strip() for word in values if word not in ("(", ")", ",")]
        options["force_quote"] = tuple(names)
    elif name in ("delimiter", "null", "quote", "escape"):
        options[name] = "\t" if value == "\\t" else value
    elif name == "encoding":
        if value.lower().replace("-", "") not in ("utf8", "unicode", "sql_ascii"):
            raise not_supported(f"COPY: encoding {value!r}", hint="this server speaks UTF8")
    else:
        raise PostgresError("42601", f'option "{name}" not recognized')
