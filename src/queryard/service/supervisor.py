"""Telling the process that started the server how far it is: systemd's protocol."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Send a state, as "READY=1", where `NOTIFY_SOCKET` names a receiver; else do nothing."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address or not hasattr(socket, "AF_UNIX"):
        return
    if address.startswith("@"):  # a name that is in no folder
        address = "\0" + address[1:]
    # A supervisor that does not listen is no reason to stop.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.sendto(state.encode(), address)
