"""Data of TPC-H as Parquet files, one per table, made by the program `tpchgen-cli`."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from queryard.core.errors import QueryardError

FIXED_BYTES = {"region": 1_800, "nation": 3_400}
BYTES_PER_SCALE = {
    "supplier": 0.9e6,
    "customer": 14e6,
    "part": 7e6,
    "partsupp": 46e6,
    "orders": 65e6,
    "lineitem": 240e6,
}
"""How large each table becomes, about; for progress, and to see that the disk has room."""

TABLES = (*FIXED_BYTES, *BYTES_PER_SCALE)
LARGEST_SCALE = 100_000.0  # beyond it, keys of the specification do not fit their columns
POLL_S = 0.2

Progress = Callable[[float, str], None]
"""Called with the share done (0 to 1, an estimate until the end) and a line to show."""


class TpchError(QueryardError):
    """TPC-H data that cannot be made, or a query that does not exist."""


def generate(
    directory: str | os.PathLike[str], scale: float, progress: Progress | None = None
) -> tuple[Path, ...]:
    """Make the eight tables at a scale factor (1 is about 370 MB) and return their files.

    Tables of this scale that are already there are kept, so a second call costs nothing, and one
    that was interrupted goes on. Data of another scale, or of unknown origin, is never replaced.
    Every file appears whole or not at all.
    """
    scale = _checked_scale(scale)
    folder = Path(directory)
    _make_folder(folder)
    _claim(folder, scale)
    files = tuple(folder / f"{table}.parquet" for table in TABLES)
    missing = [file.stem for file in files if not file.exists()]
    if missing:
        _check_room(folder, missing, scale)
        _make(folder, missing, scale, progress or _unseen)
    if progress is not None:
        progress(1.0, "done")
    return files


def _checked_scale(scale: float) -> float:
    if not (math.isfinite(scale) and 0 < scale <= LARGEST_SCALE):
        raise TpchError(
            f"TPC-H scale {scale!r}: must be a number above 0 and up to {LARGEST_SCALE:,.0f}; "
            "1 makes about 370 MB, 0.01 is enough for a first try"
        )
    return float(scale)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise TpchError(f"{folder}: is a file; name a folder for the TPC-H data") from error
    except OSError as error:
        raise _refused(folder, error) from error


def _claim(folder: Path, scale: float) -> None:
    """Say which scale the folder holds before the first table is there, or see that it fits."""
    note = folder / ".queryard" / "tpch.json"
    try:
        held = float(json.loads(note.read_text(encoding="utf-8"))["scale"])
    except FileNotFoundError:
        strangers = [table for table in TABLES if (folder / f"{table}.parquet").exists()]
        if strangers:
            raise TpchError(
                f"{folder}: holds {strangers[0]}.parquet of unknown scale, which is not replaced; "
                "choose another folder, or remove the file"
            ) from None
    except OSError as error:
        raise _refused(folder, error) from error
    except (ValueError, KeyError, TypeError) as error:
        raise TpchError(
            f"{note}: does not say which scale the folder holds; remove it and the tables"
        ) from error
    else:
        if held != scale:
            raise TpchError(
                f"{folder}: holds TPC-H at scale {held:g}, not {scale:g}; "
                "choose another folder, or remove this one"
            )
        return
    try:
        note.parent.mkdir(exist_ok=True)
        note.write_text(json.dumps({"scale": scale}) + "\n", encoding="utf-8")
    except OSError as error:
        raise _refused(folder, error) from error


def _expected_bytes(tables: Sequence[str], scale: float) -> float:
    return sum(FIXED_BYTES.get(table, BYTES_PER_SCALE.get(table, 0) * scale) for table in tables)


def _check_room(folder: Path, tables: Sequence[str], scale: float) -> None:
    needed, free = _expected_bytes(tables, scale), shutil.disk_usage(folder).free
    if needed > free:
        raise TpchError(
            f"{folder}: TPC-H at scale {scale:g} needs about {needed / 1e9:.1f} GB, "
            f"{free / 1e9:.1f} GB are free; choose a smaller scale or another disk"
        )


def _make(folder: Path, tables: Sequence[str], scale: float, progress: Progress) -> None:
    program = _program()
    try:
        workshop = Path(tempfile.mkdtemp(prefix=".tpch-", dir=folder))
    except OSError as error:
        raise _refused(folder, error) from error
    try:
        command = [program, "parquet", f"--scale-factor={scale!r}", f"--output-dir={workshop}"]
        _run(
            [*command, "--quiet", f"--tables={','.join(tables)}"], workshop, progress, tables, scale
        )
        for table in tables:
            made = workshop / f"{table}.parquet"
            if not made.exists():
                raise TpchError(f"{program}: ended well but made no {made.name}; is it version 4?")
            made.replace(folder / made.name)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _run(
    command: Sequence[str],
    workshop: Path,
    progress: Progress,
    tables: Sequence[str],
    scale: float,
) -> None:
    """Run to the end, telling how far it is from the bytes that are there."""
    expected = _expected_bytes(tables, scale)
    # Errors go to a file: a pipe that is not read could fill and block the program.
    with open(workshop / "errors.txt", "w+b") as errors:
        try:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        except OSError as error:
            raise TpchError(f"{command[0]}: cannot be run ({error.strerror or error})") from error
        try:
            while process.poll() is None:
                done = sum(map(_size, workshop.glob("*.parquet*")))
                progress(min(0.99, done / expected), "making TPC-H tables")
                time.sleep(POLL_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()
    if process.returncode:
        if "os error 28" in said or "No space left" in said:
            raise TpchError(
                f"{workshop.parent}: the disk is full before TPC-H at scale {scale:g} was done; "
                "make room or choose a smaller scale"
            )
        raise TpchError(
            f"{command[0]} failed with code {process.returncode}: {said or 'no reason'}"
        )


def _size(file: Path) -> int:
    """Bytes of a file that the program may give its final name at this moment."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _program() -> str:
    """The generator on the path, or beside the Python that runs."""
    name = "tpchgen-cli"
    found = shutil.which(name) or shutil.which(name, path=sysconfig.get_path("scripts"))
    if found is None:
        raise TpchError(
            f"{name} makes the TPC-H data and is not installed; "
            "install it with: pip install tpchgen-cli"
        )
    return found


def _refused(folder: Path, error: OSError) -> TpchError:
    if error.errno == errno.ENOSPC:
        return TpchError(f"{folder}: the disk is full; make room or choose another folder")
    reason = error.strerror or str(error)
    return TpchError(f"{folder}: cannot be written to ({reason}); choose another folder")


def _unseen(share: float, line: str) -> None:
    """Ignores progress."""
