"""The server over HTTP: queries by id, their rows, events and figures."""

from .application import create_app

__all__ = ["create_app"]
