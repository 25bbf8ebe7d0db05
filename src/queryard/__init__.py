"""Queryard: a yard where analytic queries are marshalled."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("queryard")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
