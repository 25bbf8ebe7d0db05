"""Where data lies: paths, patterns and URIs, turned into lists of files.

Local files are plain paths (absolute, relative, `~`) or `file://` URIs. Any other scheme goes
through fsspec, if it and the package for that scheme are installed. A path that exists is meant as
it is written, even with the signs of a pattern in it.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from .formats import format_of, is_hidden
from .listing import Listing, local_file_of
from .model import CatalogError, DataFile
from .quoting import has_magic

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def scheme_of(uri: str) -> str:
    """The scheme of a URI that is not local, else an empty string.

    >>> scheme_of("s3://bucket/x.parquet"), scheme_of("file:///x.csv"), scheme_of("a/b.csv")
    ('s3', '', '')
    """
    found = _SCHEME.match(uri)
    return "" if found is None or found[1].lower() == "file" else found[1].lower()


def local_path(uri: str, base: Path | None = None) -> Path:
    """The absolute path of a local file; relative ones start at `base`, or where we are."""
    if uri.lower().startswith("file://"):
        parts = urlsplit(uri)
        if parts.netloc not in ("", "localhost"):
            raise CatalogError(
                f"{uri}: names the machine {parts.netloc!r}; local files are file:///path"
            )
        return Path(os.path.abspath(unquote(parts.path)))
    if not uri.startswith("~") and (os.path.isabs(uri) or (base and base.is_absolute())):
        return _below(uri, base)
    path = Path(uri).expanduser()
    return Path(os.path.abspath(path if base is None else base / path))


@lru_cache(maxsize=4_096)
def _below(uri: str, base: Path | None) -> Path:
    """The same where it depends on nothing else: every statement asks for the same few."""
    return Path(os.path.abspath(uri if base is None else base / uri))


def list_files(uri: str, base: Path | None, listing: Listing) -> Sequence[DataFile]:
    """The files of a location, sorted: a file, all data files below a folder, or a pattern's."""
    if not uri:
        raise CatalogError("an empty text is no location; give a path, a pattern or a URI")
    if scheme_of(uri):
        return _remote_files(uri)
    path = local_path(uri, base)
    if path.is_dir():
        if found := listing.below(str(path)):
            return found
        raise CatalogError(f"{path}: the folder holds no data file")
    if path.exists():
        return (listing.file(str(path)),)
    if not has_magic(str(path)):
        raise CatalogError(f"{path}: no such file or folder")
    if found := listing.matching(str(path)):
        return found
    raise CatalogError(f"{path}: no file matches the pattern")


def local_file(path: Path) -> DataFile:
    """A local file with its size and fingerprint."""
    try:
        status = path.stat()
    except OSError as error:
        raise CatalogError(f"{path}: cannot be looked at ({error.strerror or error})") from error
    return local_file_of(str(path), status)


def filesystem(scheme: str) -> Any:
    """The fsspec file system of a scheme, to be registered with DuckDB as well."""
    return _with_fsspec(f"{scheme}://", lambda fsspec: fsspec.filesystem(scheme))


def _remote_files(uri: str) -> list[DataFile]:
    def look(fsspec: Any) -> list[DataFile]:
        system, path = fsspec.core.url_to_fs(uri)
        if system.isfile(path):
            names = [path]
        elif system.isdir(path):
            names = [
                name
                for name in system.find(path)
                if format_of(name) and not any(map(is_hidden, name[len(path) :].split("/")))
            ]
        else:
            names = [name for name in system.glob(path) if system.isfile(name)]
        return [
            DataFile(
                str(system.unstrip_protocol(name)),
                _size(system.size(name)),
                str(system.ukey(name)),
            )
            for name in sorted(names)
        ]

    found: list[DataFile] = _with_fsspec(uri, look)
    if not found:
        raise CatalogError(f"{uri}: there is no such file, and nothing that matches")
    return found


def _size(told: int | None) -> int:
    """The bytes of a file; a server that does not tell them has at least one."""
    return 1 if told is None else int(told)


def _with_fsspec(uri: str, use: Callable[[Any], Any]) -> Any:
    try:
        fsspec = importlib.import_module("fsspec")
    except ImportError as error:
        raise CatalogError(
            f"{uri}: locations other than local files are read through fsspec, "
            "which is not installed; install it with: pip install fsspec"
        ) from error
    try:
        return use(fsspec)
    except CatalogError:
        raise
    except ImportError as error:  # the package for this scheme; the message names it
        raise CatalogError(f"{uri}: {error}") from error
    except Exception as error:  # every implementation has errors of its own
        raise CatalogError(f"{uri}: cannot be listed ({error})") from error
