"""Small data."""

from live.conftest import data

__all__ = ["data"]
