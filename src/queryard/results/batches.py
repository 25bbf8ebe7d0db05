"""The batches of an answer, for `for` and for `async for`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any


class Batches(Iterator[Any]):
    """Record batches one after another; in asyncio, waiting for one blocks no other task."""

    def __init__(
        self, batches: Iterator[Any], when_more: Callable[[Callable[[], None]], None] | None = None
    ) -> None:
        """`when_more` calls something once a further batch is there, or none will come."""
        self._batches = batches
        self._when_more = when_more

    def __next__(self) -> Any:
        return next(self._batches)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self._when_more is not None:
            loop = asyncio.get_running_loop()
            there = asyncio.Event()

            def tell() -> None:
                # The event loop may be closed by the time: then nothing awaits the batch.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(there.set)

            self._when_more(tell)
            await there.wait()
        try:
            return next(self._batches)
        except StopIteration:
            raise StopAsyncIteration from None

    def close(self) -> None:
        """Hand over no more."""
        if (close := getattr(self._batches, "close", None)) is not None:
            close()
