"""The SQL box in a browser: statements that later ones rely on run in a session."""

from __future__ import annotations

import re

import pytest
from waiting import wait_until

from service.page.browsing import a_page, go, signed_in


def run(page, sql: str) -> None:
    page.get_by_label("SQL statement").fill(sql)
    page.keyboard.press("Control+Enter")


def sessions(server) -> list[dict]:
    with server.client("root") as root:
        return root.get("/v1/sessions").json()["sessions"]


@pytest.fixture
def admin(browser, server):
    """A page on which statements may be refused at first."""
    with a_page(browser, allowed=("403",)) as page:
        yield signed_in(page, server.url, server.secrets["root"], "sql")


def test_a_session_is_opened_when_it_is_needed_and_closed(admin, server):
    run(admin, "SELECT 1 AS one")
    admin.locator("table.result th", has_text="one").wait_for()
    assert sessions(server) == []
    run(admin, "CREATE TEMP TABLE mine AS SELECT 6 * 7 AS x")
    admin.locator(".chip.session").wait_for()
    assert [each["label"] for each in sessions(server)] == ["page"]
    run(admin, "SELECT x FROM mine")
    admin.locator("table.result td", has_text=re.compile("^42$")).wait_for()
    admin.get_by_role("button", name="Explain").click()
    admin.locator("pre.plan").wait_for()
    admin.get_by_role("button", name="Close the session").click()
    admin.locator(".chip.session").wait_for(state="hidden")
    wait_until(lambda: sessions(server) == [], 20)
    run(admin, "SELECT x FROM mine")
    admin.locator(".notice.bad", has_text="mine does not exist").wait_for()
    run(admin, "SET VARIABLE mine = 5")
    admin.locator(".chip.session").wait_for()
    go(admin, "now")
    wait_until(lambda: sessions(server) == [], 20)
