"""Where the statements of a query run: which instance, and which connection of it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import chain

from queryard.sql.catalog.quoting import identifier

from .instances.attached import SearchPath
from .instances.footers import FooterCache
from .instances.instance import Connection
from .instances.pool import InstancePool, PooledInstance
from .instances.read_connections import ReadConnection
from .instances.settings import Settings, apply, reset
from .instances.spares import Spares
from .instances.views import file_tables, unusable
from .kept_tables import KeptTables
from .sealing.access import Reach, Seal
from .session.session import SessionInstance
from .syntax.classify import Classified


class _InSession:
    """A connection of the session's own instance."""

    pooled = False

    def __init__(self, session: SessionInstance) -> None:
        self._session = session

    @property
    def tables(self) -> list[str]:
        return list(self._session.catalog.tables)

    @property
    def reach(self) -> Reach:
        return self._session.reach

    def shares_instance(self) -> bool:
        return self._session.shares_instance()

    def memory_bytes(self) -> int | None:
        return None  # it is shared with all that the session keeps


class OnSession(_InSession):
    """A turn on the session's connection."""

    on_session = True

    def enter(self) -> Connection:
        self._session.enter(self)
        return self._session.connection

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        return self._session.prepare(statement, connection, names)

    def after(self, statement: Classified) -> None:
        self._session.after(statement)

    def failed(self, statement: Classified) -> None:
        self._session.failed(statement)

    def leave(self) -> None:
        self._session.leave(self)


class OnReadConnection(_InSession):
    """A further connection of the session's instance, for a read of what that instance writes."""

    on_session = False

    def __init__(self, session: SessionInstance, settings: Settings) -> None:
        super().__init__(session)
        self._settings = settings
        self._reader: ReadConnection | None = None

    def enter(self) -> Connection:
        if self._reader is None:
            self._session.enter(self)
            self._reader = self._session.reader(self._settings)
        return self._reader.connection

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        assert self._reader is not None
        return self._session.prepare_reader(self._reader, names)

    def after(self, statement: Classified) -> None:
        pass

    def failed(self, statement: Classified) -> None:
        pass

    def leave(self) -> None:
        if self._reader is not None:
            self._session.readers.give_back(self._reader)
            self._reader = None
        self._session.leave(self)


class OnPool:
    """A pooled instance, taken with the first slot and given back at the end.

    A client with settings has a connection of its own there, on which they hold.
    """

    on_session = False
    pooled = True

    def __init__(
        self,
        pool: InstancePool,
        spares: Spares,
        reach: Reach,
        memory_bytes: int,
        settings: Settings,
        attaches: bool,
        kept: KeptTables,
        files: Sequence[str] = (),
    ) -> None:
        """`attaches` says whether the databases that a read names are attached.

        A sealed instance opens the files of the granted tables, what is kept of them, and `files`.
        """
        self._kept = kept
        self._pool = pool
        self._spares = spares
        self.reach = reach
        self._catalog = reach.catalog
        self._files = files
        self._memory_bytes = memory_bytes
        self._early = tuple(setting for setting in settings if not setting.is_late)
        self._late = tuple(setting for setting in settings if setting.is_late)
        self._attaches = attaches
        self._taken: PooledInstance | None = None
        self._own: Connection | None = None
        self._is_reused = True
        # What its statements have named so far.
        self._used: Set[str] = frozenset()

    def enter(self) -> Connection:
        if self._taken is None:
            seal = self._seal()
            self._taken = self._pool.take(self._memory_bytes, seal)
            self._spares.taken(seal is not None)
            if self._early or self._late:
                self._own = Connection(self._taken.instance)
                apply(self._own, self._early)
        return self._own or self._taken.connection

    def _seal(self) -> Seal | None:
        seal = self.reach.seal()
        if seal is None:
            return None
        kept = self._kept.paths(file_tables(self._catalog))
        # Parsed segments go away again, and the instance that may read them with them.
        self._is_reused = not kept
        return seal.with_paths((*kept, *self._files)) if kept or self._files else seal

    def prepare(
        self, statement: Classified, connection: Connection, names: Set[str]
    ) -> dict[str, Exception]:
        assert self._taken is not None
        self._taken.instance.expect(statement.sql)
        # A database that is searched by USE must be there, whether a statement names it or not.
        named = statement.names.union(names, *(setting.names for setting in self._late))
        if self._attaches:
            self._attach(self._taken, connection, named)
        files = file_tables(self._catalog)
        errors = self._taken.views.make(connection, self._kept.over(files), names)
        read = [table for table in files.values() if table.name.lower() in named]
        self._spares.named(read)
        files_read = chain.from_iterable(table.files for table in read)
        footers = self._taken.footers if self._own is None else FooterCache()
        footers.choose(connection, statement, files_read)
        if self._late:
            for schema in {table.schema for table in files.values() if table.schema}:
                connection.run(f"CREATE SCHEMA IF NOT EXISTS memory.{identifier(schema)}")
            apply(connection, self._late)
        return {**errors, **unusable(self._catalog.unusable, names)}

    def _attach(self, taken: PooledInstance, connection: Connection, names: Set[str]) -> None:
        taken.attached.let_go_unused(connection, self._catalog, names | self._used)
        self._used |= names
        taken.attached.attach(connection, self._catalog, names)
        path = taken.search_path if self._own is None else SearchPath()
        path.follow(connection, taken.attached, self._catalog)

    @property
    def tables(self) -> list[str]:
        return list(self._catalog.tables)

    def after(self, statement: Classified) -> None:
        pass

    def failed(self, statement: Classified) -> None:
        pass

    def leave(self) -> None:
        self._kept.close()
        taken, self._taken = self._taken, None
        if taken is None:
            return
        if self._own is not None:
            self._own.close()
            self._own = None
            try:
                reset(taken.connection, self._early)
            except Exception:
                # What cannot be taken off must not meet another query.
                self._pool.discard(taken)
                return
        if self._is_reused:
            self._pool.give_back(taken)
        else:
            self._pool.discard(taken)

    def shares_instance(self) -> bool:
        return False

    def memory_bytes(self) -> int | None:
        taken = self._taken
        return None if taken is None else taken.instance.used_bytes()


Place = OnSession | OnReadConnection | OnPool
