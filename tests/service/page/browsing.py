"""Chromium, driven by Playwright, and pages of it that notice every error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
# How long anything on the page is waited for.
PATIENCE_MS = 20_000
# A browser notes every answer that is an error, also those that the page asks for: rows of a query
# that fails.
EXPECTED = ("/rows?start=0&limit=100",)
# Runs for long, on two slots.
SLOW = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE (a.n * b.n + c.n) % 7 = 3"
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 860}


@contextmanager
def a_browser() -> Iterator[Any]:
    """Chromium without a window. No event loop may run in this thread meanwhile."""
    api = pytest.importorskip("playwright.sync_api")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no Chromium; on Debian: apt-get install chromium")
    rights = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=rights)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def a_page(
    browser: Any, *, size: dict[str, int] = DESK, allowed: tuple[str, ...] = (), **options: Any
) -> Iterator[Any]:
    """A page of its own; errors on its console fail the test, unless they have an allowed text."""
    context = browser.new_context(viewport=size, **options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    errors: list[str] = []

    def heard(message: Any) -> None:
        if message.type in ("error", "warning"):
            errors.append(f"{message.text} ({message.location.get('url', '')})")

    page.on("console", heard)
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        yield page
        wrong = [each for each in errors if not any(text in each for text in (*EXPECTED, *allowed))]
        assert not wrong, wrong
    finally:
        context.close()


def signed_in(page: Any, url: str, secret: str, view: str = "now") -> Any:
    """Open a view with a token."""
    page.goto(f"{url}/#token={secret}")
    page.locator("nav a").first.wait_for(state="attached")
    if view != "now":
        go(page, view)
    return page


def go(page: Any, view: str) -> None:
    page.evaluate("view => { location.hash = `#/${view}`; }", view)
