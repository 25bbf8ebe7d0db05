"""What every template takes with the machine to itself, measured on plain DuckDB."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from queryard.core.errors import InvalidRecord, QueryardError
from queryard.engine.plain import PlainCursor, PlainDuckDB
from queryard.workload.load import Alone

from .ground import Ground

# After a first run that finds cold caches, up to so many, while they take no longer than this.
RUNS, ENOUGH_S = 3, 0.2
# What takes this long at first is not run again: it hardly matters how warm the caches were.
LONG_S = 10.0


@dataclass(slots=True)
class Measured:
    """Times by template, and why some have none."""

    alone: dict[str, Alone] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def work_s(self) -> dict[str, float]:
        """Core-seconds by template; what fails has none to do."""
        known = {name: found.work_s for name, found in self.alone.items()}
        return known | dict.fromkeys(self.failed, 0.0)


def measure_alone(
    ground: Ground,
    examples: Mapping[str, Sequence[str]],
    *,
    known: Measured | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Measured:
    """Run some texts of each template one after another, with all slots.

    A template's time is the mean of its runs after the first. Templates that are `known` are
    taken over as they are. The work is the CPU time of the process, so nothing else may run in it.
    """
    found = Measured() if known is None else Measured(dict(known.alone), dict(known.failed))
    missing = [name for name in examples if name not in found.alone and name not in found.failed]
    if missing:
        with PlainDuckDB(ground.catalog(), ground.slots, ground.memory_bytes) as duck:
            for number, name in enumerate(missing):
                if progress is not None:
                    progress(number / len(missing), f"alone: {name}")
                cursor = duck.cursor()
                try:
                    found.alone[name] = _measure(cursor, examples[name])
                except QueryardError as error:
                    found.failed[name] = str(error)
                finally:
                    cursor.close()
    if progress is not None:
        progress(1.0, "alone")
    return found


def _measure(cursor: PlainCursor, texts: Sequence[str]) -> Alone:
    runs = [_run(cursor, texts[0])]
    spent_s = 0.0
    while len(runs) <= RUNS and spent_s < ENOUGH_S and runs[0].alone_s < LONG_S:
        runs.append(_run(cursor, texts[len(runs) % len(texts)]))
        spent_s += runs[-1].alone_s
    warm = runs[1:] or runs
    return Alone(
        statistics.fmean(run.alone_s for run in warm), statistics.fmean(run.work_s for run in warm)
    )


def _run(cursor: PlainCursor, sql: str) -> Alone:
    began_s, cpu_s = time.perf_counter(), time.process_time()
    cursor.arrow(sql)
    return Alone(time.perf_counter() - began_s, time.process_time() - cpu_s)


def save_alone(measured: Measured, file: Path) -> None:
    """Keep what was measured, for runs to come."""
    plain = {
        "alone": {name: found._asdict() for name, found in measured.alone.items()},
        "failed": measured.failed,
    }
    file.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


def load_alone(file: Path) -> Measured:
    """What `save_alone` has kept."""
    try:
        plain = json.loads(file.read_text(encoding="utf-8"))
        alone = {
            str(name): Alone(float(found["alone_s"]), float(found["work_s"]))
            for name, found in plain["alone"].items()
        }
        return Measured(alone, {str(k): str(v) for k, v in plain["failed"].items()})
    except OSError as error:
        raise InvalidRecord(f"{file}: cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = "does not hold times alone; remove it, and they are measured again"
        raise InvalidRecord(f"{file}: {problem}") from error
