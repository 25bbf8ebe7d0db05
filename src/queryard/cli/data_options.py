"""Options of the commands that work on data, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryard.core.errors import QueryardError

from .server_option import open_remote, server_for

if TYPE_CHECKING:
    from queryard.sql.catalog import Catalog

    from .any_session import AnySession

DEFAULT_PLAN = "auto"
_DATA = "Data"
_RUN = "How it runs"


def data_option(what: str, panel: str | None = None) -> Any:
    """`--data`, which means something a little different to some commands."""
    return typer.Option(
        "--data",
        "-d",
        metavar="PLACE",
        envvar="QUERYARD_DATA",
        help=f"{what} Default: the current folder.",
        rich_help_panel=panel,
        show_default=False,
    )


def existing_place(data: str | None) -> Path:
    """What `--data` names, or the current folder."""
    place = Path(data or ".").expanduser()
    if not place.exists():
        raise QueryardError(f"--data {place}: no such file or folder")
    return place


Data = Annotated[
    str | None,
    data_option("A folder of data files, one file, a DuckDB database or a catalog (.toml).", _DATA),
]
NamedTables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME=PATH",
        help="One more table: a file, a folder or a pattern such as 'logs/*.csv'. May be given "
        "again.",
        rich_help_panel=_DATA,
        show_default=False,
    ),
]
Write = Annotated[
    bool,
    typer.Option(
        "--write",
        help="Allow statements that write: COPY … TO, CREATE TABLE, changes of databases.",
        rich_help_panel=_DATA,
    ),
]
Slots = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many threads work at most. Default: one per core.",
        rich_help_panel=_RUN,
        show_default=False,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="What all queries together may use, such as 4GB. Default: 70 % of the machine's.",
        rich_help_panel=_RUN,
        show_default=False,
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        metavar="local|ray",
        help="Where queries run: in this process, or on a Ray cluster. Default: local. It takes "
        "the place of the table [backend] of a file.",
        rich_help_panel=_RUN,
        show_default=False,
    ),
]
ClusterNodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="LEAST:MOST",
        help="How many nodes of the Ray cluster take part, as 2:16; policies change their number "
        "between these.",
        rich_help_panel=_RUN,
        show_default=False,
    ),
]
Autoscaler = Annotated[
    bool,
    typer.Option(
        "--autoscaler",
        help="Ask Ray's autoscaler for nodes, and let it have those that are not wanted.",
        rich_help_panel=_RUN,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Ray's namespace, in which Queryard's processes at nodes are listed.",
        rich_help_panel=_RUN,
        show_default=False,
    ),
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="ADDRESS",
        help="The Ray cluster: auto, the address of its head, or local for one on this machine.",
        rich_help_panel=_RUN,
        show_default=False,
    ),
]
PlanOption = Annotated[
    str,
    typer.Option(
        "--plan",
        metavar="auto|native|staged",
        help="DuckDB's own plan on as many slots as are free, or a DAG of jobs with tasks that "
        "share scans; auto takes the cheaper one.",
        rich_help_panel=_RUN,
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="End a query that takes longer, such as 30s or 5min.",
        rich_help_panel=_RUN,
        show_default=False,
    ),
]


def open_place(data: str | None, tables: Sequence[str] | None) -> Catalog:
    """The catalog that the options mean."""
    from queryard.sql.catalog import open_catalog

    named = dict(_pair(text) for text in tables or ())
    where = data if data is not None or named else "."
    return open_catalog(where, named)


def _pair(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name.strip() and equals and path.strip()):
        raise QueryardError(f"--table {text}: write NAME=PATH, as in orders=data/orders.csv")
    return name.strip(), path.strip()


def open_session(
    data: str | None,
    tables: Sequence[str] | None,
    *,
    write: bool = False,
    slots: int | None = None,
    memory: str | None = None,
    plan: str = DEFAULT_PLAN,
) -> AnySession:
    """A session on the data that the options mean, or on a server."""
    from queryard.live.request import PLANS, checked_plan
    from queryard.live.session import Session
    from queryard.live.settings import session_settings

    if plan not in PLANS:
        raise QueryardError(f"--plan {plan}: choose one of {', '.join(PLANS)}")
    server = server_for(data, tables)
    if server is not None:
        own = {"--write": write, "--slots": slots is not None, "--memory": memory is not None}
        for option in (name for name, is_given in own.items() if is_given):
            raise QueryardError(f"{option}: is a setting of the server {server}; leave it out")
        return open_remote(server, None if plan == DEFAULT_PLAN else checked_plan(plan))
    catalog = open_place(data, tables)
    given: dict[str, Any] = {"slots": slots, "memory": memory}
    chosen = {key: value for key, value in given.items() if value is not None}
    settings = session_settings(catalog.settings)
    if plan != DEFAULT_PLAN or "plan" not in settings:
        chosen["plan"] = plan
    return Session(catalog, write=write, **{**settings, **chosen})


def backend_table(
    backend: str | None,
    address: str | None,
    nodes: str | None,
    autoscaler: bool,
    namespace: str | None,
) -> dict[str, Any]:
    """The options of a session that say where its queries run."""
    table: dict[str, Any] = {"namespace": namespace, "autoscaler": autoscaler or None}
    if nodes is not None:
        least, colon, most = nodes.partition(":")
        if not (least.isdigit() and most.isdigit() and colon):
            raise QueryardError(f"--nodes {nodes}: write the least and the most, as in 2:16")
        table["nodes"] = (int(least), int(most))
    given = {key: value for key, value in table.items() if value is not None}
    if given and backend is None:
        raise QueryardError(f"--{next(iter(given))}: is for a cluster; give --backend ray as well")
    found: dict[str, Any] = {"backend": backend, "address": address}
    if given:
        table = {"kind": backend, "address": address, **given}
        found = {"backend": {key: value for key, value in table.items() if value is not None}}
    return {key: value for key, value in found.items() if value is not None}


def check_folder_of(file: Path, option: str) -> None:
    """Complain about a file that cannot be written before anything was computed."""
    if not file.absolute().parent.is_dir():
        raise QueryardError(f"{option} {file}: there is no folder {str(file.parent)!r}")


def check_time(time_limit: str | None) -> None:
    """Complain about a time that is none."""
    from queryard.live.amounts import as_seconds

    if time_limit is not None:
        as_seconds(time_limit, "--time-limit")
