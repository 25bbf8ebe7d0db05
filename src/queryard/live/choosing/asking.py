"""What is asked of a worker, and within which limits; each call is on a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from queryard.portfolio.present import try_present
from queryard.portfolio.processes import Allowance, Answer, Process

from .questions import Question

# What one decision may take in all; a long queue is not followed to its end.
MOST_CPU_S = 2.0
# The share of a core is kept to by waiting between decisions. One under way is wanted soon: over a
# queue of fifty, 0.1 s, it may use a core; a longer one leaves half of it to queries. One that
# spins is ended by the system, whatever becomes of this process.
ALLOWANCE = Allowance(share=0.5, at_once_s=0.25, cpu_s=2 * MOST_CPU_S, memory_bytes=float(1 << 30))
NICE = 1


class Worker(Protocol):
    """What tries candidates out; a `Process`, or that of a test."""

    def ask(self, request: Callable[..., Any]) -> Answer: ...
    def cpu_s(self) -> float | None: ...
    def kill(self) -> None: ...


@dataclass(slots=True)
class Reply:
    """What became of a question, or of a start: an answer, or an error."""

    question: Question | None
    answer: Answer | None = None
    error: str = ""


def process() -> Worker:
    """A worker that is about to start."""
    return Process(ALLOWANCE, NICE)


def put(worker: Worker | None, question: Question) -> Reply | None:
    """What a worker makes of a question; None without a worker, since the portfolio is closed."""
    if worker is None:
        return None
    reply = Reply(question)
    try:
        request = partial(
            try_present,
            question.fork.without_sharers(),
            question.candidates,
            MOST_CPU_S,
            question.pace,
            question.expected,
        )
        reply.answer = worker.ask(request)
    except Exception as error:
        reply.error = f"the worker failed ({error})"
    return reply
