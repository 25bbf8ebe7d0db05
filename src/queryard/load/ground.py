"""Where a load runs: the data, made if need be, and the part of the machine it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from queryard.engine.instances.budget import memory_budget, slot_range
from queryard.sql.catalog import Catalog, open_catalog
from queryard.workload import tpch
from queryard.workload.load import LoadSpec
from queryard.workload.tpch.data import Progress


@dataclass(frozen=True, slots=True)
class Ground:
    """Tables, slots and memory that every policy gets alike."""

    where: Path | None
    tables: Mapping[str, str]
    slots: int
    memory_bytes: int

    def catalog(self) -> Catalog:
        """The tables, opened anew."""
        return open_catalog(self.where, self.tables)


def prepare(
    spec: LoadSpec,
    data_dir: str | Path,
    *,
    slots: int | None = None,
    memory: int | str | None = None,
    progress: Progress | None = None,
) -> Ground:
    """Make the data a spec needs below `data_dir`, if it is not there yet.

    `slots` and `memory` take the place of those in the spec, which take that of the machine's.
    TPC-H at a scale lies in `tpch-SCALE` and serves every spec that names the scale.
    """
    tables: dict[str, str] = {}
    for schema, scale in spec.data.tpch.items():
        folder = Path(data_dir) / f"tpch-{scale:g}"
        for file in tpch.generate(folder, scale, progress):
            tables[f"{schema}.{file.stem}"] = str(file.absolute())
    return Ground(
        where=spec.data.place,
        tables=tables,
        slots=slot_range(slots if slots is not None else spec.slots)[1],
        memory_bytes=memory_budget(memory if memory is not None else spec.memory_bytes),
    )
