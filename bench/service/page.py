"""The page of a server with 1,000 waiting queries: its first view, how old it is, what it costs.

The server is paused, so that queries wait; a few per second come and are cancelled, so that there
is always something new to show. In Chromium: the time from opening the address to the table with
its first 200 rows; the time from the answer to a cancellation to the end of its row. Then the
server's processor time with ten open pages, less that with none: ten equal ones, those of ten
tenants, and ten of admins with views that ask again and again. Targets: a first view within 1 s,
an update at most 1 s old, ten pages below 5 % of a core.

python -m bench.service.page [--waiting 1000] [--seconds 20]: about three minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from .rows import make
from .setting import Served, options, server, table

ROWS = 1_000
PAGES = 10
TENANTS = tuple(f"tenant-{number}" for number in range(PAGES))
# What views ask for besides, and after how many seconds again.
VIEWS_ASK: tuple[tuple[str, float], ...] = (
    ("/v1/scheduler?limit=50", 2.0),
    ("/v1/cluster", 1.0),
    ("/v1/series?points=300", 2.0),
    ("/v1/performance?by=tenant", 5.0),
    ("/v1/logs?limit=200", 1.0),
    ("/v1/controls", 2.0),
)
SHOWN = 200
# How often a query comes and goes while the page is watched.
CHURN_S = 0.25
VIEWS, UPDATES = 7, 20
PATIENCE_S = 30.0
# Notes when the rows are there, on the clock that begins with the navigation.
NOTE = """
new MutationObserver((_, observer) => {
  if (document.querySelectorAll("table.waiting tbody tr").length < %d) return;
  const note = () => { window.shownAt ??= performance.now(); };
  requestAnimationFrame(() => requestAnimationFrame(note)); // once it is painted
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""


def bench(given: argparse.Namespace) -> None:
    waiting = 250 if given.quick else given.waiting
    seconds = 3.0 if given.quick else given.seconds
    file = given.data / f"rows-{ROWS}.parquet"
    make(file, ROWS)
    limits = {"open_results": 100_000}
    with server({"rows": str(file)}, TENANTS, limits=limits) as served:
        head = {"Authorization": f"Bearer {served.secrets['admin']}"}
        with httpx.Client(base_url=served.http, headers=head, timeout=60) as client:
            client.post("/v1/controls", json={"change": "pause"}).raise_for_status()
            for number in range(waiting):
                _submit(served, client, number)
            with _churn(served):
                idle = _cpu_share(served, seconds)
                costs = {}
                for name, pages in _cases().items():
                    with _open_pages(served, pages):
                        time.sleep(1.0)
                        costs[name] = (_cpu_share(served, seconds) - idle) * 100
                rows = _in_browser(served, client, given.quick)
    for name, cost in costs.items():
        rows.append((f"server, {name}, % of a core (target: 5)", cost, cost, cost))
    title = f"The page with {waiting:,} waiting queries"
    table(title, ("what", "median", "largest", "smallest"), rows, given.out)


def _submit(served: Served, client: httpx.Client, number: int) -> str:
    """A query of one of the tenants, in turns."""
    secret = served.secrets[TENANTS[number % PAGES]]
    head = {"Authorization": f"Bearer {secret}"}
    body = {"sql": f"SELECT {number}, count(*) FROM rows"}
    answer = client.post("/v1/queries", json=body, headers=head)
    answer.raise_for_status()
    return str(answer.json()["id"])


@contextlib.contextmanager
def _churn(served: Served) -> Iterator[None]:
    """Queries that come and are cancelled, meanwhile."""
    over = threading.Event()

    def run() -> None:
        head = {"Authorization": f"Bearer {served.secrets['admin']}"}
        with httpx.Client(base_url=served.http, headers=head, timeout=60) as client:
            number = 1_000_000
            while not over.wait(CHURN_S):
                number += 1
                client.delete(f"/v1/queries/{_submit(served, client, number)}")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class OpenPage(NamedTuple):
    """A page by the token it has signed in with, and what its view asks for."""

    token: str
    asks: tuple[str, float] | None = None


def _cases() -> dict[str, list[OpenPage]]:
    """Which pages are open at a time."""
    views = (*VIEWS_ASK, *VIEWS_ASK)[:PAGES]
    return {
        f"{PAGES} equal pages of an admin": [OpenPage("admin")] * PAGES,
        f"pages of {PAGES} tenants": [OpenPage(name) for name in TENANTS],
        f"{PAGES} pages of admins, with views that ask": [OpenPage("admin", ask) for ask in views],
    }


@contextlib.contextmanager
def _open_pages(served: Served, pages: Sequence[OpenPage]) -> Iterator[None]:
    """What open pages ask for: each the stream of now, and what its view shows."""
    over = threading.Event()

    def reading(page: OpenPage) -> httpx.Client:
        head = {"Authorization": f"Bearer {served.secrets[page.token]}"}
        return httpx.Client(base_url=served.http, headers=head, timeout=60)

    def read(page: OpenPage) -> None:
        with (
            reading(page) as client,
            client.stream("GET", "/v1/now/stream", params={"limit": SHOWN}) as stream,
        ):
            for _ in stream.iter_raw():
                if over.is_set():
                    return

    def ask(page: OpenPage, path: str, every_s: float) -> None:
        with reading(page) as client:
            while not over.wait(every_s):
                client.get(path).raise_for_status()

    threads = [threading.Thread(target=read, args=(page,), daemon=True) for page in pages]
    threads += [
        threading.Thread(target=ask, args=(page, *page.asks), daemon=True)
        for page in pages
        if page.asks is not None
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _cpu_share(served: Served, seconds: float) -> float:
    """The share of a core that the server takes."""
    began_s, cpu_s = time.monotonic(), served.cpu_s()
    time.sleep(seconds)
    return (served.cpu_s() - cpu_s) / (time.monotonic() - began_s)


def _in_browser(served: Served, client: httpx.Client, quick: bool) -> list[tuple[Any, ...]]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("error: there is no Chromium; on Debian: apt-get install chromium")
    rights = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=rights)
        first = [_first_view(browser, served) for _ in range(2 if quick else VIEWS)]
        ages = _ages(browser, served, client, 3 if quick else UPDATES)
        browser.close()
    return [
        _row("first view, s (target: 1)", first),
        _row("an update, s (target: 1)", ages),
    ]


def _row(name: str, values: Sequence[float]) -> tuple[Any, ...]:
    return name, statistics.median(values), max(values), min(values)


def _opened(browser: Browser, served: Served) -> Page:
    """A page of a browser without a cache, with its first rows."""
    page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
    page.add_init_script(NOTE % SHOWN)
    page.goto(f"{served.http}/#token={served.secrets['admin']}")
    until_s = time.monotonic() + PATIENCE_S
    while page.evaluate("window.shownAt ?? null") is None:
        if time.monotonic() > until_s:
            raise SystemExit(f"error: no rows within {PATIENCE_S:g} s: {page.inner_text('body')}")
        time.sleep(0.02)
    return page


def _first_view(browser: Browser, served: Served) -> float:
    page = _opened(browser, served)
    shown_ms = page.evaluate("window.shownAt")
    page.context.close()
    return float(shown_ms) / 1e3


def _ages(browser: Browser, served: Served, client: httpx.Client, times: int) -> list[float]:
    """From the answer to a cancellation until its row has left."""
    page = _opened(browser, served)
    found = []
    for _ in range(times):
        query = page.evaluate("document.querySelector('table.waiting tbody a').title")
        client.delete(f"/v1/queries/{query}")
        began = time.perf_counter()
        page.locator(f"table.waiting a[title='{query}']").wait_for(state="detached")
        found.append(time.perf_counter() - began)
        time.sleep(0.3)
    page.context.close()
    return found


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--waiting", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=20.0, help="default: %(default)s")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(options("page", __doc__, arguments, _more))


if __name__ == "__main__":
    main()
