"""The command line: `queryard policies`, `queryard simulate`, `queryard compare`."""

from .app import main

__all__ = ["main"]
