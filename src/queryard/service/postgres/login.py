"""From a new connection to a session: encryption, the start-up packet, SCRAM."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from ..principal import Principal
from ..tokens import TokenStore
from . import replies
from .errors import BadFrame, FatalError
from .scram import MECHANISM, Exchange, first_words, mock_verifier, text_of
from .startup import CancelRequest, EncryptionRequest, Startup, read_startup
from .wire import Wire


@dataclass(frozen=True, slots=True)
class Login:
    """A client that has shown a valid token."""

    principal: Principal
    startup: Startup

    @property
    def database(self) -> str:
        return self.startup.parameters.get("database") or self.principal.name


async def log_in(
    wire: Wire,
    tokens: TokenStore,
    context: ssl.SSLContext | None,
    cancel: Callable[[CancelRequest], None],
) -> Login | None:
    """A login; None for a connection that only wanted to cancel a query."""
    startup = await _startup(wire, context, cancel)
    if startup is None:
        return None
    if context is not None and not wire.encrypted:
        raise FatalError("28000", "this server wants TLS: connect with sslmode=require")
    if startup.needs_negotiation:
        wire.send(replies.negotiate(startup.agreed_minor, startup.unknown_options))
    parameters = startup.parameters
    if parameters.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise FatalError("0A000", "replication is not possible with this server")
    user = parameters.get("user", "")
    if not user:
        raise FatalError("28000", "no PostgreSQL user name specified in startup packet")
    principal = await _prove(wire, tokens, user)
    wire.logged_in()
    return Login(principal, startup)


async def _startup(
    wire: Wire, context: ssl.SSLContext | None, cancel: Callable[[CancelRequest], None]
) -> Startup | None:
    asked = set()
    while True:
        request = read_startup((await wire.receive()).body)
        if isinstance(request, CancelRequest):
            cancel(request)
            return None
        if isinstance(request, Startup):
            wire.started()
            return request
        if request.method in asked or wire.encrypted:
            raise BadFrame(f"{request.method} encryption was asked for twice")
        asked.add(request.method)
        await _answer(wire, request, context)
        wire.next_packet()


async def _answer(wire: Wire, request: EncryptionRequest, context: ssl.SSLContext | None) -> None:
    if request.method == "TLS" and context is not None:
        await wire.encrypt(context, replies.TLS_ACCEPTED)
    else:
        wire.send(replies.ENCRYPTION_REFUSED)


async def _prove(wire: Wire, tokens: TokenStore, user: str) -> Principal:
    """Let the client show that it has the token; the token itself is not sent."""
    refused = FatalError("28P01", f'password authentication failed for user "{user}"')
    principal = tokens.principal(user)
    verifier = tokens.verifier(user)
    exchange = Exchange(verifier or mock_verifier(user))
    wire.send(replies.ask_for_scram([MECHANISM]))
    challenge = exchange.challenge(first_words(await _secret(wire)))
    wire.send(replies.scram_goes_on(challenge))
    proof = exchange.verify(text_of(await _secret(wire)))
    # The token may have been made again meanwhile: then the proof is that of another one.
    if proof is None or verifier is None or principal is None or not tokens.holds(principal):
        raise refused
    wire.send(replies.scram_ends(proof))
    return principal


async def _secret(wire: Wire) -> bytes:
    frame = await wire.receive()
    if frame.letter != "p":
        raise BadFrame(f"expected SASL response, got message type {frame.kind}")
    return frame.body
