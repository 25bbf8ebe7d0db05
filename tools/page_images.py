"""Screenshots of the page, for docs/page.md: a demonstration is served, and Chromium looks at it.

python -m tools.page_images [NAME ...] [--warm 90] [--data DIR]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
DESK = (1280, 840)
PHONE = (360, 740)
START_S = 180.0
TRIES = 20
ONLINE = """-- What does a line cost, by the way it is shipped?
SELECT l_shipmode, avg(l_extendedprice) AS price, sum(l_quantity) AS quantity
FROM lineitem
GROUP BY ALL
ORDER BY ALL"""


@contextmanager
def a_demo(data: Path) -> Iterator[str]:
    """The link to a demonstration, which ends with the context."""
    command = [sys.executable, "-m", "queryard.cli", "serve", "--demo", str(data)]
    process = subprocess.Popen(
        [*command, "--http", "0", "--postgres", "off"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.search(r"page +(\S+)", line):
                yield found[1]
                return
        raise SystemExit("error: the demonstration did not start")
    finally:
        process.terminate()
        process.wait(START_S)


class Photographer:
    """Opens views, each in a page of its own, and keeps what they look like."""

    def __init__(self, browser: Browser, link: str) -> None:
        self._browser = browser
        self._link = link

    @contextmanager
    def view(
        self, view: str, size: tuple[int, int] = DESK, scheme: str = "light"
    ) -> Iterator[Page]:
        width, height = size
        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            device_scale_factor=2 if size == PHONE else 1,
        )
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(self._link)
        page.locator("nav a").first.wait_for(state="attached")
        page.evaluate("view => { location.hash = `#/${view}`; }", view)
        page.wait_for_timeout(3000)
        yield page
        context.close()

    def take(
        self, name: str, view: str, size: tuple[int, int] = DESK, scheme: str = "light"
    ) -> None:
        with self.view(view, size, scheme) as page:
            keep(page, name)


def keep(page: Page, name: str) -> None:
    page.screenshot(path=IMAGES / f"page-{name}.png")
    print(f"docs/images/page-{name}.png")


def until_busy(page: Page, waiting: int = 8) -> None:
    """Wait for a moment with a queue."""
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        if page.locator("table.waiting tbody tr").count() >= waiting:
            return
        page.wait_for_timeout(100)


def longest_query(link: str) -> str:
    """A past query that has had to give its slots back."""
    url, _, token = link.partition("/#token=")
    head = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=head, timeout=60) as client:
        past = client.get("/v1/history", params={"limit": 500}).json()["queries"]
        known = [each for each in past if each["outcome"] == "finished" and each["work_s"]]
        known.sort(key=lambda each: each["work_s"], reverse=True)
        best, most = known[0]["query"], 0
        for each in known[:12]:
            line = client.get(f"/v1/queries/{each['query']}/timeline").json()
            if len(line["segments"]) > most:
                best, most = each["query"], len(line["segments"])
    return str(best)


def now(photos: Photographer, name: str, size: tuple[int, int], scheme: str) -> None:
    with photos.view("now", size, scheme) as page:
        until_busy(page)
        if size == PHONE:
            page.locator("table.running").scroll_into_view_if_needed()
        keep(page, name)


def sql(photos: Photographer) -> None:
    """An answer on its way; on a fast machine it takes some tries to see one."""
    with photos.view("sql") as page:
        page.get_by_label("SQL statement").fill(ONLINE)
        page.get_by_label("online").check()
        for _ in range(TRIES):
            page.get_by_role("button", name="Run", exact=True).click()
            until_s = time.monotonic() + 20
            while time.monotonic() < until_s:
                told = page.locator(".panel p").all_inner_texts()
                if any("error at most" in text for text in told):
                    keep(page, "sql")
                    if page.locator("table.online svg.whisker").count():
                        return
                if any("Exact after" in text for text in told):
                    break
        raise SystemExit(f"error: no provisional answer was seen in {TRIES} tries")


def controls(photos: Photographer) -> None:
    with photos.view("controls") as page:
        page.get_by_label("reason").fill("the end of the quarter")
        weight = page.get_by_label("weight of analysts", exact=True)
        weight.fill(f"{float(weight.input_value()) + 1:g}")  # what an earlier run has set stays
        weight.press("Enter")
        page.locator(".notice.good", has_text="analysts").wait_for()
        page.mouse.click(5, 400)
        page.wait_for_timeout(500)
        keep(page, "controls")


def performance(photos: Photographer) -> None:
    with photos.view("performance") as page:
        page.get_by_label("the last").select_option("900")
        page.wait_for_timeout(2000)
        keep(page, "performance")


def whatif(photos: Photographer) -> None:
    with photos.view("whatif") as page:
        page.get_by_role("button", name="Compare").click()
        page.locator("table caption", has_text="Policies compared").wait_for(
            state="attached", timeout=200_000
        )
        page.locator("h2", has_text="Comparison").evaluate(
            "heading => scrollBy(0, heading.getBoundingClientRect().top - 70)"
        )
        page.wait_for_timeout(1000)
        keep(page, "whatif")


def today() -> str:
    """Days of the archive are those of UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def ways(photos: Photographer, link: str) -> dict[str, Callable[[], None]]:
    """How each image is made, in an order in which all have something to show."""
    return {
        "now": lambda: now(photos, "now", DESK, "light"),
        "now-dark": lambda: now(photos, "now-dark", DESK, "dark"),
        "phone": lambda: now(photos, "phone", PHONE, "light"),
        "query": lambda: photos.take("query", f"query/{longest_query(link)}"),
        "sql": lambda: sql(photos),
        "controls": lambda: controls(photos),
        "whatif": lambda: whatif(photos),
        "scheduler": lambda: photos.take("scheduler", "scheduler"),
        "cluster": lambda: photos.take("cluster", "cluster"),
        "performance": lambda: performance(photos),
        "system": lambda: photos.take("system", "system"),
        "archive": lambda: photos.take("archive", f"archive/{today()}"),
        "logs": lambda: photos.take("logs", "logs"),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.page_images", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these images")
    parser.add_argument("--warm", type=float, default=90.0, help="seconds of load before")
    parser.add_argument("--data", type=Path, help="where the data is, or is to be")
    given = parser.parse_args(arguments)
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("error: there is no Chromium; on Debian: apt-get install chromium")
    rights = ["--no-sandbox"] if os.getuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, a_demo(given.data or Path(folder)) as link:
        time.sleep(given.warm)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=rights)
            for name, make in ways(Photographer(browser, link), link).items():
                if not given.names or name in given.names:
                    make()
            browser.close()


if __name__ == "__main__":
    main()
