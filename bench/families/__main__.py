"""Makes the data of a family: `python -m bench.families NAME --data DIR [--size 1]`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.progress import Progress as Bar

from queryard.core.errors import QueryardError

from . import NAMES, Progress, family


@contextmanager
def shown() -> Iterator[Progress]:
    """A bar for what makes data."""
    with Bar(transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda share, line: bar.update(task, completed=share, description=line)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.families", description=__doc__)
    parser.add_argument("family", help=", ".join(NAMES))
    parser.add_argument("--data", type=Path, required=True, help="the folder for its tables")
    parser.add_argument("--size", type=float, default=1.0, help="1 is 0.3 to 1 GB of Parquet")
    given = parser.parse_args(arguments)
    try:
        chosen = family(given.family)
        with shown() as progress:
            chosen.make(given.data.absolute(), given.size, progress)
        held = sum(file.stat().st_size for file in chosen.files(given.data).values())
        count = len(chosen.queries(given.data))
    except QueryardError as error:
        raise SystemExit(f"error: {error}") from error
    print(f"{given.data}: {held / 1e6:.0f} MB, {len(chosen.tables)} tables, {count} queries")


if __name__ == "__main__":
    main()
