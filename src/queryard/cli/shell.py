"""`queryard shell`: questions one after another."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queryard.core.errors import QueryardError

from . import data_options
from .failures import FAILED, complain

if TYPE_CHECKING:
    from .shell_commands import ShellCommands

PROMPT = "queryard> "
CONTINUED = "     ...> "


def shell(
    data: data_options.Data = None,
    table: data_options.NamedTables = None,
    write: data_options.Write = False,
    plan: data_options.PlanOption = "auto",
    slots: data_options.Slots = None,
    memory: data_options.Memory = None,
    time_limit: data_options.TimeLimit = None,
) -> None:
    """Ask one question after another, with history and completion.

    Statements end with a semicolon and may take several lines. Tab completes, the arrow keys walk
    through what was asked before. Ctrl-C cancels a query, Ctrl-D leaves. `.help` lists the shell's
    own commands. Statements can be piped in, too; the first that fails ends it.

    Examples:

    - `queryard shell --data data/`
    - `queryard shell --data shop.duckdb --write`
    - `queryard shell -d data/ < questions.sql`
    """
    from .script import Showing, run_statement
    from .shell_commands import ShellCommands

    with data_options.open_session(
        data, table, write=write, slots=slots, memory=memory, plan=plan
    ) as session:

        def run(text: str) -> None:
            from queryard.engine.syntax.classify import classify

            for statement in classify(text):
                run_statement(session, statement, commands.showing, time_limit, commands.plan)

        commands = ShellCommands(session, Showing(hint=".rows N shows more"), run, session.plan)
        if sys.stdin.isatty():
            _Interactive(commands, run).loop()
        elif not _run_piped(commands, run):
            raise typer.Exit(FAILED)


def _run_piped(commands: ShellCommands, run: Callable[[str], None]) -> bool:
    """Run what comes through the pipe, as it comes; False if something failed."""
    from .shell_commands import Quit
    from .shell_text import is_blank, split_complete

    rest = ""
    try:
        for line in sys.stdin:
            if is_blank(rest) and line.lstrip().startswith("."):
                commands.run(line)
                rest = ""
                continue
            done, rest = split_complete(rest + line)
            for text in done:
                run(text)
        if not is_blank(rest):
            run(rest)
    except Quit:
        pass
    except QueryardError as error:
        complain(str(error))
        return False
    except KeyboardInterrupt:
        complain("cancelled", "")
        return False
    return True


class _Interactive:
    """The prompt, for a person."""

    def __init__(self, commands: ShellCommands, run: Callable[[str], None]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer

        from .shell_completion import ShellCompleter

        self._commands = commands
        self._run = run
        catalog = commands.session.catalog
        self._prompt: PromptSession[str] = PromptSession(
            history=_history(),
            completer=ShellCompleter(catalog, commands.commands),
            complete_in_thread=True,
            complete_while_typing=False,
            lexer=PygmentsLexer(SqlLexer),
            multiline=True,
            prompt_continuation=CONTINUED,
            key_bindings=_keys(),
            enable_history_search=True,
        )

    def loop(self) -> None:
        """Until the person leaves."""
        from .shell_commands import Quit

        count = len(self._commands.session.catalog.tables)
        typer.echo(
            f"{count} {'table' if count == 1 else 'tables'}. End statements with ; and see .help "
            "for more."
        )
        while True:
            try:
                text = self._prompt.prompt(PROMPT).strip()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            try:
                self._answer(text)
            except Quit:
                return
            except QueryardError as error:
                complain(str(error))
            except OSError as error:
                complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
            except KeyboardInterrupt:
                complain("cancelled", "")

    def _answer(self, text: str) -> None:
        from .shell_text import is_blank

        if text.startswith("."):
            self._commands.run(text)
        elif not is_blank(text.replace(";", "")):
            self._run(text)


def _keys() -> Any:
    """Enter goes on until a statement is complete."""
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from .shell_text import is_complete

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=False)

    return keys


def _history() -> Any:
    """What was asked before, kept for the next time where that is possible."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    file = data_folder() / "shell_history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a"):
            pass
    except OSError as error:
        complain(f"{file}: the history cannot be kept ({error.strerror})", "note: ")
        return InMemoryHistory()
    return FileHistory(str(file))


def data_folder() -> Path:
    """Where this user's programs keep what should not be lost."""
    if given := os.environ.get("XDG_DATA_HOME"):
        return Path(given, "queryard")
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local, "queryard")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "queryard"
    return Path.home() / ".local" / "share" / "queryard"
