"""Hooks of mkdocs: the pages of the site that do not lie in docs/.

The documents at the root become pages of their own, and a page of all commands is made from their
help. Links between documents are written for a reader of the checkout; here they are made to fit,
and a link to nothing is a warning, which `--strict` makes an error.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# Warnings below this name count for `--strict`.
LOG = logging.getLogger("mkdocs.hooks.site")
AT_THE_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]+)?\)")
_IMAGE = re.compile(r"!\[(?P<text>[^\]]*)\]\(docs/(?P<target>[^)]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """In the navigation a folder stands for its pages, so that a new one is there by itself."""
    config.nav = [_opened(entry) for entry in config.nav or ()]
    return config


def _opened(entry: Any) -> Any:
    if isinstance(entry, Mapping):
        return {title: _opened(below) for title, below in entry.items()}
    if isinstance(entry, list):
        return [_opened(below) for below in entry]
    if not entry.endswith("/"):
        return entry
    pages = sorted(file.name for file in (ROOT / "docs" / entry).glob("*.md"))
    return [entry + page for page in sorted(pages, key=lambda page: page != "index.md")]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what does not lie in docs/."""
    for source, page in AT_THE_ROOT.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "commands.md", content=commands_page()))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to pages; a file of the checkout that is no page is named only."""
    source = next((old for old, new in AT_THE_ROOT.items() if new == page.file.src_uri), None)
    place = Path("docs", page.file.src_uri) if source is None else Path(source)
    depth = page.file.src_uri.count("/")

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = _normal(place.parent / target)
        if path in AT_THE_ROOT:
            uri = AT_THE_ROOT[path]
        elif path.startswith("docs/") and files.get_file_from_path(path[5:]):
            uri = path[5:]
        elif place.parent == Path("docs") and files.get_file_from_path(target):
            uri = target
        else:
            if not (ROOT / path).exists():
                LOG.warning("%s: the link %s leads nowhere", place, found[0])
            return found["text"]
        return f"[{found['text']}]({'../' * depth}{uri}{found['anchor'] or ''})"

    return _LINK.sub(link, _IMAGE.sub(r"![\g<text>](\g<target>)", markdown))


def _normal(path: Path) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def commands_page() -> str:
    """The help of every command, as one page."""
    import typer.main

    from queryard.cli.app import app

    lines = ["# Commands", "", "`queryard COMMAND --help` shows the same in a terminal.", ""]
    lines += _commands("queryard", typer.main.get_command(app))
    return "\n".join(lines)


def _commands(name: str, command: Any) -> Iterator[str]:
    below = getattr(command, "commands", None)
    if below is None:
        yield from _command(name, command)
        return
    for key, one in below.items():
        if not one.hidden:
            yield from _commands(f"{name} {key}", one)


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    yield re.sub(r"\n\s*\n", "\n\n", (command.help or "").replace("\b", "").strip())
    yield ""
    rows = [_option(parameter) for parameter in command.params if not _is_hidden(parameter)]
    if rows:
        yield "| argument or option | |"
        yield "|---|---|"
        yield from rows
        yield ""


def _is_hidden(parameter: Any) -> bool:
    return bool(getattr(parameter, "hidden", False)) or parameter.name == "help"


def _option(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if parameter.param_type_name == "argument":
        names = f"`{(parameter.metavar or parameter.name).upper()}`"
    elif parameter.metavar:
        names += f" `{parameter.metavar}`"
    text = re.sub(r"([|\[\]])", r"\\\1", " ".join((parameter.help or "").split()))
    default = parameter.default
    if isinstance(default, str | int | float) and not isinstance(default, bool):
        text += f" Default: `{default}`."
    return f"| {names} | {text} |"
