"""From the logical plan to jobs: what runs over splits, what is shuffled, what is shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from queryard.core.readable import several
from queryard.sql.catalog.canonical import is_text_table, most_text_bytes
from queryard.sql.catalog.segments import TARGET_BYTES

from .algebra import (
    Aggregate,
    Filter,
    Join,
    Node,
    OneRow,
    Project,
    Scan,
    Shared,
    Sort,
    UnionAll,
)
from .assembly import Assembly, flushed
from .bounds import most_rows
from .builder import Builder
from .cardinality import Cardinality
from .contract import CatalogLike, TableLike
from .costs import (
    FILTER_ROW_S,
    GROUP_ROW_S,
    SCAN_ROW_S,
    SCAN_VALUE_S,
    SMALL_S,
    SORT_ROW_S,
    TEXT_ROW_S,
    TEXT_VALUE_S,
    Sizing,
    tasks_for,
)
from .expressions import all_of, bare, text
from .fragment import ChunkSource, Fragment, NoSource, Piece, TableSource, Wrap
from .grouping import combining, full_grouping, merging, partial_fields, partial_grouping
from .joining import Joining
from .oracle import Field, quoted
from .plan import StagedJob


class Physical:
    """Compiles one plan into jobs."""

    def __init__(
        self, catalog: CatalogLike, builder: Builder, cardinality: Cardinality, sizing: Sizing
    ) -> None:
        self.catalog = catalog
        self.builder = builder
        self.cardinality = cardinality
        self.sizing = sizing
        self.assembly = Assembly(catalog, sizing)
        self._shared: dict[int, StagedJob] = {}
        self._joining = Joining(self)

    # ------------------------------------------------------------------ the whole

    def finish(self, root: Node, expected: Sequence[Field]) -> tuple[StagedJob, ...]:
        """All jobs; the last one returns the columns of `root` with the expected types."""
        outputs = [field.name for field in root.fields]
        if isinstance(root, Project) and isinstance(root.child, Sort):
            sources = {name: bare(e) for name, e in root.items}
            if all(isinstance(e, exp.Column) for e in sources.values()):
                outputs = [sources[name].name for name in outputs]
                root = root.child
        fragment = self.compile(root)
        items = ", ".join(
            f"CAST(q.{name} AS {field.type}) AS o{i}"
            for i, (name, field) in enumerate(zip(outputs, expected, strict=True))
        )
        whole = Wrap(f"SELECT {items} FROM ", f" AS q{fragment.tail}")
        fragment = replace(
            fragment,
            pieces=[piece.around(whole) for piece in fragment.pieces],
            fields=tuple(Field(f"o{i}", field.type) for i, field in enumerate(expected)),
            tail="",
            untouched=False,
        )
        self.assembly.finished(fragment)
        return tuple(self.assembly.jobs)

    def compile(self, node: Node) -> Fragment:
        """The fragment of a node."""
        if isinstance(node, Scan):
            return self._scan(node)
        if isinstance(node, OneRow):
            return Fragment([Piece(NoSource(), "SELECT 1 AS one FROM ")], (), 1.0, 1.0, 0.0)
        if isinstance(node, Filter):
            conditions = text(all_of(node.conditions))
            child = self.compile(node.child)
            return self.wrapped(
                child, node, Wrap("SELECT * FROM ", f" WHERE {conditions}"), FILTER_ROW_S, "filter"
            )
        if isinstance(node, Project):
            return self._project(node)
        if isinstance(node, Join):
            return self._joining.compile(node)
        if isinstance(node, Aggregate):
            return self._aggregate(node)
        if isinstance(node, UnionAll):
            return self._union(node)
        if isinstance(node, Sort):
            return self._sort(node)
        return self._share(node)

    def wrapped(
        self,
        child: Fragment,
        node: Node,
        sql: Wrap,
        row_s: float,
        story: str = "",
        builds: Sequence[str] = (),
    ) -> Fragment:
        """The fragment within more SQL, which keeps rows in their tasks."""
        child = flushed(child)
        return replace(
            child,
            pieces=[piece.around(sql, builds) for piece in child.pieces],
            fields=node.fields,
            rows=self.cardinality.rows(node),
            bytes=self.cardinality.bytes(node),
            seconds=child.seconds + child.rows * row_s,
            story=(*child.story, story) if story and story not in child.story else child.story,
            untouched=False,
            most_rows=self._most_rows(node),
        )

    def _most_rows(self, node: Node) -> float:
        return most_rows(node, self.cardinality, self.catalog)

    # ------------------------------------------------------------------ leaves

    def _scan(self, node: Scan) -> Fragment:
        table = self.catalog[node.table]
        columns = ", ".join(f"t.{quoted(c)} AS {n}" for n, c in node.columns.items())
        rows = self.cardinality.rows(node)
        row_s, value_s = SCAN_ROW_S, SCAN_VALUE_S
        if is_text_table(table):
            row_s, value_s = TEXT_ROW_S, TEXT_VALUE_S
        seconds = rows * (row_s + value_s * len(node.fields))
        shape = ", ".join(f"CAST(NULL AS {c.type}) AS {quoted(c.name)}" for c in table.columns)
        read = tuple(dict.fromkeys(node.columns.values()))
        source = TableSource(node.table, f"(SELECT {shape} LIMIT 0)", float(table.bytes), read)
        if self.sizing.target_bytes is not None:
            source.splits = self.assembly.splits(node.table, self.sizing.target_bytes)
        elif self._is_small(table, seconds):
            source.splits = self.assembly.splits(node.table, max(float(table.bytes), 1.0) * 2)
        piece = Piece(source, f"SELECT {columns or '1 AS one'} FROM ", " AS t")
        size = self.cardinality.bytes(node)
        story = (f"scan {node.table}",)
        most = self._most_rows(node)
        return Fragment(
            [piece], node.fields, rows, size, seconds, size, story=story, most_rows=most
        )

    def _is_small(self, table: TableLike, seconds: float) -> bool:
        """Whether one task reads all of a table, whatever other plans do."""
        if is_text_table(table):
            return most_text_bytes(table) <= (self.sizing.split_bytes or TARGET_BYTES)
        return seconds <= SMALL_S

    def _share(self, node: Shared) -> Fragment:
        job = self._shared.get(id(node))
        if job is None:
            job = self.assembly.closed(self.compile(node.child))
            self._shared[id(node)] = job
        return self.assembly.reading(job)

    # ------------------------------------------------------------------ operators

    def _project(self, node: Project) -> Fragment:
        child = self.compile(node.child)
        items = ", ".join(f"{text(e)} AS {name}" for name, e in node.items)
        fragment = self.wrapped(child, node, Wrap(f"SELECT {items or '1 AS one'} FROM "), 0.0)
        new_names: dict[str, str] = {}
        for name, expression in node.items:
            plain = bare(expression)
            if isinstance(plain, exp.Column):
                new_names.setdefault(plain.name, name)
        fragment.apart, fragment.hashed = child.renamed(new_names)
        return fragment

    def _union(self, node: UnionAll) -> Fragment:
        pieces: list[Piece] = []
        seconds = scanned = 0.0
        story: tuple[str, ...] = ()
        for child in node.inputs:
            fragment = flushed(self.assembly.mappable(self.compile(child)))
            items = ", ".join(
                f"{c.name} AS {f.name}" for c, f in zip(child.fields, node.fields, strict=True)
            )
            sql = Wrap(f"SELECT {items or '1 AS one'} FROM ")
            pieces += [piece.around(sql) for piece in fragment.pieces]
            seconds += fragment.seconds
            scanned += fragment.scan_bytes
            story += fragment.story
        rows, size = self.cardinality.rows(node), self.cardinality.bytes(node)
        story = (*dict.fromkeys(story), "union all")
        most = self._most_rows(node)
        return Fragment(
            pieces, node.fields, rows, size, seconds, scanned, story=story, most_rows=most
        )

    def _aggregate(self, node: Aggregate) -> Fragment:
        child = self.compile(node.child)
        sources = {source for _, source in node.keys}
        together = bool(node.keys) and any(names <= sources for names in child.apart)
        if child.single or together:
            grouped = self.wrapped(
                child, node, full_grouping(node), GROUP_ROW_S, _group_story(node)
            )
            mapping = {source: name for name, source in node.keys}
            grouped.apart, grouped.hashed = child.renamed(mapping)
            return grouped
        rows_in, rows_out = self.cardinality.rows(node.child), self.cardinality.rows(node)
        keys = tuple(name for name, _ in node.keys)
        in_vain = bool(node.keys) and rows_out > 0.7 * rows_in and not self._is_guess(child)
        if any(call.distinct for call in node.calls) or in_vain:
            sources_list = tuple(source for _, source in node.keys)
            shuffled = self.assembly.exchange(
                [(child, sources_list)], "groupby", rows_in * GROUP_ROW_S
            )
            fragment = self.wrapped(
                shuffled, node, full_grouping(node), GROUP_ROW_S, _group_story(node)
            )
        else:
            partial = self._partial(node, child)
            if child.open_job is not None:
                partial = self.assembly.reading(self.assembly.closed(partial))
            work_s = partial.rows * GROUP_ROW_S
            if partial.single or (
                len(partial.pieces) == 1
                and isinstance(partial.pieces[0].source, ChunkSource)
                and self.sizing.partitions_for(partial.bytes if keys else 0.0, work_s) == 1
            ):
                shuffled = self.assembly.gathered(partial)
            else:
                shuffled = self.assembly.exchange([(partial, keys)], "groupby", work_s)
                if node.keys or node.calls:
                    self.assembly.fold(shuffled, keys, combining(node, partial.fields))
            fragment = self.wrapped(shuffled, node, merging(node), GROUP_ROW_S, _group_story(node))
        types = {field.name: field.type for field in node.fields}
        fragment.apart = [frozenset(keys)] if keys else []
        fragment.hashed = [(keys, tuple(types[key] for key in keys))] if keys else []
        return fragment

    def _is_guess(self, fragment: Fragment) -> bool:
        """Whether nothing is known of the columns of text that the fragment reads."""
        sources = [piece.source for piece in fragment.pieces]
        tables = [source.table for source in sources if isinstance(source, TableSource)]
        return any(
            is_text_table(self.catalog[name])
            and getattr(self.catalog.statistics(name), "source", "") != "analysed"
            for name in tables
        )

    def _partial(self, node: Aggregate, child: Fragment) -> Fragment:
        groups = self.cardinality.rows(node)
        tasks = max(tasks_for(child.seconds, child.build_seconds), 2)
        columns = self.cardinality.of(node.child).columns
        together = any(columns[source].clustered for _, source in node.keys)
        # S_comb of TLS: where equal keys lie together, a group is in one task, or in two.
        parts = groups + tasks if together else groups * tasks
        rows = min(self.cardinality.rows(node.child), parts)
        fields = partial_fields(node, self.cardinality)
        fragment = self.wrapped(
            child, node, partial_grouping(node), GROUP_ROW_S, "aggregate in parts"
        )
        width = 8.0 * len(fields)
        found = replace(fragment, fields=fields, rows=rows, bytes=rows * width, apart=[], hashed=[])
        return replace(found, most_rows=self._most_rows(node) * tasks)

    def _sort(self, node: Sort) -> Fragment:
        child = flushed(self.compile(node.child))
        order = ", ".join(key.text() for key in node.keys)
        order = f" ORDER BY {order}" if order else ""
        story = "sort" if node.keys else "limit"
        if not child.single:
            if node.limit is not None:
                most = Wrap("SELECT * FROM ", f"{order} LIMIT {node.limit + node.offset}")
                child = self.wrapped(child, node, most, 0.0, f"{story} in parts")
                each = float(node.limit + node.offset)
                tasks = max(tasks_for(child.seconds, child.build_seconds), 2)
                child = replace(child, rows=min(child.rows, 16.0 * each), most_rows=tasks * each)
            child = self.assembly.gathered(self.assembly.reading(self.assembly.closed(child)))
        tail = order
        if node.limit is not None:
            tail += f" LIMIT {node.limit}"
        if node.offset:
            tail += f" OFFSET {node.offset}"
        fragment = self.wrapped(child, node, Wrap("SELECT * FROM "), SORT_ROW_S, story)
        return replace(fragment, tail=tail)


def _group_story(node: Aggregate) -> str:
    if not node.keys:
        return "group all"
    return f"group by {several(len(node.keys), 'column')}"
