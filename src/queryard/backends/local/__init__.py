"""This machine as a backend: slots are threads of this process."""

from .backend import LocalBackend
from .nodes import NODE, nodes_of

__all__ = ["NODE", "LocalBackend", "nodes_of"]
