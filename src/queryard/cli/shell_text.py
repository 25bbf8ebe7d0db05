"""Where statements end, so that a shell knows when one is complete."""

from __future__ import annotations

import re

# Everything in which a semicolon is no end; the last group of each may be missing (still open).
_OPAQUE = re.compile(
    r"--[^\n]*"
    r"|/\*.*?(?P<comment>\*/|\Z)"
    r"|'(?:[^']|'')*(?P<text>'|\Z)"
    r'|"(?:[^"]|"")*(?P<name>"|\Z)'
    r"|\$(?P<tag>\w*)\$.*?(?P<dollar>\$(?P=tag)\$|\Z)",
    re.DOTALL,
)


def split_complete(text: str) -> tuple[list[str], str]:
    """The statements that are complete, and what is left of the text.

    >>> split_complete("select ';'; select 1")
    (["select ';';"], ' select 1')
    >>> split_complete("select 'a; b")
    ([], "select 'a; b")
    """
    done: list[str] = []
    begin = at = 0
    while at < len(text):
        if (found := _OPAQUE.match(text, at)) is not None:
            at = found.end()
        elif text[at] == ";":
            at += 1
            done.append(text[begin:at])
            begin = at
        else:
            at += 1
    return done, text[begin:]


def is_complete(text: str) -> bool:
    """Whether a person who presses Enter has finished: a dot-command, or nothing after a `;`.

    >>> is_complete(".tables"), is_complete("select 1"), is_complete("select 1; -- one")
    (True, False, True)
    """
    stripped = text.strip()
    if not stripped or stripped.startswith("."):
        return True
    done, rest = split_complete(text)
    return bool(done) and is_blank(rest)


def is_blank(text: str) -> bool:
    """Nothing but space and comments."""
    return not re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).strip()
