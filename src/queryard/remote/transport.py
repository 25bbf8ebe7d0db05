"""Requests to one server: kept connections, errors as exceptions, and patience.

A request that may be sent twice is sent again if its connection drops, for as long as a server may
take to restart.
"""

from __future__ import annotations

import contextlib
import json
import queue
import random
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from queryard.core.errors import QueryardError
from queryard.version import __version__

from .errors import ServerError, error_of

CONNECT_S = 10.0
# Beyond the time that a request asks the server to wait.
REPLY_S = 60.0
# How long a server that does not answer is asked again.
PATIENCE_S = 15.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
ARROW = "application/vnd.apache.arrow.stream"


class Transport:
    """A server by its URL, and the token that is shown to it; from any thread."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        ca: str | Path | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.url = _checked(url)
        self.patience_s = patience_s
        self._draw = random.Random()
        verify: ssl.SSLContext | bool = True
        if ca is not None:
            verify = _trusting(ca)
        self._http = httpx.Client(
            base_url=self.url,
            headers={
                "Authorization": f"Bearer {token}",
                "User-Agent": f"queryard/{__version__}",
            },
            timeout=httpx.Timeout(REPLY_S, connect=CONNECT_S, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
            verify=verify,
        )
        self._requests_later: queue.SimpleQueue[tuple[str, str] | None] = queue.SimpleQueue()
        self._runner: threading.Thread | None = None
        self._closed = False

    # --- requests --------------------------------------------------------------------------------

    def json(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        again: bool | None = None,
        wait_s: float = 0.0,
    ) -> Any:
        """What the server answers to a request; raises the problem that it tells.

        With `again` the request may be sent twice; by default if it only asks, or deletes.
        """
        with self.open(method, path, body=body, params=params, again=again, wait_s=wait_s) as reply:
            content = reply.read()
        return json.loads(content) if content else None

    @contextlib.contextmanager
    def open(self, method: str, path: str, **given: Any) -> Iterator[httpx.Response]:
        """The answer to a request, whose content has not been read yet."""
        response = self.begin(method, path, **given)
        with self.reading(response):
            yield response

    @contextlib.contextmanager
    def reading(self, response: httpx.Response) -> Iterator[None]:
        """Read the content of an answer inside, and close it."""
        try:
            yield
            response.read()
        except httpx.TransportError as error:
            raise self.unreachable(error) from None
        finally:
            response.close()

    def begin(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        accept: str = "application/json",
        again: bool | None = None,
        wait_s: float = 0.0,
    ) -> httpx.Response:
        """As `open`; the caller closes what is given back."""
        self._check_open()
        may_repeat = method in ("GET", "DELETE") if again is None else again
        pauses = self.pauses()
        while True:
            request = self._http.build_request(
                method,
                path,
                json=body,
                params=_given(params),
                headers={"Accept": accept},
                timeout=httpx.Timeout(REPLY_S + wait_s, connect=CONNECT_S, pool=None),
            )
            try:
                response = self._http.send(request, stream=True)
                if response.status_code < 400:
                    return response
                raise _problem(response)
            except httpx.TransportError as error:
                if (distrust := self._distrust(error)) is not None:
                    raise distrust from None
                # A connection that was never made has carried nothing.
                unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if not (may_repeat or unsent) or not next(pauses):
                    raise self.unreachable(error) from None

    def pauses(self) -> Iterator[bool]:
        """Longer and longer pauses, each before a True; False once patience has ended."""
        until_s = time.monotonic() + self.patience_s
        pause_s = FIRST_PAUSE_S
        while time.monotonic() < until_s and not self._closed:
            # Many clients of a server that restarts must not come back in step.
            time.sleep(pause_s * self._draw.uniform(0.5, 1.5))
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
            yield True
        while True:
            yield False

    def unreachable(self, error: Exception) -> ServerError:
        """The error after patience has ended."""
        return ServerError(
            f"{self.url}: the server cannot be reached ({str(error) or type(error).__name__}); "
            "look whether it runs (queryard serve), and whether the address is right"
        )

    def _distrust(self, error: BaseException) -> ServerError | None:
        """What to do about a certificate, or about TLS, on which patience would be wasted."""
        found: BaseException | None = error
        while found is not None and not isinstance(found, ssl.SSLError):
            found = found.__cause__ or found.__context__
        if isinstance(found, ssl.SSLCertVerificationError):
            return ServerError(
                f"{self.url}: the certificate of the server is not trusted "
                f"({found.verify_message}); name the certificate that has signed it, as a PEM "
                "file: ca=… in Python, QUERYARD_CA, or ca in the file of the server's address. "
                "The server's name must be one of the names in the certificate"
            )
        if isinstance(found, ssl.SSLError):
            return ServerError(
                f"{self.url}: there is no TLS at this address ({found.reason or found}); if the "
                "server has no certificate, its address begins with http://"
            )
        return None

    def _check_open(self) -> None:
        if self._closed:
            raise QueryardError("the session is closed; open another with queryard.connect")

    # --- requests without an answer -----------------------------------------------------------

    def later(self, method: str, path: str) -> None:
        """Send a request whose answer does not matter; a finalizer may call this."""
        if self._closed:
            return
        self._requests_later.put((method, path))
        if self._runner is None:
            self._runner = threading.Thread(
                target=self._send_later, name="queryard-later", daemon=True
            )
            self._runner.start()

    def _send_later(self) -> None:
        while (request := self._requests_later.get()) is not None:
            with contextlib.suppress(QueryardError, RuntimeError):
                self.begin(*request, again=False).close()

    def close(self) -> None:
        """Close all connections; it may be called again."""
        if self._closed:
            return
        if self._runner is not None:
            self._requests_later.put(None)
            self._runner.join(CONNECT_S)
        self._closed = True
        self._http.close()

    @property
    def closed(self) -> bool:
        return self._closed


def _trusting(ca: str | Path) -> ssl.SSLContext:
    """A context that trusts the certificates in a file, and no others."""
    try:
        return ssl.create_default_context(cafile=str(Path(ca).expanduser()))
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if isinstance(error, FileNotFoundError) else str(error)
        raise QueryardError(
            f"ca: {ca}: no certificates can be read there ({reason}); name a PEM file with the "
            "certificate that has signed the server's, or with the server's own if it has signed "
            "itself"
        ) from None


def _checked(url: str) -> str:
    found = httpx.URL(url)
    if found.scheme not in ("http", "https") or not found.host:
        raise QueryardError(f"{url}: is no address of a server; give one as http://host:8080")
    return str(found).rstrip("/")


def _given(params: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if params is None:
        return None
    return {name: value for name, value in params.items() if value is not None}


def _problem(response: httpx.Response) -> QueryardError:
    """The error that an answer tells of; it is read to its end."""
    try:
        content = response.read()
    finally:
        response.close()
    try:
        told = json.loads(content)
    except ValueError:
        told = None
    if isinstance(told, dict) and "detail" in told:
        return error_of(told)
    text = content[:200].decode(errors="replace")
    return ServerError(
        f"{response.url}: answered with status {response.status_code} ({text!r}), which is no "
        "answer of a Queryard server; look whether the address is right"
    )
