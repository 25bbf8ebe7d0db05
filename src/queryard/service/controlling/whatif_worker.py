"""The process of a what-if: reads its job from its input, writes how far it is and what it found.

It is a fresh interpreter, gives way to all else, and ends when its input does, so that it does not
outlive the server.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from typing import IO, Any

from queryard.core.errors import QueryardError

from .whatif_job import Job, computed

NICE = 10
# How often progress is told at most.
EVERY_S = 0.2


def serve() -> None:
    """Compute the one job that comes on the input."""
    os.nice(NICE)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # whatever a library prints is no answer
    given = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    _tell(out, _answer(given, out))
    out.close()
    # Threads that wait for the input must not hold it up.
    os._exit(0)


def _answer(given: dict[str, Any], out: IO[str]) -> dict[str, Any]:
    told_s = -EVERY_S

    def hear(progress: float) -> None:
        nonlocal told_s
        if time.monotonic() - told_s >= EVERY_S:
            told_s = time.monotonic()
            _tell(out, {"progress": progress})

    try:
        policies, tenants = tuple(given["policies"]), tuple(map(tuple, given["tenants"]))
        return {"found": computed(Job(**{**given, "policies": policies, "tenants": tenants}), hear)}
    except QueryardError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "there was not enough memory; choose a shorter window"}
    except Exception as error:
        return {"error": f"a defect of Queryard's own ({type(error).__name__}: {error})"}


def _tell(out: IO[str], message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def _end_with_input() -> None:
    """The server has ended, or gives the what-if up."""
    with contextlib.suppress(OSError, ValueError):
        while sys.stdin.readline():
            pass
    os._exit(1)
