"""The shell's own commands, which begin with a dot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from queryard.core.errors import QueryardError, unknown_name

from .failures import advising
from .script import Showing

if TYPE_CHECKING:
    from queryard.live.request import Plan

    from .any_session import AnySession


class Quit(Exception):
    """The person is done."""


class ShellCommands:
    """What can be asked of the shell itself, and what was set."""

    def __init__(
        self, session: AnySession, showing: Showing, run_text: Callable[[str], None], plan: Plan
    ) -> None:
        self.session = session
        self.showing = showing
        self.plan: Plan = plan
        self._run_text = run_text
        self._console = Console(highlight=False)
        self.commands: dict[str, tuple[Callable[[str], None], str]] = {
            ".tables": (self._tables, "list the tables"),
            ".schema": (self._schema, "NAME: the columns of a table, and what is known of them"),
            ".explain": (self._explain, "SQL: how a statement would be run"),
            ".analyze": (self._analyze, "SQL: run a statement and show where its time went"),
            ".plan": (self._plan, "native|staged: how the next statements run"),
            ".rows": (self._rows, "N: how many rows to show, 0 for all"),
            ".timer": (self._timer, "on|off: show how long statements took"),
            ".read": (self._read, "FILE: run the statements of a file"),
            ".refresh": (self._refresh, "look at the files again"),
            ".help": (self._help, "this list"),
            ".quit": (self._quit, "leave; Ctrl-D does it, too"),
            ".exit": (self._quit, "the same"),
        }

    def run(self, line: str) -> None:
        """Run one command."""
        name, _, rest = line.strip().partition(" ")
        if name not in self.commands:
            raise QueryardError(unknown_name("command", name, self.commands))
        self.commands[name][0](rest.strip().rstrip(";").strip())

    def _tables(self, rest: str) -> None:
        from .table_lists import describe_tables, table_table

        catalog = self.session.catalog
        table_table(describe_tables(catalog), catalog.skipped, self._console)

    def _schema(self, rest: str) -> None:
        from .table_lists import column_table, describe_columns

        catalog = self.session.catalog
        for name in [rest] if rest else sorted(catalog.tables):
            column_table(describe_columns(catalog, name), self._console)

    def _explain(self, rest: str) -> None:
        self._show_plan(rest, ".explain", analyze=False)

    def _analyze(self, rest: str) -> None:
        self._show_plan(rest, ".analyze", analyze=True)

    def _show_plan(self, sql: str, command: str, analyze: bool) -> None:
        from .explain import show_explanation

        if not sql:
            raise QueryardError(f"{command} needs a statement, as in {command} select 42")
        with advising(self.session.catalog):
            found = self.session.explain(sql, analyze=analyze, plan=self.plan)
        show_explanation(found, self._console)

    def _plan(self, rest: str) -> None:
        from queryard.live.request import PLANS

        for plan in PLANS:
            if plan == rest:
                self.plan = plan
                return
        if rest:
            raise QueryardError(unknown_name("plan", rest, PLANS))
        self._console.print(self.plan)

    def _rows(self, rest: str) -> None:
        if not rest.isdecimal():
            raise QueryardError(f".rows {rest}: write a number, as in .rows 100, or 0 for all")
        self.showing = replace(self.showing, rows=int(rest))

    def _timer(self, rest: str) -> None:
        if rest not in ("on", "off", ""):
            raise QueryardError(f".timer {rest}: write on or off")
        timer = rest == "on" if rest else not self.showing.timer
        self.showing = replace(self.showing, timer=timer)

    def _read(self, rest: str) -> None:
        from .sql import read_text

        if not rest:
            raise QueryardError(".read needs a file, as in .read report.sql")
        self._run_text(read_text(Path(rest.strip("'\"")).expanduser()))

    def _refresh(self, rest: str) -> None:
        changed = self.session.refresh()
        self._console.print(f"changed: {', '.join(changed)}" if changed else "nothing has changed")

    def _help(self, rest: str) -> None:
        self._console.print("Statements end with a semicolon. The SQL is DuckDB's.")
        for name, (_, help_text) in self.commands.items():
            self._console.print(f"  {name:<10} {help_text}", markup=False)

    def _quit(self, rest: str) -> None:
        raise Quit
