"""Which places are looked at again, and when."""

from __future__ import annotations

import os
import threading

import pytest
from waiting import wait_until

from queryard.sql.catalog import CatalogError, open_catalog
from queryard.sql.catalog.freshness import BUDGET_S, SHARE, Freshness
from queryard.sql.catalog.listing import Listing


class Clock:
    """Time that passes when the test says so, and with every look."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def looks(monkeypatch):
    """The folders that were listed, and how long each takes."""
    clock = Clock()
    listed: list[str] = []
    takes_s: dict[str, float] = {}
    below = Listing.below

    def counted(self: Listing, folder: str):
        name = folder.rpartition("/")[2]
        listed.append(name)
        clock.now_s += takes_s.get(name, 0.0)
        return below(self, folder)

    monkeypatch.setattr(Listing, "below", counted)
    return clock, listed, takes_s


@pytest.fixture
def folder(tmp_path):
    for table in ("big", "small"):
        (tmp_path / table).mkdir()
        (tmp_path / table / "part-1.csv").write_text("a\n1\n")
    return tmp_path


def grow(folder, table: str) -> None:
    number = len(list((folder / table).iterdir())) + 1
    (folder / table / f"part-{number}.csv").write_text("a\n1\n")


def test_only_places_that_are_named_are_looked_at(folder, looks):
    _, listed, _ = looks
    catalog = open_catalog(folder, clock=looks[0])
    fresh = Freshness(catalog)
    listed.clear()
    grow(folder, "big")
    looks[0].now_s += 1
    fresh.look(frozenset({"select", "small"}))
    assert listed == ["small"]
    assert len(catalog["big"].files) == 1
    fresh.look(frozenset({"big"}))
    assert len(catalog["big"].files) == 2


def test_after_a_statement_that_may_hide_names_everything_is_looked_at(folder, looks):
    clock, listed, _ = looks
    fresh = Freshness(open_catalog(folder, clock=clock))
    clock.now_s += 1
    fresh.look(None)
    listed.clear()
    clock.now_s += 1
    fresh.look(frozenset({"small"}))
    assert listed == ["big", "small"]


def test_a_dear_look_is_done_for_a_share_of_the_time_and_holds_up_no_other_place(folder, looks):
    clock, listed, takes_s = looks
    takes_s["big"] = 2 * BUDGET_S
    fresh = Freshness(catalog := open_catalog(folder, clock=clock))
    began_s = clock.now_s
    grow(folder, "big")
    grow(folder, "small")
    clock.now_s += 0.01
    fresh.look(frozenset({"big", "small"}))
    assert (len(catalog["big"].files), len(catalog["small"].files)) == (1, 2)
    clock.now_s = began_s + 2 * BUDGET_S / SHARE + 0.01
    listed.clear()
    fresh.look(frozenset({"big"}))
    assert listed == ["big"]
    assert len(catalog["big"].files) == 2


def test_a_user_who_asks_for_it_gets_a_look_however_dear(folder, looks):
    clock, _, takes_s = looks
    takes_s["big"] = 100.0
    catalog = open_catalog(folder, clock=clock)
    grow(folder, "big")
    assert catalog.refresh() == ("big",)


def test_a_look_serves_all_that_asked_before_it_began_and_none_later(folder, looks, monkeypatch):
    clock, listed, _ = looks
    fresh = Freshness(open_catalog(folder, clock=clock))
    inside, go_on = threading.Event(), threading.Event()
    below = Listing.below

    def slow(self: Listing, place: str):
        found = below(self, place)
        if not inside.is_set():
            inside.set()
            go_on.wait(30)
        return found

    monkeypatch.setattr(Listing, "below", slow)
    clock.now_s += 1
    listed.clear()
    first = threading.Thread(target=fresh.look, args=({"big"},))
    first.start()
    assert inside.wait(30)
    # These come while the first look is under way, which has listed the files already.
    clock.now_s += 0.001
    asked = threading.Barrier(4)
    real, waiting = clock.__class__.__call__, []

    def asks(self: Clock) -> float:
        if not go_on.is_set():
            waiting.append(1)
        return real(self)

    monkeypatch.setattr(Clock, "__call__", asks)

    def late() -> None:
        asked.wait(30)
        fresh.look({"big"})

    others = [threading.Thread(target=late) for _ in range(3)]
    for thread in others:
        thread.start()
    asked.wait(30)
    wait_until(lambda: len(waiting) >= 3)
    clock.now_s += 0.001
    go_on.set()
    for thread in (first, *others):
        thread.join(30)
    assert listed == ["big", "big"]


def test_what_has_not_changed_is_the_same_object(folder):
    listing = Listing()
    before = listing.below(str(folder / "big"))
    assert listing.below(str(folder / "big")) is before
    grow(folder, "big")
    after = listing.below(str(folder / "big"))
    assert len(after) == 2
    assert after[0] is before[0]
    (folder / "big" / "part-1.csv").write_text("a\n1\n2\n")
    assert listing.below(str(folder / "big"))[0] != after[0]


def test_a_folder_becomes_a_file_and_a_file_a_folder(folder):
    listing = Listing()
    (folder / "big" / "x.csv").mkdir()
    assert len(listing.below(str(folder / "big"))) == 1
    (folder / "big" / "x.csv").rmdir()
    (folder / "big" / "x.csv").write_text("a\n")
    assert len(listing.below(str(folder / "big"))) == 2
    (folder / "big" / "x.csv").unlink()
    (folder / "big" / "x.csv").mkdir()
    (folder / "big" / "x.csv" / "y.csv").write_text("a\n")
    found = listing.below(str(folder / "big"))
    assert [file.uri.rpartition("/")[2] for file in found] == ["part-1.csv", "y.csv"]


def test_a_catalog_file_is_read_again_only_if_it_changed(folder, monkeypatch):
    file = folder / "c.toml"
    file.write_text('[tables]\nt = "big"\n')
    os.utime(file, (1, 1))
    catalog = open_catalog(file)
    monkeypatch.setattr("tomllib.loads", lambda text: pytest.fail("read again"))
    grow(folder, "big")
    assert catalog.refresh() == ("t",)
    monkeypatch.undo()
    file.write_text('[tables]\nt = "big"\nu = "small"\n')
    assert catalog.refresh() == ("u",)


def test_a_held_catalog_file_counts_as_it_was_until_it_is_read_again(tmp_path):
    (tmp_path / "t.csv").write_text("n\n1\n")
    file = tmp_path / "c.toml"
    file.write_text('[tables]\nfirst = "t.csv"\n')
    catalog = open_catalog(file, holds_file=True)
    file.write_text('[tables]\nfirst = "t.csv"\nsecond = "t.csv"\n')
    assert catalog.refresh() == ()
    catalog.check()
    assert list(catalog.tables) == ["first"]
    assert catalog.reread() == ("second",)
    file.write_text('[tables]\nthird = "t.csv"\nsecond = 3\n')
    for look in (catalog.check, catalog.reread):
        with pytest.raises(CatalogError, match="line 3"):
            look()
    assert catalog.refresh() == ()
    assert sorted(catalog.tables) == ["first", "second"]
