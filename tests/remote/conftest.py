"""An end to every hang."""

from live.conftest import no_hang

__all__ = ["no_hang"]
