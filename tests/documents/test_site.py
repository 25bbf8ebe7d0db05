"""The site's links: to pages, to files of the checkout that are no pages, and to nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tools import site
from tools.site_examples import fenced


@pytest.fixture
def warnings(monkeypatch):
    found: list[str] = []
    monkeypatch.setattr(site.LOG, "warning", lambda text, *given: found.append(text % given))
    return found


def linked(markdown: str, page: str) -> str:
    pages = {"sql.md", "policies.md", "decisions/index.md", "commands.md"}
    files = SimpleNamespace(get_file_from_path=lambda path: path if path in pages else None)
    asked = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    return site.on_page_markdown(markdown, page=asked, config=None, files=files)


def test_links_to_pages_fit_the_place_of_the_page(warnings):
    assert linked("[a](docs/sql.md#x)", "index.md") == "[a](sql.md#x)"
    assert linked("[a](../policies.md)", "decisions/index.md") == "[a](../policies.md)"
    assert linked("[a](../README.md)", "sql.md") == "[a](index.md)"
    assert not warnings


def test_a_file_that_is_no_page_is_named_only(warnings):
    assert linked("[the loads](../examples/load)", "sql.md") == "the loads"
    assert not warnings


def test_a_link_to_nothing_is_a_warning_that_names_it(warnings):
    linked("[a](nowhere.md)", "sql.md")
    assert warnings == ["docs/sql.md: the link [a](nowhere.md) leads nowhere"]


def test_a_folder_in_the_navigation_is_all_its_pages():
    config = site.on_config(
        SimpleNamespace(nav=[{"Inside": [{"Decisions": "decisions/"}, "a.md"]}])
    )
    ((_, (decisions, page)),) = config.nav[0].items()
    names = decisions["Decisions"]
    assert names[0] == "decisions/index.md"
    assert "decisions/0001-events-in-commands-out.md" in names
    assert page == "a.md"


def test_an_example_in_a_docstring_is_shown_as_a_program():
    text = "Adds.\n\n>>> 1 + 2\n3\n\nMore."
    assert fenced(text) == "Adds.\n\n```pycon\n>>> 1 + 2\n3\n```\n\nMore."
