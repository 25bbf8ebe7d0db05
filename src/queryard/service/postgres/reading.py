"""What statements ask of the server itself, read from their words."""

from __future__ import annotations

from queryard.engine.syntax.classify import unquoted

from .commands import (
    DIRECTIONS,
    Begin,
    CloseCursor,
    Command,
    Commit,
    Deallocate,
    Declare,
    Direction,
    Discard,
    Fetch,
    Nothing,
    Release,
    Reset,
    Rollback,
    RollbackTo,
    Savepoint,
    Set,
    SetModes,
    Show,
    Use,
)
from .errors import PostgresError, not_supported
from .texts import Text


def command_of(text: Text) -> Command | None:
    """What a statement asks of the server itself; None if it is DuckDB's to answer.

    >>> command_of(Text("SET LOCAL statement_timeout TO '5s'"))
    Set(values=(('statement_timeout', '5s'),), local=True)
    >>> command_of(Text("FETCH FORWARD 10 FROM c"))
    Fetch(name='c', rows=10, moves=False, how='forward')
    >>> command_of(Text("SELECT 1"))
    """
    reader = _READERS.get(text.first)
    return None if reader is None else reader(text)


# --- transactions --------------------------------------------------------------------------------

_LEVELS = ("serializable", "repeatable read", "read committed", "read uncommitted")


def _modes(words: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Modes of a transaction: the isolation is kept and shown, reading only is held to."""
    found = []
    for mode in " ".join(words).replace(" ,", ",").split(","):
        mode = mode.strip()
        if mode.startswith("isolation level "):
            level = mode.removeprefix("isolation level ")
            for known in _LEVELS:
                if level.startswith(known):
                    found.append(("isolation", known))
                    mode = level.removeprefix(known).strip()
                    break
            else:
                raise PostgresError("42601", f"syntax error at or near {level!r}")
        for words_, pair in _MODES.items():
            if mode == words_ or mode.startswith(f"{words_} "):
                found.append(pair)
                mode = mode.removeprefix(words_).strip()
        if mode:
            raise PostgresError("42601", f"syntax error at or near {mode!r}")
    return tuple(found)


_MODES = {
    "read only": ("read_only", "on"),
    "read write": ("read_only", "off"),
    "not deferrable": ("deferrable", "off"),
    "deferrable": ("deferrable", "on"),
}


def _without(words: tuple[str, ...], *skipped: str) -> tuple[str, ...]:
    return words[1:] if words[:1] and words[0] in skipped else words


def _begin(text: Text) -> Command:
    words = _without(text.words[1:], "transaction", "work")
    return Begin(_modes(words) if words else ())


def _chain(words: tuple[str, ...]) -> bool:
    if words not in ((), ("and", "chain"), ("and", "no", "chain")):
        raise PostgresError("42601", f"syntax error at or near {words[0]!r}")
    return words == ("and", "chain")


def _commit(text: Text) -> Command:
    words = _without(text.words[1:], "transaction", "work")
    if words[:1] == ("prepared",):
        raise not_supported("two-phase commit is not possible here")
    return Commit(_chain(words))


def _rollback(text: Text) -> Command:
    skipped = int(text.words[1:2] in (("transaction",), ("work",)))
    words = text.words[1 + skipped :]
    if words[:1] == ("prepared",):
        raise not_supported("two-phase commit is not possible here")
    if words[:1] == ("to",):
        at = 2 + skipped + (words[1:2] == ("savepoint",))
        return RollbackTo(text.name(at))
    return Rollback(_chain(words))


def _savepoint(text: Text) -> Command:
    return Savepoint(text.name(1))


def _release(text: Text) -> Command:
    return Release(text.name(1 + (text.words[1:2] == ("savepoint",))))


# --- settings ------------------------------------------------------------------------------------

# What DuckDB has and PostgreSQL has not.
_OF_DUCKDB = ("global", "variable", "persist")


def _dotted(text: Text, at: int) -> tuple[str, int]:
    """A name that may have dots, and the place behind it."""
    parts = [text.name(at)]
    at += 1
    while text.words[at : at + 1] == (".",):
        parts.append(text.name(at + 1))
        at += 2
    return ".".join(parts), at


def _value(text: Text, at: int) -> str | None:
    """The values from a place on, as one text; None for DEFAULT."""
    if text.words[at:] == ("default",):
        return None
    if at >= len(text.words):
        raise PostgresError("42601", "syntax error at end of input")
    values, current = [], ""
    for word in text.tokens.texts[at:]:
        if word == ",":
            values.append(current)
            current = ""
        else:
            current += word if word[0] not in "'\"" else unquoted(word)
    return ", ".join([*values, current])


def _set(text: Text) -> Command | None:
    words = text.words
    at, local = 1, False
    if words[1:2] and words[1] in ("session", "local") and words[2:3] not in (("=",), ("to",)):
        if words[1:3] == ("session", "authorization"):
            return _identity(text, 3, "session authorization")
        if words[1:3] == ("session", "characteristics"):
            return SetModes(_modes(words[5:]), session=True)
        at, local = 2, words[1] == "local"
    if words[1:2] and words[1] in _OF_DUCKDB:
        return None
    rest = words[at:]
    if rest[:1] == ("transaction",):
        if rest[1:2] == ("snapshot",):
            raise not_supported("SET TRANSACTION SNAPSHOT: there are no snapshots to share")
        return SetModes(_modes(rest[1:]), session=False)
    if rest[:1] == ("role",):
        return _identity(text, at + 1, "role")
    if rest[:2] == ("time", "zone"):
        value = _value(text, at + 2)
        return Set((("timezone", None if value and value.lower() == "local" else value),), local)
    if rest[:1] == ("schema",):
        behind = at + 1 + (rest[1:2] in (("=",), ("to",)))
        return Set((("search_path", _value(text, behind)),), local)
    if rest[:1] == ("names",):
        return Set((("client_encoding", _value(text, at + 1)),), local)
    name, at = _dotted(text, at)
    if words[at : at + 1] not in (("=",), ("to",)):
        raise PostgresError("42601", f"syntax error in SET: a value of {name!r} was expected")
    return Set(((name, _value(text, at + 1)),), local)


def _use(text: Text) -> Command:
    return Use(_dotted(text, 1)[0])


def _identity(text: Text, at: int, what: str) -> Command:
    value = _value(text, at + (text.words[at : at + 1] in (("=",), ("to",))))
    if value is None or value.lower() == "none":
        return Nothing("SET")
    raise not_supported(f"SET {what.upper()}: connect with the token of that user instead")


def _reset(text: Text) -> Command | None:
    words = text.words[1:]
    if words[:1] and words[0] in _OF_DUCKDB:
        return None
    if words[:2] == ("time", "zone"):
        return Reset("timezone")
    if words[:2] == ("session", "authorization") or words[:1] == ("role",):
        return Nothing("RESET")
    return Reset(_dotted(text, 1)[0])


def _show(text: Text) -> Command | None:
    words = text.words[1:]
    if words == ("time", "zone"):
        return Show("timezone")
    if words == ("transaction", "isolation", "level"):
        return Show("transaction_isolation")
    if words == ("session", "authorization"):
        return Show("session_authorization")
    if not words or (len(words) > 1 and "." not in words):
        return None  # SHOW ALL TABLES and its kin are DuckDB's
    return Show(_dotted(text, 1)[0])


def _discard(text: Text) -> Command:
    what = text.name(1)
    if what not in ("all", "plans", "sequences", "temp", "temporary"):
        raise PostgresError("42601", f"syntax error at or near {what!r}")
    return Discard(what)


def _deallocate(text: Text) -> Command:
    at = 1 + (text.words[1:2] == ("prepare",))
    return Deallocate(None if text.words[at:] == ("all",) else text.name(at))


# --- cursors -------------------------------------------------------------------------------------


def _declare(text: Text) -> Command:
    words = text.words
    if "cursor" not in words or "for" not in words:
        raise PostgresError("42601", "syntax error in DECLARE: CURSOR … FOR was expected")
    cursor = words.index("cursor")
    begin = words.index("for", cursor) + 1
    traits, holds = words[2:cursor], words[cursor + 1 : begin - 1]
    query = text.rest(begin)
    if not query:
        raise PostgresError("42601", "syntax error at end of input")
    scrolls = "scroll" in traits and "no" not in traits
    return Declare(text.name(1), query, holds == ("with", "hold"), "binary" in traits, scrolls)


# What a word says by itself: the direction, and how many rows, or which.
_STEPS: dict[str, tuple[Direction, int]] = {
    "next": ("forward", 1),
    "prior": ("backward", 1),
    "first": ("absolute", 1),
    "last": ("absolute", -1),
}


def _fetch(text: Text) -> Command:
    words = text.words[1:]
    at = 0
    how: Direction = "forward"
    rows: int | None = 1
    if words[:1] and words[0] in _STEPS:
        (how, rows), at = _STEPS[words[0]], 1
    else:
        for known in DIRECTIONS:
            if words[:1] == (known,):
                how, at = known, 1
        if words[at : at + 1] == ("all",):
            rows, at = None, at + 1
        else:
            sign = -1 if words[at : at + 1] == ("-",) else 1
            at += sign < 0
            if words[at : at + 1] and words[at].isdigit():
                rows, at = sign * int(words[at]), at + 1
            elif sign < 0 or how in ("absolute", "relative"):
                raise PostgresError("42601", f"{text.first.upper()}: a number was expected")
    if words[at : at + 1] and words[at] in ("from", "in"):
        at += 1
    if how in ("forward", "backward") and rows is not None and rows < 0:
        how, rows = ("backward" if how == "forward" else "forward"), -rows
    if rows == 0 and how != "absolute":
        how = "relative"  # the row at which the cursor is
    return Fetch(text.name(at + 1), rows, text.first == "move", how)


def _close(text: Text) -> Command:
    return CloseCursor(None if text.words[1:] == ("all",) else text.name(1))


# --- the rest ------------------------------------------------------------------------------------


def _nothing(text: Text) -> Command:
    return Nothing(text.first.upper() + (" TABLE" if text.first == "lock" else ""))


def _notify(text: Text) -> Command:
    raise not_supported("NOTIFY: there are no channels between sessions here")


_READERS = {
    "begin": _begin,
    "start": _begin,
    "commit": _commit,
    "end": _commit,
    "rollback": _rollback,
    "abort": _rollback,
    "savepoint": _savepoint,
    "release": _release,
    "set": _set,
    "use": _use,
    "reset": _reset,
    "show": _show,
    "discard": _discard,
    "deallocate": _deallocate,
    "declare": _declare,
    "fetch": _fetch,
    "move": _fetch,
    "close": _close,
    "listen": _nothing,
    "unlisten": _nothing,
    "lock": _nothing,
    "notify": _notify,
}
