"""A session on a server has the names of an embedded one, with the same results."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from service.anywhere import a_session

import queryard
from queryard.live.options import QueryOptions
from queryard.remote import NotOnServer
from queryard.remote.embedded_only import EmbeddedOnly

pytest.importorskip("httpx")
REFUSED = sorted(name for name in vars(EmbeddedOnly) if not name.startswith("_"))
# The server records the token in its place.
NOT_GIVEN = {("use_profile", "by")}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """An embedded session, and one on a server."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "numbers.csv").write_text("n\n" + "\n".join(map(str, range(2000))) + "\n")
    options = {"slots": 2, "memory": "300 MB", "history": False}
    with (
        a_session("embedded", folder, folder, **options) as embedded,
        a_session("server", tmp_path_factory.mktemp("served"), folder, **options) as remote,
    ):
        yield embedded, remote


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_every_public_name_of_a_session_is_there(both: tuple[Any, Any]) -> None:
    embedded, remote = both
    assert isinstance(embedded, queryard.Session)
    assert public(embedded) <= public(remote)
    # Nothing is refused that an embedded session does not have.
    assert set(REFUSED) <= public(embedded)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_server_does_not_offer_is_refused_with_a_remedy(
    both: tuple[Any, Any], name: str
) -> None:
    _, remote = both
    is_method = not isinstance(vars(EmbeddedOnly)[name], property)
    assert hasattr(remote, name) == is_method
    with pytest.raises(NotOnServer, match=rf"^{name}: a session on a server .*; \S+"):
        getattr(remote, name)()
    assert inspect.getdoc(getattr(type(remote), name))


def test_methods_take_the_same_arguments(both: tuple[Any, Any]) -> None:
    embedded, remote = both
    for owner, other in ((embedded, remote), (embedded.submit("FROM numbers"), None)):
        there = remote.submit("FROM numbers") if other is None else other
        for name in sorted(public(owner) - set(REFUSED)):
            method = inspect.getattr_static(owner, name)
            if not inspect.isfunction(method):
                continue
            wanted = arguments(method) - {argument for of, argument in NOT_GIVEN if of == name}
            assert wanted <= arguments(getattr(type(there), name)), name


def arguments(method: Any) -> set[str]:
    """The names of arguments, options of queries among them."""
    found = inspect.signature(method).parameters.values()
    names = {each.name for each in found if each.kind is not inspect.Parameter.VAR_KEYWORD}
    takes_options = len(names) < len(found)
    return names | (set(QueryOptions.__annotations__) if takes_options else set())


def test_handles_and_results_are_of_the_same_kinds(both: tuple[Any, Any]) -> None:
    def kinds(qy: Any) -> list[tuple[set[str], type]]:
        asked = "SELECT count(*) AS n FROM numbers"
        handle = qy.submit(asked, keep="1 min")
        handle.gather(1, 1 << 20)
        handle.gather(10, 1 << 20, 30.0)
        answer = handle.result(30)
        rows = answer.fetchall()
        handle.wait(30)
        online = qy.online("SELECT avg(n) FROM numbers")
        answers = list(online)
        found = [
            answer,
            rows,
            handle.status,
            handle.timing,
            handle.why(),
            handle.error,
            handle.reasons,
            handle.explain(),
            qy.explain(asked),
            qy.explain(asked, analyze=True),
            qy.estimate(asked),
            online,
            answers[-1],
            qy.queries(),
            qy.forecasts(),
            qy.now(),
            qy.tables(),
            asyncio.run(awaited(qy, asked)),
        ]
        return [(public(each), type(each)) for each in found]

    embedded, remote = both
    assert kinds(embedded) == kinds(remote)
    assert public(embedded.submit("FROM numbers")) <= public(remote.submit("FROM numbers"))


async def awaited(qy: Any, sql: str) -> Any:
    return await qy.submit(sql)
