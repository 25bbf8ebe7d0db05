"""Views in a browser that are brought up to date while they are looked at."""

from __future__ import annotations

import logging

import pytest

from queryard.service.logs import log
from service.page.browsing import SLOW, a_page, go, signed_in


def href_in_focus(page) -> str:
    return page.evaluate("document.activeElement.getAttribute('href')")


def test_the_focus_stays_on_a_link_while_its_table_changes(admin):
    """Which queries have slots changes all the time, so the table is filled by the test."""
    found = admin.evaluate(
        """async () => {
          const { dataTable } = await import("/page/parts.js");
          const { h } = await import("/page/dom.js");
          const link = (name) => h("a", { href: `#/query/${name}` }, name);
          const cell = (node) => h("span", {}, node.running.map(link));
          const table = dataTable([{ name: "Runs", cell }]);
          document.body.append(table.node);
          const seen = [];
          const shown = (...nodes) => {
            table.set(nodes.map((running, number) => ({ name: `n${number}`, running })));
            seen.push(document.activeElement.getAttribute("href"));
          };
          shown(["a", "b"]);
          table.node.querySelector("a[href='#/query/b']").focus();
          shown(["c", "a", "b"]);
          shown(["b"], ["c"]);
          shown(["c"]);
          table.node.remove();
          return seen.slice(1);
        }"""
    )
    assert found == ["#/query/b", "#/query/b", None]


def test_the_system_shows_every_part_that_the_server_measures(admin, server):
    go(admin, "system")
    admin.locator(".own-cpu path.line").first.wait_for(state="attached")
    with server.client("root") as root:
        parts = root.get("/v1/series").json()["own_cpu"]
    assert len(parts) >= 6
    shown = " ".join(admin.locator(".own-cpu .key").all_inner_texts())
    assert all(part in shown for part in parts), shown


def test_the_log_is_read_by_level_and_text(admin):
    go(admin, "logs")
    log("a plain thing", query="q-1")
    log("a bad thing", logging.WARNING, why="because")
    line = admin.locator("tr", has_text="a plain thing").first
    line.locator("a[href='#/query/q-1']").focus()
    log("one more thing")
    admin.locator("tr", has_text="one more thing").first.wait_for()
    assert href_in_focus(admin) == "#/query/q-1"
    admin.get_by_label("level").select_option("warning")
    line.wait_for(state="detached")
    admin.locator("tr", has_text="why=because").first.wait_for()
    admin.get_by_label("Filter lines").fill("no such text")
    admin.get_by_text("No line matches.").wait_for()


PORTFOLIO = {"candidates": ["fifo", "swrd"], "least_s": 0.05, "period_s": 0.1, "share": 1.0}


@pytest.fixture
def portfolio(server):
    """A portfolio in force that decides soon; later the policy of before."""
    with server.client("root") as root:
        body = {"change": "profile", "profile": {"portfolio": PORTFOLIO}}
        change = root.post("/v1/controls", json=body).json()["id"]
        yield root
        root.post(f"/v1/controls/{change}/undo", json={})


@pytest.mark.long
def test_decisions_are_shown_with_their_candidates_to_admins_only(
    browser, admin, server, portfolio, slow
):
    with server.client("ann") as ann:
        other = ann.post("/v1/queries", json={"sql": f"{SLOW} AND a.n > 1"}).json()["id"]
    go(admin, "scheduler")
    admin.locator(".tile-more", has_text="of a portfolio for small queries fast").wait_for()
    first = admin.locator("details[open] table").first
    first.locator("tr.chosen td", has_text="swrd").or_(
        first.locator("tr.chosen td", has_text="fifo")
    ).first.wait_for(timeout=60_000)
    assert {"fifo", "swrd"} <= set(first.locator("td:first-child").all_inner_texts())
    number = admin.locator(".tile", has_text="Decisions of the portfolio").locator(".tile-value")
    assert int(number.inner_text()) >= 1
    portfolio.delete(f"/v1/queries/{other}")
    with a_page(browser) as page:
        signed_in(page, server.url, server.secrets["ann"], "scheduler")
        page.get_by_text("is told to admins").wait_for()
        assert page.get_by_text("Chosen by").count() == 0
        assert page.get_by_text("none was in force").count() == 0
