"""The version of the installed package, for those that may not import the package as a whole."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("queryard")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
