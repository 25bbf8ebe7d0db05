"""The files of the page: how they are served, and that no text can become markup."""

from __future__ import annotations

import re

import pytest

from queryard.service.page.routes import assets
from service.http.serving import a_server

SCRIPTS = {name: asset.content.decode() for name, asset in assets().items() if name.endswith(".js")}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client without a token."""
    with a_server(tmp_path_factory.mktemp("files")) as made, made.client(None) as client:
        yield client


def test_the_page_and_its_files_need_no_token_and_are_held_to_a_strict_policy(client):
    for name in ("", *(f"page/{asset}" for asset in assets())):
        answer = client.get(f"/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["x-content-type-options"] == "nosniff"
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
    assert client.get("/").headers["content-type"].startswith("text/html")
    assert client.get("/page/main.js").headers["content-type"].startswith("text/javascript")


def test_a_file_that_is_known_is_not_sent_again(client):
    first = client.get("/page/page.css")
    again = client.get("/page/page.css", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = client.head("/page/page.css")
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) == len(first.content)


@pytest.mark.parametrize(
    "path", ["page/", "page/none.js", "page/../main.js", "page/%2e%2e/routes.py"]
)
def test_nothing_else_can_be_read(client, path):
    assert client.get(f"/{path}").status_code in (401, 404)


def test_data_needs_a_token(client):
    assert client.get("/v1/whoami").status_code == 401


def test_every_file_that_a_module_names_is_there():
    for name, text in SCRIPTS.items():
        folder = name.rpartition("/")[0]
        for found in re.findall(r'(?:from|import\()\s*["`](\.[^"`]+)["`]', text):
            if "${" in found:
                continue
            parts = f"{folder}/{found}".split("/")
            path: list[str] = []
            for part in parts:
                if part == "..":
                    path.pop()
                elif part not in (".", ""):
                    path.append(part)
            assert "/".join(path) in assets(), (name, found)
    index = assets()["index.html"].content.decode()
    for found in re.findall(r'(?:href|src)="/page/([^"]+)"', index):
        assert found in assets(), found


def test_no_text_becomes_markup_and_no_style_or_script_is_inline():
    for name, text in SCRIPTS.items():
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "DOMParser",
        ):
            assert word not in text, (name, word)
    index = assets()["index.html"].content.decode()
    assert "style=" not in index
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=", index)


def test_nothing_comes_from_elsewhere():
    for name, asset in assets().items():
        found = re.findall(r"https?://[^\s\"')]+", asset.content.decode())
        assert set(found) <= {"http://www.w3.org/2000/svg"}, name
