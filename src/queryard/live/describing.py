"""What a statement of a client gives and takes; it is bound, not run."""

from __future__ import annotations

from queryard.core.errors import QueryardError
from queryard.engine.describing import Described, gives_rows
from queryard.engine.native import Parameters

from .client import Client, check_types


def describe(client: Client, sql: str, parameters: Parameters | None = None) -> Described:
    """The columns that a statement gives and the parameters that it takes; nothing is run.

    It waits for no other query, except where the statement names what lives on the client's
    own connection: then for what runs there. `parameters` help where types hang on them.
    """
    check_types(sql, () if parameters is None else parameters)
    statements = client.checked(sql)
    if len(statements) > 1:
        raise QueryardError(
            f"{len(statements)} statements cannot be described together; one at a time"
        )
    statement, own, host = statements[0], client.instance, client.host
    if not (gives_rows(statement) or statement.has_parameters):
        return Described((), (), ())
    host.look_at_files(statements)
    try:
        if own.routing.must_run(statements):
            with host.own_connection(client), client.turn(statements):
                return own.describe(statement, parameters)
        if own.routing.needs_read_connection(statements):
            return own.describe_reading(statement, parameters)
        describer = host.describer(client.reach)
        if parameters is None:
            known = describer.known(statement, client.settings)
            if known is not None:
                return known
        with client.turn(statements):
            return describer.describe(statement, parameters, client.settings)
    except QueryardError as error:
        raise client.reach.told(error) from None
