"""Watchers hear of a beginning at once, and of ends together; but before anything is shown."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from queryard.service import watchers as module
from queryard.service.watchers import Watchers


@dataclass(frozen=True)
class Query:
    id: str


@dataclass
class Noted:
    """What it heard, and on which threads."""

    fails: bool = False
    heard: list[str] = field(default_factory=list)
    threads: set[threading.Thread] = field(default_factory=set)

    def began(self, submitted: Query) -> None:
        self.heard.append(f"{submitted.id} began")

    def ended(self, submitted: Query) -> None:
        self.heard.append(f"{submitted.id} ended")
        self.threads.add(threading.current_thread())
        if self.fails:
            raise ValueError("a defect")


@pytest.fixture
def watchers():
    made = Watchers()
    yield made
    made.close()


def test_ends_are_told_in_order_and_once_before_something_is_shown(watchers, monkeypatch):
    monkeypatch.setattr(module, "GATHER_S", 1000.0)
    first, second = Noted(fails=True), Noted()
    watchers.add(first)
    watchers.add(second)
    for number in range(3):
        watchers.began(Query(f"q{number}"))
        watchers.ended(Query(f"q{number}"))
    began = [f"q{number} began" for number in range(3)]
    assert second.heard == began
    for _ in range(2):
        watchers.tell()
    assert first.heard == second.heard == [*began, *(f"q{number} ended" for number in range(3))]
    monkeypatch.undo()


def test_ends_are_told_soon_by_another_thread(watchers):
    noted, heard = Noted(), threading.Event()
    watchers.add(noted)
    real = noted.ended
    noted.ended = lambda submitted: (real(submitted), heard.set())  # type: ignore[method-assign]
    watchers.ended(Query("q"))
    assert heard.wait(20)
    assert noted.threads.isdisjoint({threading.current_thread()})


def test_a_prompt_watcher_hears_of_ends_at_once(watchers, monkeypatch):
    monkeypatch.setattr(module, "GATHER_S", 1000.0)
    prompt, other = Noted(), Noted()
    watchers.add(other)
    watchers.add(prompt, prompt=True)
    watchers.began(Query("q"))
    watchers.ended(Query("q"))
    assert prompt.heard == ["q began", "q ended"]
    assert other.heard == ["q began"]
    watchers.tell()
    assert prompt.heard == other.heard == ["q began", "q ended"]


def test_the_last_ends_are_told_at_the_close_and_later_ones_at_once():
    watchers, noted = Watchers(), Noted()
    watchers.add(noted)
    watchers.ended(Query("q1"))
    watchers.close()
    assert noted.heard == ["q1 ended"]
    watchers.ended(Query("q2"))
    assert noted.heard == ["q1 ended", "q2 ended"]
