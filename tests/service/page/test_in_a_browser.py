"""The page in a browser: sign-in, every view, cancelling, controls, narrow screens, no script."""

from __future__ import annotations

import re

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from service.http.serving import a_server
from service.page.browsing import PHONE, SLOW, a_page, go, signed_in

# Every view, and what shows that its data has come.
ALL_VIEWS = {
    "now": "table.ended td:has-text('SELECT * FROM small')",
    "sql": ".tables-list summary:has-text('numbers')",
    "performance": "td:has-text('sales')",
    "scheduler": ".tile-value:has-text('marshal')",
    "cluster": "td:has-text('local')",
    "system": "svg.chart path.line",
    "archive": "td a",
    "logs": "td:has-text('the page is looked at')",
    "whatif": ".policies label:has-text('fifo')",
    "controls": "th:has-text('sales')",
}


# --- sign-in -------------------------------------------------------------------------------------


def test_a_token_signs_in_and_stays_in_the_tab_until_it_signs_out(browser, server):
    with a_page(browser, allowed=("401",)) as page:
        page.goto(server.url)
        page.get_by_label("Token").fill("qy_wrong")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("alert").get_by_text("the token is unknown").wait_for()
        page.get_by_label("Token").fill(server.secrets["ann"])
        page.keyboard.press("Enter")
        page.get_by_role("heading", name=re.compile("Running")).wait_for()
        page.reload()
        page.get_by_role("heading", name=re.compile("Running")).wait_for()
        assert page.evaluate("Object.keys(localStorage).length") == 0
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Token").wait_for()
        assert page.evaluate("sessionStorage.getItem('queryard.token')") is None


def test_the_token_of_a_link_leaves_the_address(browser, server):
    with a_page(browser) as page:
        signed_in(page, server.url, server.secrets["ann"])
        assert server.secrets["ann"] not in page.url
        page.get_by_role("link", name="Now").wait_for()


def test_a_user_sees_its_own_queries_and_no_controls(browser, server, slow):
    with a_page(browser) as page:
        signed_in(page, server.url, server.secrets["eve"])
        page.get_by_text("No query runs.").wait_for()
        assert page.get_by_role("link", name="Controls").count() == 0
        assert page.get_by_text("numbers a, numbers b").count() == 0


FOR_ADMINS = ("logs", "whatif", "controls")


def test_a_user_sees_what_it_may_of_every_view(browser, server):
    with a_page(browser) as page:
        signed_in(page, server.url, server.secrets["ann"])
        for view, sign in ALL_VIEWS.items():
            if view not in FOR_ADMINS:
                go(page, view)
                page.locator(sign).first.wait_for(state="attached")
                assert page.locator(".notice.bad:visible").count() == 0, view
        go(page, "controls")
        page.locator("nav a[href='#/now'][aria-current=page]").wait_for()


def test_an_address_that_leads_nowhere_is_told(browser, server):
    with a_page(browser, allowed=("404",)) as page:
        signed_in(page, server.url, server.secrets["ann"], "query/%E0%A4%A")
        page.locator(".notice.bad", has_text="unknown query").wait_for()
        go(page, "nothing")
        page.locator("nav a[href='#/now'][aria-current=page]").wait_for()


# --- views ---------------------------------------------------------------------------------------


def test_every_view_is_shown_without_an_error(admin):
    for view, sign in ALL_VIEWS.items():
        go(admin, view)
        admin.locator(f"nav a[href='#/{view}'][aria-current=page]").wait_for()
        admin.locator(sign).first.wait_for(state="attached")
        assert admin.locator(".notice.bad:visible").count() == 0, (view, admin.inner_text("main"))


def test_a_past_day_lists_its_queries(admin):
    go(admin, "archive")
    admin.locator("td a[href^='#/archive/']").first.click()
    admin.get_by_role("heading", name="Archive ·").wait_for()
    admin.locator("td", has_text="SELECT * FROM small").first.wait_for()
    admin.get_by_text(re.compile("1 to . of . queries")).wait_for()


@pytest.mark.long
def test_what_if_compares_policies_in_a_table_and_figures(admin):
    go(admin, "whatif")
    admin.get_by_label(re.compile("^marshal")).wait_for()
    for name in ("fifo", "swrd"):
        admin.get_by_label(re.compile(f"^{name} ")).check()
    assert not admin.get_by_label("candidates").is_visible()
    admin.get_by_label(re.compile("^portfolio ")).check()
    admin.get_by_label("objective").select_option("throughput")
    admin.get_by_label("candidates").fill("fifo, edf")
    asked = []

    def hear(request) -> None:
        if request.method == "POST" and request.url.endswith("/v1/whatif"):
            policies = request.post_data_json["policies"]
            asked.extend(each["portfolio"] for each in policies if isinstance(each, dict))

    admin.on("request", hear)
    admin.get_by_role("button", name="Compare").click()
    admin.locator("table caption", has_text="Policies compared").wait_for(
        state="attached", timeout=60_000
    )
    assert admin.locator("td", has_text=re.compile("^fifo$")).count() == 1
    assert admin.locator("td", has_text=re.compile("^portfolio$")).count() == 1
    assert asked == [{"objective": "throughput", "candidates": ["fifo", "edf"]}]
    widths = admin.locator(".figures img").evaluate_all(
        "async images => { await Promise.all(images.map(each => each.decode())); "
        "return images.map(each => each.naturalWidth); }"
    )
    assert widths
    assert min(widths) > 100


def test_a_running_query_is_shown_opened_and_cancelled(admin, slow):
    row = admin.locator("table.running tr", has_text="numbers a, numbers b")
    row.wait_for()
    assert "sales" in row.inner_text()
    row.get_by_role("link").first.click()
    admin.locator("h1", has_text=slow).wait_for()
    admin.locator("rect.segment.lease").first.wait_for(state="attached")
    admin.get_by_role("button", name="Cancel").click()
    admin.get_by_role("button", name="Cancel it").click()
    admin.locator(".chip.cancelled").wait_for()
    go(admin, "now")
    admin.locator("table.ended tr", has_text="cancelled").first.wait_for()


def test_cancel_on_the_first_view(admin, slow):
    admin.get_by_role("button", name=f"Cancel query {slow}").click()
    admin.get_by_text(f"Query {slow} is cancelled.").wait_for()


# --- SQL -----------------------------------------------------------------------------------------


def test_a_statement_is_written_run_and_its_rows_are_paged(admin):
    go(admin, "sql")
    admin.locator("details", has_text="numbers").wait_for()
    area = admin.get_by_label("SQL statement")
    area.fill(
        "SELECT n, 1234567890123456789012::HUGEINT AS h, 1.50::DECIMAL(9,2) AS d\n"
        "FROM numbers ORDER BY n"
    )
    admin.keyboard.press("Control+Enter")
    admin.get_by_text("rows 1 to 100", exact=True).wait_for()
    first = admin.locator("table.result tbody tr").first
    assert first.locator("td").all_inner_texts() == ["0", "1234567890123456789012", "1.50"]
    admin.get_by_role("button", name="Next").click()
    admin.get_by_text("rows 101 to 200", exact=True).wait_for()
    assert admin.locator("table.result tbody td").first.inner_text() == "100"


def test_a_wrong_statement_is_told_with_its_line(admin):
    go(admin, "sql")
    admin.get_by_label("SQL statement").fill("SELECT *\nFROM nowhere")
    admin.get_by_role("button", name="Run", exact=True).click()
    admin.get_by_text("nowhere does not exist").wait_for()


def test_a_statement_is_cancelled_by_the_keyboard(admin):
    go(admin, "sql")
    admin.get_by_label("SQL statement").fill(SLOW)
    admin.keyboard.press("Control+Enter")
    admin.get_by_role("button", name="Cancel", exact=True).wait_for()
    admin.locator(".panel .mono", has_text="-").first.wait_for()
    admin.keyboard.press("Control+.")
    admin.get_by_text("The query is cancelled.").wait_for()


def test_an_online_answer_has_intervals_and_ends_exact(admin):
    go(admin, "sql")
    admin.get_by_label("SQL statement").fill("SELECT g, avg(x) AS mean FROM large GROUP BY g")
    admin.get_by_label("online").check()
    admin.get_by_role("button", name="Run", exact=True).click()
    admin.locator("table.online svg.whisker").nth(2).wait_for(state="attached")
    admin.get_by_text("Exact after").wait_for()
    admin.locator(".panel a.mono").first.click()
    admin.get_by_role("heading", name="Provisional answers").wait_for()


def test_a_query_that_has_ended_shows_its_operators_and_its_last_provisional_answer(admin, server):
    sql = "SELECT g, max(x) AS top, avg(x) AS mean FROM large GROUP BY g"
    with server.client("ann") as ann:
        query = ann.post("/v1/queries", json={"sql": sql, "online": True}).json()["id"]
        wait_until(
            lambda: ann.get(f"/v1/queries/{query}").json()["state"] not in ("waiting", "running")
        )
    go(admin, f"query/{query}")
    admin.locator("table.online th", has_text="mean").wait_for()
    assert admin.locator("table.online tbody tr").count() == 3
    admin.get_by_role("button", name="Operators, with what came of them").click()
    admin.locator("pre.plan", has_text="large").wait_for()


def test_a_staged_query_shows_its_tasks_and_those_that_rode_on_others(admin, server):
    with server.client("ann") as ann:
        body = {"sql": "SELECT n % 7 AS d, sum(n) FROM numbers GROUP BY d", "plan": "staged"}
        query = ann.post("/v1/queries?wait=20", json=body).json()["id"]
        wait_until(lambda: ann.get(f"/v1/queries/{query}/timeline").json()["ended_at"])
        line = ann.get(f"/v1/queries/{query}/timeline").json()
    go(admin, f"query/{query}")
    tasks = [each for each in line["segments"] if each["kind"] == "task"]
    drawn = admin.locator("svg rect.segment.task:not(.legend-mark *)")
    wait_until(lambda: drawn.count() == len(tasks))
    admin.locator("pre.plan", has_text="plan: staged").wait_for()
    # Which queries share a read is a matter of moments, so that is told by the test.
    tasks[0]["kind"] = "ride"
    told = {**line, "rode_with": ["5f0c2a91b7de-3"], "rode_with_others": 2}
    admin.route("**/timeline", lambda route: route.fulfill(json=told))
    go(admin, "now")
    go(admin, f"query/{query}")
    admin.get_by_text("Its work was shared with").wait_for()
    assert (
        admin.get_by_role("link", name="b7de-3")
        .or_(admin.locator("a[href='#/query/5f0c2a91b7de-3']"))
        .count()
    )
    admin.get_by_text("and 2 other queries").wait_for()
    assert admin.locator("svg rect.segment.ride:not(.legend-mark *)").count() == 1


def test_what_cannot_be_estimated_runs_exactly_and_says_why(admin):
    go(admin, "sql")
    admin.get_by_label("SQL statement").fill("SELECT avg(n) FROM numbers")
    admin.get_by_label("online").check()
    admin.get_by_role("button", name="Run", exact=True).click()
    admin.get_by_text("too few to estimate from").wait_for()
    admin.get_by_text("rows 1 to 1 of 1").wait_for()


# --- controls ------------------------------------------------------------------------------------


def test_pausing_is_recorded_seen_everywhere_and_undone(admin, server):
    go(admin, "controls")
    admin.get_by_label("reason").fill("maintenance")
    admin.get_by_role("button", name="Pause").click()
    admin.locator(".top b", has_text="paused").wait_for()
    row = admin.locator("tr", has_text="maintenance").first
    assert "root" in row.inner_text()
    row.get_by_role("button", name="Undo").click()
    admin.get_by_role("button", name="Pause").wait_for()
    with server.client("root") as root:
        assert root.get("/v1/controls").json()["state"] == "open"


def test_a_tenant_gets_another_weight(admin, server):
    go(admin, "controls")
    weight = admin.get_by_label("weight of sales")
    weight.fill("3")
    weight.press("Enter")
    admin.locator(".notice.good", has_text="sales").wait_for()
    with server.client("root") as root:
        tenants = root.get("/v1/controls").json()["tenants"]
    assert {each["name"]: each["weight"] for each in tenants}["sales"] == 3
    weight.fill("")
    weight.press("Enter")
    admin.locator(".notice.good", has_text="3 → 1").wait_for()


# --- by keyboard, on a phone, in the dark --------------------------------------------------------


def test_the_keyboard_goes_everywhere(admin):
    admin.keyboard.press("Tab")
    assert admin.evaluate("document.activeElement.textContent") == "Skip to the content"
    admin.keyboard.press("g")
    admin.keyboard.press("s")
    admin.get_by_label("SQL statement").wait_for()
    assert admin.evaluate("document.activeElement.tagName") == "TEXTAREA"
    admin.keyboard.press("Tab")  # it indents
    assert admin.evaluate("document.activeElement.value") == "  "
    admin.keyboard.press("Escape")
    admin.keyboard.press("Tab")  # and now it leaves
    assert admin.evaluate("document.activeElement.tagName") != "TEXTAREA"
    admin.keyboard.press("?")
    admin.get_by_role("heading", name="Shortcuts").wait_for()
    admin.keyboard.press("Escape")
    admin.keyboard.press("t")
    assert admin.evaluate("document.documentElement.dataset.theme") == "light"


def test_nothing_is_wider_than_a_phone(browser, server, slow):
    with a_page(browser, size=PHONE) as page:
        signed_in(page, server.url, server.secrets["root"])
        page.locator("table.running tr", has_text="numbers a").wait_for()
        for view in (*ALL_VIEWS, f"query/{slow}"):
            go(page, view)
            page.locator(ALL_VIEWS.get(view, "h1")).first.wait_for(state="attached")
            page.wait_for_timeout(50)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], view
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("link", name="Now").click()
        page.get_by_role("heading", name=re.compile("Running")).wait_for()
        assert not page.get_by_role("link", name="Cluster").is_visible()


def test_dark_is_dark(browser, server):
    with a_page(browser, color_scheme="dark") as page:
        signed_in(page, server.url, server.secrets["root"])
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(map(int, re.findall(r"\d+", ground))) < 60


# --- no script from outside ----------------------------------------------------------------------

EVIL = "<img src=x onerror=window.hacked=1>"


@pytest.mark.parametrize(
    "views",
    [
        pytest.param(("now", "controls"), id="some"),
        pytest.param(tuple(ALL_VIEWS), id="all", marks=pytest.mark.long),
    ],
)
def test_names_statements_and_errors_are_shown_as_text_and_never_run(browser, tmp_path, views):
    with a_server(tmp_path, session={"history": tmp_path / "history.sqlite"}) as server:
        pq.write_table(pa.table({EVIL: [EVIL]}), tmp_path / "data" / f"{EVIL}.parquet")
        server.yard.session.refresh()
        secret = server.yard.tokens.add("mallory", EVIL, "admin")
        head = {"Authorization": f"Bearer {secret}"}
        with httpx.Client(base_url=server.url, headers=head, timeout=30) as mallory:
            sqls = (f"SELECT '{EVIL}' AS \"{EVIL}\" -- {EVIL}", f'SELECT "{EVIL}" FROM small')
            for sql in sqls:
                mallory.post("/v1/queries?wait=10", json={"sql": sql})
            slow = mallory.post("/v1/queries", json={"sql": f"{SLOW} -- {EVIL}"}).json()["id"]
            ended = [each["id"] for each in mallory.get("/v1/now").json()["ended"]]
            with a_page(browser) as page:
                signed_in(page, server.url, secret)
                page.locator("table.running tr", has_text=EVIL).wait_for()
                for view in (*views, f"query/{slow}", *(f"query/{each}" for each in ended)):
                    go(page, view)
                    page.locator("main h1").wait_for(state="attached")
                    page.wait_for_timeout(150)
                go(page, "sql")
                page.locator("details", has_text=EVIL).locator("summary").click()
                page.get_by_label("SQL statement").fill(f'SELECT * FROM "{EVIL}"')
                page.keyboard.press("Control+Enter")
                page.locator("table.result td", has_text=EVIL).wait_for()
                page.get_by_label("SQL statement").fill(f'SELECT "{EVIL}" FROM small')
                page.keyboard.press("Control+Enter")
                page.locator(".notice.bad", has_text=EVIL).wait_for()
                assert page.locator("img[src=x]").count() == 0
                assert page.evaluate("window.hacked") is None
            mallory.delete(f"/v1/queries/{slow}")


def test_the_policy_refuses_script_that_got_in_all_the_same(browser, server):
    with a_page(
        browser, allowed=("Content Security Policy", "TrustedHTML", "TrustedScript")
    ) as page:
        signed_in(page, server.url, server.secrets["root"])
        refused = page.evaluate(
            """() => {
                const tried = [];
                const made = document.createElement("script");
                try { made.text = "window.hacked = 1"; document.body.append(made); }
                catch (error) { tried.push(error.name); }
                try { document.body.innerHTML = "<img src=x onerror=window.hacked=1>"; }
                catch (error) { tried.push(error.name); }
                return tried;
            }"""
        )
        page.wait_for_timeout(100)
        assert refused == ["TypeError", "TypeError"]
        assert page.evaluate("window.hacked") is None


# --- many ----------------------------------------------------------------------------------------


def filters_look_through_all(page, others: int) -> None:
    """One query of sales waits behind all others, which are more than are listed."""
    all_of_them = f"{others + 2:,}".replace(",", ".")
    page.get_by_role("button", name="sales").click()
    page.get_by_role("heading", name=re.compile(f"Waiting · 1 of {all_of_them}")).wait_for()
    page.locator("table.waiting tr", has_text="behind all others").wait_for()
    assert page.locator("table.waiting tbody tr").count() == 1
    page.get_by_label("Filter queries").fill("behind all")
    page.get_by_text("None of the first 200 matches.").wait_for()
    page.get_by_text("the filter does not look at them").wait_for()
    page.get_by_label("Filter queries").fill("")
    page.locator("table.waiting tbody tr").nth(199).wait_for()


def many_waiting(browser, tmp_path, number: int) -> None:
    from queryard.service.config import ServiceLimits

    limits = ServiceLimits(statements_per_s=1e6, open_results=10_000)
    session = {"profile": "fifo"}
    with (
        a_server(tmp_path, limits=limits, session=session) as server,
        server.client("root") as root,
    ):
        root.post("/v1/controls", json={"change": "pause"})
        for each in range(number):
            root.post("/v1/queries", json={"sql": f"SELECT {each} FROM numbers"})
        with a_page(browser) as page:
            signed_in(page, server.url, server.secrets["root"])
            page.get_by_role(
                "heading", name=re.compile(f"Waiting · {number:,}".replace(",", "."))
            ).wait_for()
            rows = page.locator("table.waiting tbody tr")
            assert rows.count() == min(200, number)
            handle = rows.nth(1).element_handle()
            root.post("/v1/queries", json={"sql": "SELECT 'one more' FROM numbers"})
            page.get_by_role(
                "heading", name=re.compile(f"Waiting · {number + 1:,}".replace(",", "."))
            ).wait_for()
            assert handle.evaluate("row => row.isConnected"), "rows stay, and are not made anew"
            with server.client("ann") as ann:
                ann.post("/v1/queries", json={"sql": "SELECT 'behind all others' FROM numbers"})
            filters_look_through_all(page, number)
            for tenant in ("ops", "sales"):
                root.post("/v1/controls", json={"change": "cancel-tenant", "tenant": tenant})
            page.get_by_text("No query waits.").wait_for()


def test_many_waiting_queries_are_shown_in_part_and_rows_stay(browser, tmp_path):
    many_waiting(browser, tmp_path, 205)


@pytest.mark.long
def test_a_thousand_waiting_queries_are_shown_in_part_and_rows_stay(browser, tmp_path):
    many_waiting(browser, tmp_path, 1000)
