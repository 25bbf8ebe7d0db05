"""The present, told to any number of open pages: each query is encoded once for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from ..observing.now import View
from ..observing.observer import Observer
from ..observing.visibility import Visibility
from ..principal import Principal
from .context import Context
from .events import REVOKED, event
from .replies import to_json

# How often a document is made at most, and how often at least.
EVERY_S = 0.4
ALIVE_S = 5.0
# What making documents should take of a core: after a long round there is a longer pause.
MOST_SHARE = 0.03
# But no page waits for longer, whatever others ask for.
LONGEST_S = 0.9
# Numbers of waiting queries that pages are told: other numbers would be documents of their own.
LIMITS = (50, 200, 2000)
_LISTS = ("running", "waiting", "ended")
_log = logging.getLogger("queryard.service.http")


def pause_s(took_s: float) -> float:
    """How long the next round is waited for after one that took so many processor seconds.

    >>> pause_s(0.001), round(pause_s(0.02), 3), pause_s(5.0)
    (0.4, 0.667, 0.9)
    """
    return min(LONGEST_S, max(EVERY_S, took_s / MOST_SHARE))


def joined(document: Mapping[str, Any], known: dict[tuple[str, str], bytes]) -> bytes:
    """A document as JSON. `known` has the queries that were encoded before, and gets the others.

    >>> queries = {"running": [{"id": "a", "status": "running"}], "waiting": [], "ended": []}
    >>> joined({"at": 1, **queries}, {})
    b'{"at": 1, "running": [{"id": "a", "status": "running"}], "waiting": [], "ended": []}'
    """
    parts = [to_json({key: value for key, value in document.items() if key not in _LISTS})[:-1]]
    for name in _LISTS:
        queries = b", ".join([_encoded(query, known) for query in document[name]])
        parts += [b', "', name.encode(), b'": [', queries, b"]"]
    return b"".join((*parts, b"}"))


def _encoded(query: Mapping[str, Any], known: dict[tuple[str, str], bytes]) -> bytes:
    # For one token it may have ended just now, and for another not yet.
    key = query["id"], query["status"]
    if key not in known:
        known[key] = to_json(query)
    return known[key]


class _Page:
    """One open stream: it takes the newest document, and misses those it was too slow for."""

    def __init__(self) -> None:
        self.content: bytes | None = None
        self.is_over = False
        self.changed = asyncio.Event()

    def give(self, content: bytes) -> None:
        self.content = content
        self.changed.set()


class NowFeed:
    """Lives on the application's loop; it rests while no page is open."""

    def __init__(self, observer: Observer, context: Context) -> None:
        self._observer = observer
        self._context = context
        self._pages: dict[View, set[_Page]] = {}
        self._newest: dict[View, bytes] = {}
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._is_over = False

    async def close(self) -> None:
        """Tell all pages that the server stops."""
        self._is_over = True
        for pages in self._pages.values():
            for page in pages:
                page.is_over = True
                page.changed.set()
        if self._task is not None:
            self._task.cancel()

    async def stream(
        self, principal: Principal, limit: int, tenant: str | None = None
    ) -> AsyncIterator[bytes]:
        """Events "now" for one page, until it leaves, its token is revoked or the server stops."""
        told = LIMITS[min(bisect_left(LIMITS, limit), len(LIMITS) - 1)]
        view = View(Visibility.of(principal), told, tenant)
        page = _Page()
        self._pages.setdefault(view, set()).add(page)
        page.is_over = self._is_over
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())
        elif view in self._newest:
            page.give(self._newest[view])
        else:
            self._wake.set()
        try:
            while not page.is_over:
                await page.changed.wait()
                page.changed.clear()
                content, page.content = page.content, None
                if not self._observer.yard.tokens.holds(principal):
                    yield REVOKED
                    return
                if content is not None:
                    yield content
            yield event("end", {"reason": "the server stops"})
        finally:
            pages = self._pages[view]
            pages.discard(page)
            if not pages:
                del self._pages[view]
                self._newest.pop(view, None)

    async def _run(self) -> None:
        """Make documents as long as pages are open, and something has happened."""
        seen: object = None
        told_s = next_s = float("-inf")
        while self._pages:
            self._wake.clear()
            began_s = time.monotonic()
            version = self._observer.version
            is_silent = began_s - told_s >= ALIVE_S - EVERY_S / 2
            # A page of a new kind, for which this may be a round before its time, is told alone.
            is_due = is_silent or (version != seen and began_s >= next_s)
            views = (
                list(self._pages)
                if is_due
                else [view for view in self._pages if view not in self._newest]
            )
            took_s = 0.0
            if views:
                try:
                    took_s = await self._tell(views)
                except Exception:  # the next round may do better
                    _log.exception("the present could not be told")
            if is_due:
                seen, told_s, next_s = version, began_s, began_s + pause_s(took_s)
            until_s = next_s if next_s > time.monotonic() else began_s + EVERY_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.01, until_s - time.monotonic())):
                    await self._wake.wait()

    async def _tell(self, views: Sequence[View]) -> float:
        """Give each page its document; the processor seconds that took."""
        made, took_s = await self._context.run(self._made, views)
        for view, content in made.items():
            pages = self._pages.get(view)
            if pages:
                self._newest[view] = content
                for page in pages:
                    page.give(content)
        return took_s

    def _made(self, views: Sequence[View]) -> tuple[dict[View, bytes], float]:
        began_s = time.thread_time()
        known: dict[tuple[str, str], bytes] = {}
        documents = self._observer.now(views)
        made = {
            view: b"event: now\ndata: " + joined(document, known) + b"\n\n"
            for view, document in zip(views, documents, strict=True)
        }
        return made, time.thread_time() - began_s
