"""Every query from its submission to its end, without I/O: see `coordinator`."""

from .coordinator import Coordinator

__all__ = ["Coordinator"]
