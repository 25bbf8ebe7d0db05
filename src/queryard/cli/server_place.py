"""Options that name a server's data, settings and tokens; what the extra `server` brings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from queryard.core.errors import QueryardError

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Settings (.toml): [service], [session], [tenants], [limits]; docs/service.md has "
        "all keys. Default: the data's own, where that is a catalog file.",
        show_default=False,
    ),
]
Tokens = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="Where tokens are kept. Default: .queryard/tokens.json beside the data.",
        show_default=False,
    ),
]


@contextmanager
def needing_server() -> Iterator[None]:
    """What the extra brings is imported inside; if it is missing, say how it is installed."""
    try:
        yield
    except ImportError as error:
        if error.name is None or error.name.startswith("queryard"):
            raise
        raise QueryardError(
            f"a server needs the package {error.name}, which is not installed; run "
            "pip install 'queryard[server]'"
        ) from error
