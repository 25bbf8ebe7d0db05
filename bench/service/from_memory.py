"""The answers of a PostgreSQL server, sent again from memory: what its clients take by themselves.

`Recording` passes a client's connections on to a server and notes what the server answers to each
request. Then a process sends the same bytes, as fast as the client takes them:

python -m bench.service.from_memory PORT ANSWERS
"""

from __future__ import annotations

import contextlib
import pickle
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from .setting import free_port

SSL_REQUEST, CANCEL_REQUEST = 80877103, 80877102
AUTHENTICATED = b"R\0\0\0\x08\0\0\0\0"
START = b""
# Names that a client counts up from connection to connection.
_COUNTED = re.compile(rb"[sp]\d+\0")


class Recording:
    """`port` is where clients connect; `answers` are the server's, by request.

    The server asks for SCRAM.
    """

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self.answers: dict[bytes, bytes] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with contextlib.suppress(EOFError, OSError), client:
            place = ("127.0.0.1", self._server_port)
            with socket.create_connection(place) as server:
                start = _startup(client)
                server.sendall(start)
                asking = threading.Thread(target=_copy_logins, args=(client, server), daemon=True)
                asking.start()
                answer = _until_ready(server, client)
                asking.join()
                self.answers[START] = answer[answer.index(AUTHENTICATED) :]
                while True:
                    request = _request(client)
                    server.sendall(request)
                    self.answers[_key(request)] = _until_ready(server, client)

    def close(self) -> None:
        self._listener.close()


@contextlib.contextmanager
def from_memory(answers: dict[bytes, bytes]) -> Iterator[int]:
    """The port of a process that sends these answers."""
    with tempfile.TemporaryDirectory(prefix="queryard-bench-answers-") as folder:
        file, port = Path(folder) / "answers", free_port()
        file.write_bytes(pickle.dumps(answers))
        command = [sys.executable, "-m", __name__, str(port), str(file)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() != b"ready":
                raise SystemExit("error: the answers cannot be sent from memory")
            yield port
        finally:
            process.terminate()
            process.wait()


def _serve(port: int, answers: dict[bytes, bytes]) -> None:
    def talk(client: socket.socket) -> None:
        with contextlib.suppress(EOFError, OSError), client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _startup(client)
            client.sendall(answers[START])
            while True:
                client.sendall(answers[_key(_request(client))])

    listener = socket.create_server(("127.0.0.1", port))
    print("ready", flush=True)
    while True:
        threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()


# --- messages ------------------------------------------------------------------------------------


def _startup(client: socket.socket) -> bytes:
    """The first message of a client, which is told that there is no TLS."""
    while True:
        head = _exactly(client, 8)
        length, code = struct.unpack("!II", head)
        if code == SSL_REQUEST:
            client.sendall(b"N")
            continue
        if code == CANCEL_REQUEST:
            raise EOFError
        return head + _exactly(client, length - 8)


def _request(client: socket.socket) -> bytes:
    """All messages of a client up to one that the server answers with ReadyForQuery."""
    found = b""
    while True:
        message = _message(client)
        if message[:1] == b"X":
            raise EOFError
        found += message
        if message[:1] in (b"Q", b"S"):
            return found


def _key(request: bytes) -> bytes:
    """What a request says, without lengths and counted names."""
    said, at = b"", 0
    while at < len(request):
        end = at + 1 + struct.unpack_from("!I", request, at + 1)[0]
        said += request[at : at + 1] + _COUNTED.sub(b"\0", request[at + 5 : end])
        at = end
    return said


def _copy_logins(client: socket.socket, server: socket.socket) -> None:
    """Pass on what a client answers to the two questions of SCRAM."""
    with contextlib.suppress(EOFError, OSError):
        for _ in range(2):
            server.sendall(_message(client))


def _until_ready(server: socket.socket, client: socket.socket) -> bytes:
    """Pass on all messages of a server up to ReadyForQuery; what they were."""
    parts: list[bytes] = []
    while True:
        parts.append(_message(server))
        client.sendall(parts[-1])
        if parts[-1][:1] == b"Z":
            return b"".join(parts)


def _message(connection: socket.socket) -> bytes:
    head = _exactly(connection, 5)
    return head + _exactly(connection, struct.unpack("!I", head[1:])[0] - 4)


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        part = connection.recv(count - len(found))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), pickle.loads(Path(sys.argv[2]).read_bytes()))
