"""Connections that are lost and come back, in a browser: what was being done goes on."""

from __future__ import annotations

import re

import httpx
import pytest

from service.http.serving import a_server
from service.page.browsing import SLOW, a_page, go, signed_in

CUT = (
    "ERR_CONNECTION",
    "ERR_INCOMPLETE",
    "ERR_EMPTY",
    "ERR_INTERNET_DISCONNECTED",
    "ERR_FAILED",
)


@pytest.fixture
def page(browser, server):
    """A page of an admin whose connection may be cut."""
    with a_page(browser, allowed=CUT) as made:
        yield signed_in(made, server.url, server.secrets["root"])


def cut(page, server) -> None:
    page.context.set_offline(True)  # which leaves streams as they are
    server.cut_connections()
    page.get_by_text("The connection is lost").wait_for()


def mend(page) -> None:
    page.context.set_offline(False)
    page.get_by_role("button", name="Try now").click()
    page.get_by_text("The connection is lost").wait_for(state="hidden")


def test_a_lost_connection_is_told_and_comes_back_by_itself(browser, tmp_path):
    port = 0
    with a_page(browser, allowed=("ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY")) as page:
        with a_server(tmp_path) as server:
            port = int(server.url.rpartition(":")[2])
            secret = server.secrets["root"]
            signed_in(page, server.url, secret)
            page.get_by_text("No query runs.").wait_for()
        page.get_by_text("The connection is lost").wait_for()
        with a_server(tmp_path, port=port) as server:
            page.get_by_text("The connection is lost").wait_for(state="hidden")
            with httpx.Client(
                base_url=server.url, headers={"Authorization": f"Bearer {secret}"}
            ) as client:
                query = client.post("/v1/queries", json={"sql": SLOW}).json()["id"]
                page.locator("table.running tr", has_text="numbers a").wait_for()
                client.delete(f"/v1/queries/{query}")


def test_a_statement_is_watched_to_its_end_although_the_connection_is_lost(page, server):
    go(page, "sql")
    page.get_by_label("SQL statement").fill(SLOW)
    page.keyboard.press("Control+Enter")
    page.get_by_text(re.compile(r"^runs, \d+ %")).wait_for()
    query = page.locator(".panel a.mono").first.inner_text()
    cut(page, server)
    assert page.get_by_role("button", name="Cancel", exact=True).is_visible()
    with server.client("root") as root:
        root.delete(f"/v1/queries/{query}")
    mend(page)
    page.get_by_text("The query is cancelled.").wait_for()
    page.get_by_role("button", name="Cancel", exact=True).wait_for(state="hidden")


@pytest.mark.long
def test_a_statement_that_is_sent_without_a_connection_runs_once_it_is_back(page, server):
    go(page, "sql")
    page.get_by_label("SQL statement").fill("SELECT 6 * 7 AS answer")
    cut(page, server)
    page.get_by_role("button", name="Run", exact=True).click()
    mend(page)
    page.locator("table.result td", has_text=re.compile("^42$")).wait_for()
    with server.client("root") as root:
        ended = [each["sql"] for each in root.get("/v1/now").json()["ended"]]
    assert ended.count("SELECT 6 * 7 AS answer") == 1


@pytest.mark.long
def test_a_statement_whose_server_was_started_again_is_told_to_be_unknown(browser, tmp_path):
    with a_page(browser, allowed=(*CUT, "404")) as page:
        with a_server(tmp_path) as server:
            port = int(server.url.rpartition(":")[2])
            signed_in(page, server.url, server.secrets["root"], "sql")
            page.get_by_label("SQL statement").fill(SLOW)
            page.keyboard.press("Control+Enter")
            page.get_by_text(re.compile(r"^runs, \d+ %")).wait_for()
        with a_server(tmp_path, port=port):
            page.get_by_text("What became of it is not known.").wait_for()
            page.locator(".notice.bad", has_text="unknown query").wait_for()
            page.get_by_role("button", name="Cancel", exact=True).wait_for(state="hidden")


@pytest.mark.parametrize(
    ("view", "sign"),
    [
        ("archive", "td a"),
        pytest.param("whatif", ".policies label:has-text('fifo')", marks=pytest.mark.long),
        pytest.param("controls", "option[value=fifo]", marks=pytest.mark.long),
        pytest.param("sql", ".tables-list summary:has-text('numbers')", marks=pytest.mark.long),
    ],
)
def test_a_view_that_is_opened_without_a_connection_is_filled_when_it_is_back(
    page, server, view, sign
):
    page.wait_for_function(
        "name => performance.getEntriesByType('resource').some(e => e.name.includes(name))",
        arg=f"views/{view}.js",
    )
    cut(page, server)
    go(page, view)
    page.locator(f"nav a[href='#/{view}'][aria-current=page]").wait_for()
    assert page.locator(sign).count() == 0
    mend(page)
    page.locator(sign).first.wait_for(state="attached")


def test_a_view_that_cannot_be_loaded_leaves_the_one_before_and_is_opened_later(browser, server):
    with a_page(browser, allowed=CUT) as page:
        page.route("**/views/archive.js*", lambda route: route.abort())
        signed_in(page, server.url, server.secrets["root"])
        # The view of before must be there, before another one is asked for.
        page.locator("nav a[href='#/now'][aria-current=page]").wait_for()
        go(page, "archive")
        page.wait_for_timeout(100)
        page.locator("nav a[href='#/now'][aria-current=page]").wait_for()
        with server.client("ann") as ann:
            query = ann.post("/v1/queries", json={"sql": SLOW}).json()["id"]
            page.locator("table.running tr", has_text="numbers a").wait_for()
            ann.delete(f"/v1/queries/{query}")
        page.unroute("**/views/archive.js*")
        page.locator("nav a[href='#/archive'][aria-current=page]").wait_for()
        page.locator("td a").first.wait_for()
