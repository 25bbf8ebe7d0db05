"""The present, told to any number of open pages: each document is made and encoded once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

from ..observing.observer import Observer
from ..observing.visibility import Visibility
from ..principal import Principal
from .context import Context
from .events import REVOKED, event
from .replies import to_json

# How often a document is made at most, and how often at least.
EVERY_S = 0.4
ALIVE_S = 5.0
# What making documents may take of a core: after a long one there is a longer pause.
MOST_SHARE = 0.03
_log = logging.getLogger("queryard.service.http")


class Channel(NamedTuple):
    """Pages that see the same."""

    visibility: Visibility
    limit: int


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
        self._pages: dict[Channel, set[_Page]] = {}
        self._newest: dict[Channel, bytes] = {}
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

    async def stream(self, principal: Principal, limit: int) -> AsyncIterator[bytes]:
        """Events "now" for one page, until it leaves, its token is revoked or the server stops."""
        channel = Channel(Visibility.of(principal), limit)
        page = _Page()
        self._pages.setdefault(channel, set()).add(page)
        page.is_over = self._is_over
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())
        elif channel in self._newest:
            page.give(self._newest[channel])
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
            pages = self._pages[channel]
            pages.discard(page)
            if not pages:
                del self._pages[channel]
                self._newest.pop(channel, None)

    async def _run(self) -> None:
        """Make documents as long as pages are open, and something has happened."""
        seen: object = None
        told_s = float("-inf")
        while self._pages:
            self._wake.clear()
            began_s = time.monotonic()
            version = self._observer.version
            is_due = version != seen or began_s - told_s >= ALIVE_S - EVERY_S / 2
            channels = (
                list(self._pages)
                if is_due
                else [channel for channel in self._pages if channel not in self._newest]
            )
            took_s = 0.0
            if channels:
                try:
                    took_s = await self._tell(channels)
                except Exception:  # the next round may do better
                    _log.exception("the present could not be told")
            if is_due:
                seen, told_s = version, began_s
            rest_s = max(EVERY_S, took_s / MOST_SHARE) - (time.monotonic() - began_s)
            # A page of a new kind does not wait for the next round.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.01, rest_s)):
                    await self._wake.wait()

    async def _tell(self, channels: list[Channel]) -> float:
        """Give each page its document; the processor seconds that took."""
        made, took_s = await self._context.run(self._made, channels)
        for channel, content in made.items():
            pages = self._pages.get(channel)
            if pages:
                self._newest[channel] = content
                for page in pages:
                    page.give(content)
        return took_s

    def _made(self, channels: list[Channel]) -> tuple[dict[Channel, bytes], float]:
        began_s = time.thread_time()
        made = {
            channel: b"event: now\ndata: " + to_json(self._observer.now(*channel)) + b"\n\n"
            for channel in channels
        }
        return made, time.thread_time() - began_s
