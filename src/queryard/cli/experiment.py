"""`queryard experiment`: where the papers' experiments are, which are not installed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer

from queryard.core.errors import QueryardError
from queryard.version import __version__

PACKAGE = Path("research", "__main__.py")


class NotInstalled(QueryardError):
    """A command that runs from a checkout only."""


def experiment(context: typer.Context) -> None:
    """Say how to run the papers' experiments: from a checkout, by `python -m research`.

    They are not part of the installed package. In a checkout, `python -m research` lists them and
    `python -m research NAME` runs one.
    """
    own_root = Path(__file__).parents[3]
    checkout = checkout_of([Path.cwd(), *Path.cwd().parents, own_root])
    raise NotInstalled(advice(checkout, context.args))


def checkout_of(folders: Iterable[Path]) -> Path | None:
    """The first of these folders that holds the experiments."""
    return next((folder for folder in folders if (folder / PACKAGE).is_file()), None)


def advice(checkout: Path | None, args: Sequence[str]) -> str:
    """How to run the experiments with these arguments.

    >>> advice(None, ["tls-lodfa", "--seeds", "3"]).partition("run there: ")[2]
    "make research RUN='tls-lodfa --seeds 3'"
    """
    if checkout is None:
        run = f" RUN={shlex.quote(shlex.join(args))}" if args else ""
        return (
            "the experiments are not part of the installed package: get a checkout of Queryard's "
            f"repository, or unpack the source archive queryard-{__version__}.tar.gz, and run "
            f"there: make research{run}"
        )
    # This interpreter has what the experiments need; another `python` may not.
    command = shlex.join([sys.executable, "-m", "research", *args])
    if checkout != Path.cwd():
        command = f"cd {shlex.quote(str(checkout))} && {command}"
    return f"the experiments run from a checkout: {command}"
