"""Small data, and an end to every hang."""

from live.conftest import data, no_hang

__all__ = ["data", "no_hang"]
