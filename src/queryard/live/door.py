"""The way into a host: open, closed or broken; and what callers wait for at its loop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import CancelledError
from typing import TypeVar

from queryard.core.errors import QueryardError
from queryard.results.ownership import Owner

from . import inputs
from .coordinating import Coordinator
from .effect_runner import EffectRunner
from .inputs import ClientPort
from .loop import Loop

T = TypeVar("T")


class Door:
    """`post` goes to the mailbox of the `loop`; `effects` bring its replies. From any thread."""

    def __init__(
        self,
        owner: Owner,
        post: Callable[[inputs.Input], None],
        loop: Loop,
        effects: EffectRunner,
    ) -> None:
        self.owner = owner
        self.post = post
        self._loop = loop
        self._effects = effects
        self._closing = threading.Lock()
        self.closed = False
        # The error that has ended the loop.
        self.broken: BaseException | None = None

    @property
    def is_deaf(self) -> bool:
        """Whether the loop has ended: what is posted from now on is not heard."""
        return self.broken is not None or self._loop.over

    def check_open(self) -> None:
        """Raise in a forked process, and where the host is closed or has failed."""
        self.owner.check()
        if self.closed:
            raise QueryardError("the session is closed; open another with queryard.connect")
        if self.broken is not None:
            raise QueryardError(
                "the session's scheduler has failed, which is a defect of Queryard's own "
                f"({type(self.broken).__name__}: {self.broken}); close the session and open "
                "another with queryard.connect"
            )

    def ask(self, question: Callable[[Coordinator], T]) -> T:
        """An instant question to the coordinator, on its own thread."""
        self.owner.check()
        return self._loop.ask(question)

    def call(self, token: Hashable, given: inputs.Input) -> str:
        """Post something and wait for its reply."""
        reply = self._effects.expect(token)
        self.post(given)
        if self.is_deaf:
            reply.cancel()
        try:
            return reply.result()
        except CancelledError:
            self.check_open()
            raise

    @contextlib.contextmanager
    def own_connection(self, client: ClientPort) -> Iterator[None]:
        """Hold the client's own connection: wait until no statement uses it, and block others."""
        token = object()
        self.check_open()
        try:
            self.call(token, inputs.AcquireConnection(token, client))
            yield
        finally:
            self.post(inputs.ReleaseConnection(token, client))

    @contextlib.contextmanager
    def turn(self, client: ClientPort, wants: Mapping[str, bool]) -> Iterator[None]:
        """Hold databases: wait until no other client uses them in a way that does not go along."""
        token = object()
        self.check_open()
        try:
            self.call(token, inputs.AcquireTurn(token, client, wants))
            yield
        finally:
            self.post(inputs.ReleaseTurn(token))

    def close(self) -> bool:
        """Let no caller in from now on; whether it was open."""
        with self._closing:
            was_open = not self.closed
            self.closed = True
            return was_open
