"""Controls in a browser: every change can be made, with a reason, and on what is shown only."""

from __future__ import annotations

import pytest

from service.page.browsing import SLOW, a_page, signed_in


@pytest.fixture
def root(server):
    """An admin's client; all changes of the test are undone after it."""
    with server.client("root") as made:
        before = made.get("/v1/controls").json()["last"]
        yield made
        while made_here := [
            each["id"]
            for each in made.get("/v1/controls").json()["changes"]
            if each["id"] > before and each["undoable"]
        ]:
            made.post(f"/v1/controls/{max(made_here)}/undo", json={}).raise_for_status()


@pytest.fixture
def page(browser, server):
    """The controls, where a change may be refused."""
    with a_page(browser, allowed=("409", "422")) as made:
        signed_in(made, server.url, server.secrets["root"], "controls")
        made.locator("option[value=fifo]").wait_for(state="attached")
        made.get_by_label("weight of sales", exact=True).wait_for()
        yield made


def done(page, text: str) -> None:
    page.locator(".notice.good", has_text=text).wait_for()


def last_change(root) -> dict:
    return root.get("/v1/controls", params={"limit": 1}).json()["changes"][0]


def change(root, **body) -> int:
    answer = root.post("/v1/controls", json=body)
    answer.raise_for_status()
    return answer.json()["id"]


def test_the_server_is_drained_and_opened_models_are_reset_and_queries_cancelled(
    page, root, server, slow
):
    page.get_by_label("reason").fill("a new disk")
    page.get_by_role("button", name="Drain", exact=True).click()
    page.get_by_role("button", name="Drain it").click()
    done(page, "draining")
    assert (last_change(root)["what"], last_change(root)["reason"]) == ("drain", "a new disk")
    assert page.get_by_label("reason").input_value() == ""
    page.get_by_role("button", name="Open", exact=True).click()
    done(page, "open: queries are taken")
    page.get_by_role("button", name="Reset learned models").click()
    page.get_by_role("button", name="Reset", exact=True).click()
    done(page, "reset what was learnt")
    page.get_by_label("reason").fill("it floods the queue")
    page.get_by_role("button", name="Cancel all queries of sales", exact=True).click()
    page.get_by_role("button", name="Cancel them").click()
    done(page, "cancelled 1 query of tenant 'sales'")
    assert last_change(root)["reason"] == "it floods the queue"
    assert root.get("/v1/controls").json()["state"] == "open"


def test_a_portfolio_is_chosen_and_what_is_picked_stays_until_it_is_followed(page, root):
    change(
        root,
        change="profile",
        profile={"portfolio": {"candidates": ["fair", "fifo"], "share": 0.02, "period_s": 9.0}},
    )
    page.get_by_text("In force: portfolio (small queries fast)").wait_for()
    assert page.get_by_label("candidates").input_value() == "fair, fifo"
    page.get_by_label("objective").select_option("throughput")
    # A new document comes meanwhile.
    change(root, change="tenant", tenant="web", weight=7)
    page.locator("td", has_text="weight 1 → 7").first.wait_for()
    assert page.get_by_label("objective").input_value() == "throughput"
    page.get_by_label("reason").fill("the night")
    page.get_by_role("button", name="Follow", exact=True).click()
    page.get_by_text("In force: portfolio (throughput)").wait_for()
    found = root.get("/v1/controls").json()["portfolio"]
    assert (found["objective"], found["candidates"]) == ("throughput", ["fair", "fifo"])
    assert (found["share"], found["period_s"]) == (0.02, 9.0)
    assert last_change(root)["reason"] == "the night"
    page.get_by_label("candidates").fill("fifo, edf")
    page.get_by_label("objective").select_option("own")
    page.get_by_role("textbox", name="weights").fill("slowdown=2+violation=1")
    page.get_by_role("button", name="Follow", exact=True).click()
    page.get_by_text("In force: portfolio (slowdown=2+violation=1)").wait_for()
    assert root.get("/v1/controls").json()["portfolio"]["candidates"] == ["fifo", "edf"]
    page.get_by_label("follow").select_option("marshal")
    page.get_by_role("button", name="Follow", exact=True).click()
    page.get_by_text("In force: marshal").wait_for()


def test_shares_and_limits_of_a_tenant_are_set_and_taken_away(page, root):
    wanted = {"guarantee": "0.25", "cap": "0.5", "waiting": "7", "wait": "30 s", "memory": "1 GB"}
    for name, value in wanted.items():
        page.get_by_label(f"{name} of sales", exact=True).fill(value)
    page.get_by_role("row", name="sales").get_by_role("button", name="Apply").click()
    done(page, "cap 1 → 0.5")

    def sales() -> dict:
        tenants = root.get("/v1/controls").json()["tenants"]
        return next(each for each in tenants if each["name"] == "sales")

    assert (sales()["guarantee"], sales()["cap"]) == (0.25, 0.5)
    assert sales()["limits"] == {"waiting": 7, "wait_s": 30.0, "memory_bytes": 10**9}
    for name in ("cap", "wait"):
        page.get_by_label(f"{name} of sales", exact=True).fill("")
    page.get_by_label("cap of sales", exact=True).press("Enter")
    done(page, "cap 0.5 → 1")
    assert (sales()["cap"], sales()["limits"]["wait_s"]) == (1.0, None)
    page.get_by_label("cap of sales", exact=True).fill("2")
    page.get_by_label("cap of sales", exact=True).press("Enter")
    page.locator(".notice.bad", has_text="cap").wait_for()
    assert sales()["cap"] == 1.0


def test_a_change_on_top_of_one_that_was_not_seen_is_not_made(page, root):
    # The page does not hear of changes for a while.
    state = root.get("/v1/controls").text

    def answer(route) -> None:
        if route.request.method == "POST":
            route.continue_()
        else:
            route.fulfill(body=state)

    page.route("**/v1/controls", answer)
    page.get_by_label("guarantee of sales", exact=True).fill("0.2")
    change(root, change="tenant", tenant="sales", weight=5)
    page.get_by_label("guarantee of sales", exact=True).press("Enter")
    page.locator(".notice.bad", has_text="is not the last change").wait_for()
    assert last_change(root)["text"] == "tenant 'sales': weight 1 → 5"
    page.unroute("**/v1/controls")
    page.locator("td", has_text="weight 1 → 5").first.wait_for()
    assert page.get_by_label("guarantee of sales", exact=True).input_value() == "0.2"
    page.get_by_label("guarantee of sales", exact=True).press("Enter")
    done(page, "guarantee 0 → 0.2")


@pytest.mark.long
def test_a_row_that_is_written_in_stays_although_its_tenant_is_gone(page, root, server):
    with server.client("ann") as ann:
        body = {"sql": SLOW, "tenant": "sales/emea"}
        query = ann.post("/v1/queries", json=body).json()["id"]
        weight = page.get_by_label("weight of sales/emea", exact=True)
        weight.fill("4")
        ann.delete(f"/v1/queries/{query}")
    change(root, change="tenant", tenant="web", weight=2)
    page.locator("td", has_text="weight 1 → 2").first.wait_for()
    names = [each["name"] for each in root.get("/v1/controls").json()["tenants"]]
    assert "sales/emea" not in names
    assert weight.input_value() == "4"
    assert weight.evaluate("input => input === document.activeElement")
    weight.press("Enter")
    done(page, "'sales/emea': weight 1 → 4")


@pytest.mark.long
def test_controls_are_reached_by_the_keyboard_while_changes_come(page, root):
    change(root, change="tenant", tenant="web", weight=3)
    undo = page.get_by_role("button", name="Undo: tenant 'web': weight 1 → 3").first
    undo.focus()
    change(root, change="tenant", tenant="sales", cap=0.5)
    page.locator("td", has_text="cap 1 → 0.5").first.wait_for()
    assert undo.evaluate("button => button === document.activeElement")
    page.keyboard.press("Enter")
    done(page, "undid change")
