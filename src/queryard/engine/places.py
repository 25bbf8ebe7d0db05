"""Where the statements of a native query run: which instance, which of its connections."""

from __future__ import annotations

from collections.abc import Callable, Set
from itertools import chain

from queryard.sql.catalog import Catalog

from .beside import Reader
from .classify import Classified
from .instance import Connection
from .pool import InstancePool, PooledInstance
from .session import SessionInstance
from .spares import Spares
from .views import file_tables, named_twice


class OnSession:
    """A turn on the session's connection."""

    on_session = True
    pooled = False

    def __init__(self, session: SessionInstance) -> None:
        self._session = session

    def enter(self) -> Connection:
        self._session.enter(self)
        return self._session.connection

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        return self._session.prepare(statement, connection, names)

    @property
    def tables(self) -> list[str]:
        return list(self._session.catalog.tables)

    def after(self, statement: Classified) -> None:
        self._session.after(statement)

    def failed(self, statement: Classified) -> None:
        self._session.failed(statement)

    def leave(self) -> None:
        self._session.leave(self)

    def in_company(self) -> bool:
        return self._session.in_company()

    def memory_bytes(self) -> int | None:
        return None  # it is shared with all that the session keeps


class Beside:
    """A further connection of the session's instance, for a read of what that instance writes."""

    on_session = False
    pooled = False

    def __init__(self, session: SessionInstance) -> None:
        self._session = session
        self._reader: Reader | None = None

    def enter(self) -> Connection:
        if self._reader is None:
            self._session.enter(self)
            self._reader = self._session.reader()
        return self._reader.connection

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        assert self._reader is not None
        return self._session.prepare_reader(self._reader, names)

    @property
    def tables(self) -> list[str]:
        return list(self._session.catalog.tables)

    def after(self, statement: Classified) -> None:
        pass

    def failed(self, statement: Classified) -> None:
        pass

    def leave(self) -> None:
        self._session.leave(self)
        if self._reader is not None:
            self._session.readers.give_back(self._reader)
            self._reader = None

    def in_company(self) -> bool:
        return self._session.in_company()

    def memory_bytes(self) -> int | None:
        return None


class OnPool:
    """A pooled instance, taken with the first slot and given back at the end."""

    on_session = False
    pooled = True

    def __init__(
        self,
        pool: InstancePool,
        spares: Spares,
        attach: Callable[[PooledInstance, Set[str]], None],
        catalog: Catalog,
        memory_bytes: int,
    ) -> None:
        self._pool = pool
        self._spares = spares
        self._attach = attach
        self._catalog = catalog
        self._memory_bytes = memory_bytes
        self._taken: PooledInstance | None = None

    def enter(self) -> Connection:
        if self._taken is None:
            self._taken = self._pool.take(self._memory_bytes)
            self._spares.taken()
        return self._taken.connection

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        assert self._taken is not None
        self._attach(self._taken, statement.names | names)
        files = file_tables(self._catalog)
        errors = self._taken.views.make(connection, files, names)
        named = statement.names | names
        read = [table for table in files.values() if table.name.lower() in named]
        self._spares.named(read)
        files_read = chain.from_iterable(table.files for table in read)
        self._taken.footers.choose(connection, statement, files_read)
        return {**errors, **named_twice(self._catalog.ambiguous, names)}

    @property
    def tables(self) -> list[str]:
        return list(self._catalog.tables)

    def after(self, statement: Classified) -> None:
        pass

    def failed(self, statement: Classified) -> None:
        pass

    def leave(self) -> None:
        if self._taken is not None:
            self._pool.give_back(self._taken)
            self._taken = None

    def in_company(self) -> bool:
        return False

    def memory_bytes(self) -> int | None:
        taken = self._taken
        return None if taken is None else taken.instance.used_bytes()


Place = OnSession | Beside | OnPool
