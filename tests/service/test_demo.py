"""`queryard serve --demo`: its data, its questions, and its users."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError
from queryard.service import demo
from queryard.service.sources import Sources
from queryard.service.tokens import TokenStore
from service.anywhere import served
from service.processes import a_process


@pytest.fixture(scope="module")
def catalog(tmp_path_factory) -> Path:
    """The same on a fiftieth of the data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "SCALE", 0.01)
        try:
            return demo.prepare(tmp_path_factory.mktemp("demo"))
        except QueryardError as error:
            pytest.skip(str(error))


def test_the_catalog_names_all_tables_and_the_tenants(catalog):
    settings = Sources(str(catalog)).read()
    assert set(settings.session["tenants"]) == {users.tenant for users in demo.USERS}
    assert settings.session["profile"] == "portfolio"
    with queryard.connect(catalog, history=False) as session:
        assert len(session.tables()) == 8


def test_every_question_has_an_answer_but_the_mistaken_one(catalog):
    rng = Random(1)
    failed = []
    with queryard.connect(catalog, slots=2, memory="1 GB", history=False) as session:
        for ask in dict.fromkeys(ask for users in demo.USERS for ask in users.asks):
            try:
                session.sql(ask(rng)).fetchall()
            except QueryardError:
                failed.append(ask)
    assert len(failed) == 1


def test_all_tenants_ask_until_they_are_stopped(catalog, tmp_path):
    with (
        queryard.connect(catalog, slots=2, memory="1 GB", history=tmp_path / "h.sqlite") as session,
        served(session, tmp_path) as url,
    ):
        store = TokenStore(tmp_path / "tokens.json")
        load = demo.Load()
        load.start(url, store)
        wanted = {users.tenant for users in demo.USERS}
        seen: set[str] = set()

        def all_have_asked() -> bool:
            seen.update(view.tenant.partition("/")[0] for view in session.queries())
            return wanted <= seen

        wait_until(all_have_asked)
        load.stop()


def test_its_users_need_plain_http(tmp_path):
    from queryard.cli.demo import Demo

    with pytest.raises(QueryardError, match="--demo and --http off"):
        Demo.prepared(str(tmp_path), None, "off", None)


@pytest.mark.long
def test_one_command_serves_it(tmp_path):
    import httpx

    demo.prepare(tmp_path / "demo")
    with a_process(tmp_path, "--demo", "--postgres", "off", tmp_path / "demo") as server:
        link = server.find(r"page +(\S+)")
        assert link == f"{server.url}/#token={server.token}"
        head = {"Authorization": f"Bearer {server.token}"}

        def told(path: str) -> dict:
            return httpx.get(f"{server.url}{path}", headers=head).json()

        wait_until(lambda: len(told("/v1/now")["ended"]) >= 5)
        # A portfolio decides: there is something to see under Scheduler.
        wait_until(lambda: told("/v1/scheduler")["decisions"])
