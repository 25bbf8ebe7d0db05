"""A contract for import-linter: no package imports a module that imports the package.

`acyclic_siblings` finds cycles among modules and packages that lie side by side. The one kind it
cannot see leads from the `__init__.py` of a package to a module inside it and back.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


class OwnPackageContract(Contract):
    """No module imports a package that it lies in and that leads back to it."""

    type_name = "own_package"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        cycles = []
        for module in sorted(graph.modules):
            for package in sorted(graph.find_modules_directly_imported_by(module)):
                if not module.startswith(f"{package}."):
                    continue
                chain = graph.find_shortest_chain(importer=package, imported=module)
                if chain is not None:
                    cycles.append([*_steps(graph, (module, package)), *_steps(graph, chain)])
        return ContractCheck(kept=not cycles, metadata={"cycles": cycles})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for cycle in check.metadata["cycles"]:
            for step in cycle:
                output.print_error(f"- {step}", bold=False)
            output.new_line()


def _steps(graph: ImportGraph, chain: tuple[str, ...]) -> list[str]:
    """The imports of a chain, each with the lines where it stands."""
    steps = []
    for importer, imported in pairwise(chain):
        found: list[Any] = graph.get_import_details(importer=importer, imported=imported)
        lines = ", ".join(f"l.{detail['line_number']}" for detail in found)
        steps.append(f"{importer} -> {imported} ({lines})")
    return steps
