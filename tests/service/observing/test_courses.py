"""What is kept of the provisional answers of queries that have ended."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa

from queryard.results.online import AnswerLog, exact_answer
from queryard.service.observing import courses
from queryard.service.observing.courses import NO_COURSE, Courses


def ended(name: str, rows: int = 1, *, online: bool = True) -> SimpleNamespace:
    """A query that has answered once, as the yard tells of it."""
    log = AnswerLog()
    log.put(exact_answer(pa.table({"x": list(range(rows))}), ("BIGINT",), 1.0))
    asked = SimpleNamespace(log=log) if online else None
    return SimpleNamespace(id=name, ticket=SimpleNamespace(request=SimpleNamespace(online=asked)))


def test_the_last_answer_is_kept_with_the_course_unless_it_is_large():
    kept = Courses(redacts=False)
    for query in (ended("small", 3), ended("large", 100_000), ended("plain", online=False)):
        kept.ended(query)
    assert kept.of("small").last.table.to_pydict() == {"x": [0, 1, 2]}
    assert len(kept.of("small").points) == len(kept.of("large").points) == 1
    assert kept.of("large").last is None
    assert kept.of("plain") == kept.of("unknown") == NO_COURSE


def test_where_literals_are_redacted_no_answer_is_kept():
    kept = Courses(redacts=True)
    kept.ended(ended("small"))
    assert len(kept.of("small").points) == 1
    assert kept.of("small").last is None


def test_answers_of_the_last_queries_are_kept_only(monkeypatch):
    monkeypatch.setattr(courses, "KEPT", 2)
    kept = Courses(redacts=False)
    for number in range(3):
        kept.ended(ended(f"q{number}"))
    assert kept.of("q0") == NO_COURSE
    assert kept.of("q2").last is not None
