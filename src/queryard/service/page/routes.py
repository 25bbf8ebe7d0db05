"""The files of the page, which are part of the package: HTML, a style sheet, and modules of script.

They hold no data, so they need no token. All data comes over the API, with the token that the user
gives. The content security policy lets the page run its own files only: text that comes from
queries, names or errors can never become script.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

router = APIRouter(include_in_schema=False)

ASSETS = "/page/"
_INDEX = "index.html"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Where a browser knows it, no text can be turned into markup at all.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Asked for again each time, and answered with 304 unless the server has another version.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page, with the tag by which a browser knows it again."""

    content: bytes
    media_type: str
    tag: str


def is_page(path: str) -> bool:
    """Whether a path is of the page, and needs no token.

    >>> is_page("/"), is_page("/page/main.js"), is_page("/v1/queries")
    (True, True, False)
    """
    return path == "/" or path.startswith(ASSETS)


@cache
def assets() -> Mapping[str, Asset]:
    """All files of the page by their names below `/page/`; only these can be asked for."""
    return {name: _read(name, file) for name, file in _walk(files(__package__) / "static", "")}


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _walk(each, f"{prefix}{each.name}/")
        elif each.name.rpartition(".")[2] in _TYPES:
            yield f"{prefix}{each.name}", each


def _read(name: str, file: Traversable) -> Asset:
    content = file.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    return Asset(content, _TYPES[name.rpartition(".")[2]], tag)


@router.api_route("/", methods=["GET", "HEAD"])
async def index(request: Request) -> Any:
    """The page."""
    return _answer(request, assets()[_INDEX])


@router.api_route(ASSETS + "{name:path}", methods=["GET", "HEAD"])
async def asset(request: Request, name: str) -> Any:
    """A file that the page is made of."""
    found = assets().get(name)
    if found is None:
        raise HTTPException(404)
    return _answer(request, found)


def _answer(request: Request, found: Asset) -> Response:
    headers = {**HEADERS, "ETag": found.tag}
    if found.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = b"" if request.method == "HEAD" else found.content
    headers["Content-Length"] = str(len(found.content))
    return Response(content, 200, headers, found.media_type)
