"""The checks of `make check` find what they are for."""

from __future__ import annotations

from grimp import ImportGraph

from tools.declared import Import, imports_of, violations
from tools.own_package import OwnPackageContract

PROJECT = {
    "name": "yard",
    "dependencies": ["duckdb>=2.0,<3", "prompt-toolkit"],
    "optional-dependencies": {
        "more": ["httptools", "plotly", "tpchgen-cli"],
        "dev": ["yard[more]", "pytest"],
    },
}
USED = [Import("duckdb", "a.py:1", True), Import("prompt-toolkit", "a.py:2", True)]


def problems(*more: Import) -> list[str]:
    return list(violations(PROJECT, [*USED, Import("plotly", "b.py:1", False), *more]))


def test_what_is_declared_and_imported_is_in_order() -> None:
    assert problems() == []


def test_an_import_that_is_not_declared_is_named_with_its_place() -> None:
    assert problems(Import("numpy", "c.py:7", False)) == [
        "c.py:7: numpy is imported and not declared in pyproject.toml"
    ]


def test_an_extra_may_be_imported_within_functions_only() -> None:
    (problem,) = problems(Import("plotly", "c.py:7", True))
    assert problem.startswith("c.py:7: plotly is in an extra only")


def test_what_nothing_imports_is_not_declared() -> None:
    assert list(violations(PROJECT, USED)) == [
        "pyproject.toml: plotly is declared and nothing imports it"
    ]


def test_imports_are_found_at_load_within_functions_and_by_name() -> None:
    source = """
import os, prompt_toolkit.styles
from . import mine
if TYPE_CHECKING:
    import pandas
try:
    import _duckdb
except ImportError:
    pass
def draw():
    from plotly.io import write
    importlib.import_module("fsspec")
"""
    assert list(imports_of(source, "a.py")) == [
        Import("prompt-toolkit", "a.py:2", True),
        Import("pandas", "a.py:5", False),
        Import("duckdb", "a.py:7", True),
        Import("plotly", "a.py:11", False),
        Import("fsspec", "a.py:12", False),
    ]


def graph_of(*imports: tuple[str, str]) -> ImportGraph:
    graph = ImportGraph()
    for importer, imported in imports:
        graph.add_import(
            importer=importer, imported=imported, line_number=3, line_contents="import it"
        )
    return graph


def test_a_package_and_a_module_inside_it_may_not_import_each_other() -> None:
    graph = graph_of(
        ("yard", "yard.live"), ("yard.live", "yard.live.log"), ("yard.live.log", "yard")
    )
    contract = OwnPackageContract(name="", session_options={}, contract_options={})
    check = contract.check(graph, verbose=False)
    assert not check.kept
    assert check.metadata["cycles"] == [
        [
            "yard.live.log -> yard (l.3)",
            "yard -> yard.live (l.3)",
            "yard.live -> yard.live.log (l.3)",
        ]
    ]


def test_a_module_may_import_its_package_if_that_does_not_lead_back() -> None:
    graph = graph_of(("yard.cli.main", "yard.cli"), ("yard.cli", "yard.cli.app"))
    contract = OwnPackageContract(name="", session_options={}, contract_options={})
    assert contract.check(graph, verbose=False).kept
