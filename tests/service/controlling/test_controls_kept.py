"""Changes outlive the server, and give way to a file of settings that says something new."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from queryard import QueryardError
from queryard.service.controlling.controls import Controls
from queryard.service.controlling.record import RecordError
from queryard.service.problems import Conflict
from service.controlling.still_session import NoTokens, StillSession

FILE = {"sales": {"weight": 2}, "web": {"limits": {"waiting": 9}}}


@contextmanager
def a_server(
    folder: Path, profile: Any = "marshal", tenants: Any = FILE
) -> Iterator[tuple[Controls, StillSession]]:
    session = StillSession(profile, tenants)
    controls = Controls(session, folder / "controls.jsonl", NoTokens())  # type: ignore[arg-type]
    try:
        yield controls, session
    finally:
        controls.close()


def weights(session: StillSession) -> dict[str, float]:
    return {tenant.name: tenant.weight for tenant in session.tenants}


def test_changes_are_made_again_at_the_next_start(tmp_path: Path):
    with a_server(tmp_path) as (controls, session):
        controls.change("ann", {"change": "profile", "profile": "fair"})
        controls.change("ann", {"change": "tenant", "tenant": "etl", "weight": 4})
        controls.change("bob", {"change": "tenant", "tenant": "sales", "weight": 7})
        controls.change("bob", {"change": "tenant", "tenant": "web", "limits": {"wait": 5}})
        controls.change("ann", {"change": "pause", "reason": "backup"})
        controls.change("ann", {"change": "reset-models"})
        controls.undo("ann", 3)
        before = controls.show()
    with a_server(tmp_path) as (controls, session):
        assert session.chosen_profile == "fair"
        assert weights(session) == {"sales": 2, "web": 1.0, "etl": 4}
        held = session.tenant_limits["web"]
        assert (held.waiting, held.wait_s) == (9, 5.0)
        assert session.paused_by == "ann (backup)"
        ((models, reset_at),) = session.resets
        assert (models, reset_at) == (
            ("templates", "prices", "portfolio"),
            before["models_reset_at"],
        )
        assert controls.show() == before
        controls.undo("eve", 2)
        assert weights(session) == {"sales": 2, "web": 1.0}


def test_the_last_reset_of_models_is_undone_also_for_the_next_start(tmp_path: Path):
    with a_server(tmp_path) as (controls, session):
        controls.change("ann", {"change": "tenant", "tenant": "etl", "weight": 4})
        controls.change("ann", {"change": "reset-models"})
        controls.change("ann", {"change": "reset-models", "models": ["prices"]})
        with pytest.raises(Conflict, match="until the next one only"):
            controls.undo("bob", 2)
        assert [each["undoable"] for each in controls.show()["changes"]] == [True, False, True]
        undone = controls.undo("bob", 3, "too early")
        assert (undone["undoes"], undone["reason"]) == (3, "too early")
        assert [models for models, _ in session.resets] == [("templates", "prices", "portfolio")]
        with pytest.raises(Conflict, match="was undone already"):
            controls.undo("bob", 3)
    with a_server(tmp_path) as (controls, session):
        assert [models for models, _ in session.resets] == [("templates", "prices", "portfolio")]
        assert controls.show()["models_reset_at"] == session.resets[0][1]
        controls.undo("bob", 2)
        assert session.resets == []
        controls.undo("bob", 1)
    with a_server(tmp_path) as (controls, session):
        assert session.resets == []
        assert controls.show()["models_reset_at"] is None


def test_a_server_that_was_draining_takes_queries_when_it_starts_again(tmp_path: Path):
    with a_server(tmp_path) as (controls, _):
        controls.change("ann", {"change": "drain"})
        assert "set to drain by ann" in controls.closed
    with a_server(tmp_path) as (controls, _):
        assert (controls.closed, controls.state) == ("", "open")
        last = controls.show()["changes"][0]
        assert (last["by"], last["what"]) == ("the start", "open")


def test_the_file_counts_once_it_says_something_else(tmp_path: Path):
    with a_server(tmp_path) as (controls, session):
        controls.change("ann", {"change": "profile", "profile": "fair"})
        controls.change("ann", {"change": "tenant", "tenant": "sales", "weight": 5, "cap": 0.5})
        controls.use_tenants(FILE, None, "marshal")
        assert (session.chosen_profile, weights(session)["sales"]) == ("fair", 5)
        controls.use_tenants({**FILE, "sales": {"weight": 3}}, {"waiting": 99}, "marshal")
        assert session.chosen_profile == "fair", "of which the file says the same as ever"
        assert weights(session)["sales"] == 3
        (sales, _) = session.tenants
        assert sales.cap == 0.5
        assert session.limits.waiting == 99
        last = controls.show()["changes"][0]
        assert last["text"] == "the settings say otherwise by now: tenant 'sales': weight 5 → 3"
        with pytest.raises(Conflict, match="cannot be undone"):
            controls.undo("ann", last["id"])
        controls.undo("ann", 2)
        assert session.tenants[0].cap == 1.0
        assert weights(session)["sales"] == 3, "the file's own, which is newer"
        controls.use_tenants(FILE, None, "fifo")
        assert session.chosen_profile == "fifo"
        with pytest.raises(Conflict, match="holds no more"):
            controls.undo("ann", 1)


def test_so_it_is_across_a_restart(tmp_path: Path):
    with a_server(tmp_path) as (controls, session):
        controls.change("ann", {"change": "tenant", "tenant": "sales", "weight": 5})
        controls.change("ann", {"change": "profile", "profile": "fair"})
    with a_server(tmp_path, "tls", FILE) as (controls, session):
        assert (session.chosen_profile, weights(session)["sales"]) == ("tls", 5)
    with a_server(tmp_path, "marshal", FILE) as (controls, session):
        assert session.chosen_profile == "marshal", "what gave way does not come back"


def test_a_file_that_does_not_fit_the_changes_is_not_followed(tmp_path: Path):
    with a_server(tmp_path) as (controls, session):
        controls.change("ann", {"change": "tenant", "tenant": "sales", "guarantee": 0.8})
        with pytest.raises(QueryardError, match="add up to"):
            controls.use_tenants({**FILE, "etl": {"guarantee": 0.5}}, None, "fifo")
        assert session.chosen_profile == "marshal"
        assert {tenant.name for tenant in session.tenants} == {"sales", "web"}
        controls.undo("ann", 1)
        controls.use_tenants({**FILE, "etl": {"guarantee": 0.5}}, None, "fifo")
        assert session.chosen_profile == "fifo"


def test_changes_that_do_not_fit_at_the_start_give_way(tmp_path: Path, caplog: Any):
    with a_server(tmp_path) as (controls, _):
        controls.change("ann", {"change": "tenant", "tenant": "sales", "guarantee": 0.8})
        controls.change("ann", {"change": "pause"})
    caplog.set_level(logging.WARNING, "queryard.service")
    with a_server(tmp_path, tenants={**FILE, "etl": {"guarantee": 0.5}}) as (controls, session):
        assert {tenant.guarantee for tenant in session.tenants} == {0.0, 0.5}
        assert session.paused_by == "ann"
        assert controls.show()["changes"][0]["what"] == "file"
    assert "do not fit any more" in caplog.text


def test_a_second_server_on_the_same_data_keeps_nothing(tmp_path: Path, caplog: Any):
    caplog.set_level(logging.WARNING, "queryard.service")
    with a_server(tmp_path) as (first, _), a_server(tmp_path) as (second, _):
        second.change("bob", {"change": "pause"})
        first.change("ann", {"change": "profile", "profile": "fair"})
        assert not second.show()["kept"]
    assert "are not kept" in caplog.text
    with a_server(tmp_path) as (controls, session):
        assert [change["by"] for change in controls.show()["changes"]] == ["ann"]
        assert session.paused_by is None


def test_a_line_that_a_crash_cut_off_was_never_made(tmp_path: Path):
    with a_server(tmp_path) as (controls, _):
        controls.change("ann", {"change": "pause"})
    file = tmp_path / "controls.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"id": 2, "at": 1.0, "by": "ann", "wh')
    with a_server(tmp_path) as (controls, _):
        assert controls.show()["last"] == 1
        controls.change("ann", {"change": "resume"})
    with a_server(tmp_path) as (controls, session):
        assert (controls.show()["last"], session.paused_by) == (2, None)
    file.write_bytes(b"gibberish\n" + whole)
    with (
        pytest.raises(RecordError, match=r"line 1 is no change.*move the file away"),
        a_server(tmp_path),
    ):
        pass


def test_a_change_that_cannot_be_recorded_is_not_made(tmp_path: Path, monkeypatch: Any):
    with a_server(tmp_path) as (controls, session):
        controls.change("ann", {"change": "profile", "profile": "fair"})

        def full(handle: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(RecordError, match=r"No space left.*was not made"):
            controls.change("ann", {"change": "profile", "profile": "fifo"})
        with pytest.raises(RecordError):
            controls.change("ann", {"change": "pause"})
        monkeypatch.undo()
        assert (session.chosen_profile, session.paused_by) == ("fair", None)
        assert controls.show()["last"] == 1
        assert controls.change("ann", {"change": "pause"})["id"] == 2
    assert len((tmp_path / "controls.jsonl").read_text().splitlines()) == 2


def test_without_a_place_changes_are_made_all_the_same(tmp_path: Path):
    session = StillSession()
    controls = Controls(session, None, NoTokens())  # type: ignore[arg-type]
    controls.change("ann", {"change": "pause"})
    assert session.paused_by == "ann"
    assert not controls.show()["kept"]


def test_changes_of_many_threads_have_numbers_of_their_own(tmp_path: Path):
    with a_server(tmp_path) as (controls, _):
        threads = [
            threading.Thread(
                target=controls.change,
                args=(f"t{n}", {"change": "tenant", "tenant": f"t{n}", "weight": n + 1}),
            )
            for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        before = controls.show()
        assert sorted(change["id"] for change in before["changes"]) == list(range(1, 21))
    with a_server(tmp_path) as (controls, session):
        assert controls.show() == before
        assert {f"t{n}": n + 1.0 for n in range(20)}.items() <= weights(session).items()


def test_a_limit_alone_gives_a_tenant_no_share_and_the_policy_stays(tmp_path: Path):
    with a_server(tmp_path, tenants=None) as (controls, session):
        controls.change("ann", {"change": "tenant", "tenant": "web", "limits": {"waiting": 3}})
        assert session.tenants == ()
        assert session.tenant_limits["web"].waiting == 3
        (web,) = controls.show()["tenants"]
        assert (web["name"], web["weight"], web["limits"]["waiting"]) == ("web", 1.0, 3)
        controls.change("ann", {"change": "tenant", "tenant": "web", "weight": 2})
        assert weights(session) == {"web": 2}
