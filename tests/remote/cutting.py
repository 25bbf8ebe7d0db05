"""A proxy between a client and a server that drops connections after some bytes."""

from __future__ import annotations

import contextlib
import socket
import threading


class CuttingProxy:
    """Hands bytes on in both directions; `cuts` are after how many bytes of an answer to stop.

    The first connection that gets so far takes each of them.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self.cuts: list[int] = []
        self.dropped = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = True
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Drop all connections, and take no more."""
        self._open = False
        for each in (self._listener, *self._sockets):
            _drop(each)

    def _accept(self) -> None:
        while self._open:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            self._sockets += [client, server]
            threading.Thread(target=self._copy, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._copy, args=(server, client, True), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            passed = 0
            while data := source.recv(65536):
                passed += len(data)
                if answers and self.cuts and passed >= self.cuts[0]:
                    self.cuts.pop(0)
                    self.dropped += 1
                    break
                target.sendall(data)
        for each in (source, target):
            _drop(each)


def _drop(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
