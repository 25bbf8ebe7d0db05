"""Whether pyproject.toml declares what the package imports, and no more. `make check` runs it.

What a module imports when it is loaded must be among the `dependencies`. What is imported within a
function may also belong to an extra: the function must then say how to install it. A package that
is loaded only with an extra installed may import what is in the extra.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Declared, although nothing imports them, and why.
NOT_IMPORTED = {
    "httptools": "uvicorn parses HTTP with it",
    "tpchgen-cli": "a program, started as a process",
}
# Packages that are loaded only where their extra is installed.
OF_EXTRAS = ("src/queryard/remote/", "src/queryard/service/")
# Libraries of which a module has another name than they have.
OTHER_NAMES = {"_duckdb": "duckdb"}
# For work on the project; what is installed with it may still be imported within functions.
DEVELOPMENT = "dev"


@dataclass(frozen=True, slots=True)
class Import:
    """A library as imported somewhere; `at_load` if loading the module is enough."""

    library: str
    place: str
    at_load: bool


def main(root: Path) -> int:
    """Print what is wrong; 1 if anything is."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    imports = [
        found
        for file in sorted((root / "src").rglob("*.py"))
        for found in imports_of(file.read_text("utf-8"), str(file.relative_to(root)))
        if found.library != project["name"]
    ]
    problems = list(violations(project, imports))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def violations(project: Mapping[str, Any], imports: list[Import]) -> Iterator[str]:
    """What is imported and not declared, and what is declared and not imported."""
    required = {_library(line) for line in project["dependencies"]}
    extras = {
        extra: {_library(line) for line in lines} - {project["name"]}
        for extra, lines in project.get("optional-dependencies", {}).items()
    }
    optional = set().union(*extras.values())
    for found in imports:
        if found.library in required:
            continue
        if found.library not in optional:
            yield f"{found.place}: {found.library} is imported and not declared in pyproject.toml"
        elif found.at_load and not found.place.startswith(OF_EXTRAS):
            yield (
                f"{found.place}: {found.library} is in an extra only; import it within the "
                "function that needs it, or declare it under dependencies"
            )
    used = {found.library for found in imports}
    declared = required.union(*(extras[name] for name in extras if name != DEVELOPMENT))
    for library in sorted(declared - used - NOT_IMPORTED.keys()):
        yield f"pyproject.toml: {library} is declared and nothing imports it"
    for library in sorted(NOT_IMPORTED.keys() & used):
        yield f"{__file__}: {library} is imported now; take it from NOT_IMPORTED"
    for library in sorted(NOT_IMPORTED.keys() - declared):
        yield f"{__file__}: {library} is not declared any more; take it from NOT_IMPORTED"


def imports_of(source: str, place: str) -> Iterator[Import]:
    """What a module imports from outside the standard library."""
    for node, at_load in _nodes(ast.parse(source), at_load=True):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
        for name in names:
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names:
                yield Import(_normal(OTHER_NAMES.get(top, top)), f"{place}:{node.lineno}", at_load)


def _nodes(node: ast.AST, at_load: bool) -> Iterator[tuple[Any, bool]]:
    """All nodes, and whether each is reached by loading the module."""
    yield node, at_load
    deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        deferred = True
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child, at_load and not deferred)


def _library(requirement: str) -> str:
    """The name in a requirement such as `duckdb>=2.0,<3`."""
    return _normal(re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent.parent))
