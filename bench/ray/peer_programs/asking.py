"""What the programs of all peers have in common; run with an interpreter that has the peers.

A program reads an order (JSON): tables, queries by name, how often each is asked alone, where to
put temporary files, checks of right answers. It writes an answer: seconds alone, seconds of all at
once, a check of the rows of each query, and what could not be asked. It is written after each step,
so that of a program that is ended because it takes too long there is what it had by then.
"""

from __future__ import annotations

import json
import math
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

Ask = Callable[[str], Iterable[Sequence[Any]]]
"""All rows of a query, by its name."""
LEAST_LIMIT_S = 60.0
WIDTHS = (1, 2, 4)


def order() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    return found


def check(rows: Iterable[Sequence[Any]]) -> list[float]:
    """How many rows there are, and the sum of all numbers in them."""
    number, total = 0, 0.0
    for row in rows:
        number += 1
        for value in row:
            if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
                total += float(value)
    return [number, total]


def is_same(found: Sequence[float], expected: Sequence[float]) -> bool:
    """Whether two checks are those of one answer."""
    return found[0] == expected[0] and math.isclose(
        found[1], expected[1], rel_tol=1e-6, abs_tol=1e-2
    )


@dataclass
class Answer:
    """Seconds of each query: alone (of several runs), and from the start of all at once."""

    alone_s: dict[str, list[float]] = field(default_factory=dict)
    at_once_s: dict[str, float] = field(default_factory=dict)
    checks: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    width: int = 0
    """How many were under way at once."""

    def write(self) -> None:
        file = Path(sys.argv[2])
        part = file.with_suffix(".part")
        part.write_text(json.dumps(asdict(self)), encoding="utf-8")
        part.replace(file)


def run(ask: Ask, asked: dict[str, Any]) -> None:
    """Ask all queries one by one, then those with right answers at once, and write what came."""
    names: list[str] = asked["queries_in_order"]
    answer = Answer()
    for name in names:
        for _ in range(asked["times"]):
            began_s = time.perf_counter()
            try:
                found = ask(name)
                taken_s = time.perf_counter() - began_s
                answer.checks[name] = check(found)
            except Exception as error:
                answer.errors[name] = f"{type(error).__name__}: {str(error)[:300]}"
                break
            answer.alone_s.setdefault(name, []).append(taken_s)
        _tell(f"{name}: {answer.alone_s.get(name, answer.errors.get(name))}")
        answer.write()
    right = [n for n, found in answer.checks.items() if is_same(found, asked["expected"][n])]
    right = [name for name in right if name not in answer.errors]
    limit_s = LEAST_LIMIT_S + 10 * sum(max(answer.alone_s[name]) for name in right)
    _ask_at_once(ask, right, answer, limit_s)


def _ask_at_once(ask: Ask, names: Sequence[str], answer: Answer, limit_s: float) -> None:
    """All queries wait from the start, so many are under way; the width with the best mean counts.

    Some peers are much slower if all are under way at once (Daft's runner on Ray then answers in
    steps of a second), and their users would let them wait instead.
    """
    errors = dict(answer.errors)
    best = (len(names) + 1, math.inf)
    # All at once comes first, as Queryard is asked: of a program that is ended that is known.
    for width in sorted({len(names), *(w for w in WIDTHS if w < len(names))} - {0}, reverse=True):
        taken_s, failed = _at_once(ask, names, width, limit_s)
        mean_s = sum(taken_s.values()) / max(1, len(taken_s))
        _tell(f"{len(taken_s)} of {len(names)} at once, {width} under way: mean {mean_s:.2f} s")
        if (len(failed), mean_s) < best:
            best = len(failed), mean_s
            answer.width, answer.at_once_s = width, taken_s
            answer.errors = {**errors, **failed}
            answer.write()


def _at_once(
    ask: Ask, names: Sequence[str], width: int, limit_s: float
) -> tuple[dict[str, float], dict[str, str]]:
    """Seconds from the start to each answer, and the errors; none within the limit is one."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    taken_s: dict[str, float] = {}
    failed: dict[str, str] = {}
    began_s = time.perf_counter()

    def work() -> None:
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                for _ in ask(name):
                    pass
            except Exception as error:
                failed[name] = f"at once: {type(error).__name__}: {str(error)[:300]}"
            else:
                taken_s[name] = time.perf_counter() - began_s

    # A peer that hangs must not keep the program.
    threads = [threading.Thread(target=work, daemon=True) for _ in range(width)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, began_s + limit_s - time.perf_counter()))
    found = dict(taken_s)
    late = dict.fromkeys(names, f"at once: no answer within {limit_s:.0f} s")
    return found, {name: failed.get(name, late[name]) for name in names if name not in found}


def _tell(line: str) -> None:
    print(f"    {line}", file=sys.stderr, flush=True)
