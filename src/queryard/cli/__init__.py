"""The command line: `queryard sql`, `queryard shell`, `queryard compare` and the others."""

from .app import main

__all__ = ["main"]
