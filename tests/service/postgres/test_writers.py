"""Several clients write one database: they take turns, and all is as in a serial order."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from contextlib import contextmanager

import duckdb
import pytest
from waiting import wait_until

from queryard.engine.sealing.access import Access
from queryard.service.config import ServiceLimits
from tests.service.postgres.served_postgres import a_server

psycopg = pytest.importorskip("psycopg")

ACCOUNTS, EACH = 8, 100
WRITES = Access(sealed=True, writes=frozenset({"shop"}))
SESSION = {"memory": "2 GB"}
FAST = ServiceLimits(statements_per_s=10_000.0)


@contextmanager
def a_shop(folder, *, limits=FAST):
    """A server whose tenants sales and web may write the database shop."""
    (folder / "data").mkdir()
    with duckdb.connect(str(folder / "data" / "shop.duckdb")) as shop:
        shop.execute(
            f"CREATE TABLE accounts AS SELECT range AS id, {EACH} AS v FROM range({ACCOUNTS})"
        )
        shop.execute("CREATE TABLE moves (mover VARCHAR, number INTEGER)")
    grants = {"sales": WRITES, "web": Access(frozenset({"shop.*"}), True, frozenset({"shop"}))}
    with a_server(folder, grants=grants, limits=limits, session=SESSION) as served:
        yield served


def rows_of(folder, sql):
    with duckdb.connect(str(folder / "data" / "shop.duckdb"), read_only=True) as shop:
        return shop.execute(sql).fetchall()


class Mover:
    """Moves amounts between accounts, in transactions; some are rolled back, some cut off."""

    def __init__(self, served, name, user, seed):
        self.served, self.name, self.user = served, name, user
        self.random = random.Random(seed)
        self.committed: set[int] = set()
        self.unsure: set[int] = set()
        self.error: BaseException | None = None

    def run(self, moves):
        try:
            for number in range(moves):
                self._one(number)
        except BaseException as error:  # for the test's own thread
            self.error = error

    def _one(self, number):
        chance = self.random.random()
        with psycopg.connect(self.served.dsn(self.user), autocommit=True) as made:
            if chance < 0.2:
                made.execute("INSERT INTO shop.moves VALUES (%s, %s)", [self.name, number])
                self.committed.add(number)
                return
            made.execute("BEGIN")
            self._move(made, number)
            seen = made.execute("SELECT sum(v), count(*) FROM shop.accounts").fetchone()
            assert seen == (ACCOUNTS * EACH, ACCOUNTS)
            if chance < 0.35:
                made.execute("ROLLBACK")
            elif chance < 0.5:
                with pytest.raises(psycopg.Error):
                    made.execute("SELECT no_such_column FROM shop.accounts")
                made.execute("COMMIT")  # which rolls back
            elif chance < 0.65:
                cut(made)  # in the middle of its transaction
            elif chance < 0.7:
                self.unsure.add(number)
                made.pgconn.send_query(b"COMMIT")
                made.pgconn.flush()
                cut(made)
            else:
                made.execute("COMMIT")
                self.committed.add(number)

    def _move(self, made, number):
        source, target = self.random.sample(range(ACCOUNTS), 2)
        made.execute(f"UPDATE shop.accounts SET v = v - 1 WHERE id = {source}")
        made.execute("INSERT INTO shop.moves VALUES (%s, %s)", [self.name, number])
        made.execute(f"UPDATE shop.accounts SET v = v + 1 WHERE id = {target}")


def cut(made):
    """Drop a connection without a word."""
    with socket.socket(fileno=os.dup(made.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
    made.close()


class Reader:
    """Sees whole transactions only, and of each mover what it saw before and more."""

    def __init__(self, served, user):
        self.served, self.user = served, user
        self.error: BaseException | None = None
        self.reads = 0

    def run(self, over):
        try:
            seen = -1
            with psycopg.connect(self.served.dsn(self.user), autocommit=True) as made:
                while not over.is_set():
                    sql = "SELECT sum(v), min(v) <= max(v), (SELECT count(*) FROM shop.moves) "
                    total, _, moves = made.execute(sql + "FROM shop.accounts").fetchone()
                    assert total == ACCOUNTS * EACH
                    assert moves >= seen
                    seen = moves
                    self.reads += 1
        except BaseException as error:
            self.error = error


def play(folder, seed, movers, moves):
    with a_shop(folder) as served:
        over = threading.Event()
        writing = [Mover(served, f"m{k}", ("ann", "eve")[k % 2], seed + k) for k in range(movers)]
        reading = [Reader(served, user) for user in ("ben", "eve")]
        threads = [threading.Thread(target=each.run, args=(moves,)) for each in writing]
        beside = [threading.Thread(target=each.run, args=(over,)) for each in reading]
        for thread in [*threads, *beside]:
            thread.start()
        for thread in threads:
            thread.join()
        over.set()
        for thread in beside:
            thread.join()
        errors = [each.error for each in [*writing, *reading] if each.error is not None]
        assert not errors
        assert all(each.reads for each in reading)
    assert rows_of(folder, "SELECT sum(v) FROM accounts") == [(ACCOUNTS * EACH,)]
    for mover in writing:
        sql = f"SELECT number FROM moves WHERE mover = '{mover.name}' ORDER BY number"
        found = [number for (number,) in rows_of(folder, sql)]
        assert len(found) == len(set(found))
        assert mover.committed <= set(found) <= mover.committed | mover.unsure


def test_writers_and_readers_see_a_serial_order(tmp_path):
    play(tmp_path, seed=1, movers=3, moves=8)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20, 26))
def test_many_writers_and_readers_see_a_serial_order(tmp_path, seed):
    play(tmp_path, seed=seed, movers=6, moves=25)


def test_a_transaction_blocks_writers_until_it_ends_and_they_come_in_order(tmp_path):
    with a_shop(tmp_path) as served:
        holder = psycopg.connect(served.dsn())
        holder.execute("INSERT INTO shop.moves VALUES ('holder', 0)")
        wait_until(lambda: not served.ground.yard.active())
        waiting = [psycopg.connect(served.dsn(), autocommit=True) for _ in range(4)]
        threads = []
        for number, made in enumerate(waiting):
            sql = f"INSERT INTO shop.moves SELECT 'late', {number} + count(*) * 10 FROM shop.moves"
            threads.append(threading.Thread(target=made.execute, args=(sql,)))
            threads[-1].start()
            wait_until(lambda: len(served.ground.yard.active()) == number + 1)  # noqa: B023
        # They hold no slot: others are served, and the transaction goes on.
        with psycopg.connect(served.dsn("eve"), autocommit=True) as other:
            assert other.execute("SELECT count(*) FROM range(3)").fetchone() == (3,)
        query = served.ground.yard.active()[0]
        report = str(served.ground.yard.session.host.looking.wait_report(query.ticket))
        assert "waits for its turn at the database shop" in report
        holder.execute("INSERT INTO shop.moves VALUES ('holder', 1)")
        holder.commit()
        for thread in threads:
            thread.join()
        for made in [holder, *waiting]:
            made.close()
    found = rows_of(tmp_path, "SELECT number FROM moves WHERE mover = 'late' ORDER BY rowid")
    assert found == [(20,), (31,), (42,), (53,)]


def test_waiting_for_a_database_has_an_end(tmp_path):
    limits = ServiceLimits(lock_s=0.3)
    with a_shop(tmp_path, limits=limits) as served, psycopg.connect(served.dsn()) as holder:
        holder.execute("INSERT INTO shop.moves VALUES ('holder', 0)")
        with psycopg.connect(served.dsn("eve"), autocommit=True) as other:
            for sql in ("INSERT INTO shop.moves VALUES ('x', 1)", "SELECT * FROM shop.moves"):
                with pytest.raises(psycopg.errors.LockNotAvailable, match="database shop was in"):
                    other.execute(sql)
        holder.rollback()


def test_a_client_says_how_long_it_waits_for_a_database(tmp_path):
    with a_shop(tmp_path) as served, psycopg.connect(served.dsn()) as holder:
        holder.execute("INSERT INTO shop.moves VALUES ('holder', 0)")
        options = "-c lock_timeout=200ms"
        with psycopg.connect(served.dsn("eve"), autocommit=True, options=options) as other:
            for sql in ("INSERT INTO shop.moves VALUES ('x', 1)", "SELECT * FROM shop.moves"):
                with pytest.raises(psycopg.errors.LockNotAvailable, match=r"for 0\.2 s"):
                    other.execute(sql)
        holder.rollback()


def test_an_idle_transaction_is_ended_for_others(tmp_path):
    limits = ServiceLimits(transaction_s=0.5)
    with a_shop(tmp_path, limits=limits) as served, psycopg.connect(served.dsn()) as holder:
        holder.execute("INSERT INTO shop.moves VALUES ('holder', 0)")
        with psycopg.connect(served.dsn(), autocommit=True) as other:
            assert other.execute("SELECT count(*) FROM shop.moves").fetchone() == (0,)
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            holder.execute("COMMIT")


def test_an_error_undoes_a_transaction_at_once(tmp_path):
    with a_shop(tmp_path) as served, psycopg.connect(served.dsn()) as holder:
        holder.execute("SAVEPOINT a")
        holder.execute("INSERT INTO shop.moves VALUES ('holder', 0)")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            holder.execute("SELECT nothing FROM shop.moves")
        with psycopg.connect(served.dsn(), autocommit=True) as other:
            other.execute("INSERT INTO shop.moves VALUES ('other', 0)")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="has undone the whole"):
            holder.execute("ROLLBACK TO a")
        holder.rollback()
        assert holder.execute("SELECT mover FROM shop.moves").fetchall() == [("other",)]


def test_a_transaction_is_never_half_kept_when_statements_are_refused(tmp_path):
    limits = ServiceLimits(statements_per_s=3.0)
    with a_shop(tmp_path, limits=limits) as served:
        with psycopg.connect(served.dsn("ben"), autocommit=True) as made:
            for _ in range(3):
                with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
                    burst(made)
                made.execute("ROLLBACK")
                time.sleep(0.4)
        with psycopg.connect(served.dsn("eve"), autocommit=True) as other:
            assert other.execute("SELECT count(*) FROM shop.moves").fetchone() == (0,)


def burst(made):
    """A transaction of more statements than may come at once."""
    made.execute("BEGIN")
    for number in range(5):
        made.execute(f"INSERT INTO shop.moves VALUES ('x', {number})")
    made.execute("COMMIT")


def test_definitions_of_one_client_are_seen_by_others(tmp_path):
    with (
        a_shop(tmp_path) as served,
        psycopg.connect(served.dsn(), autocommit=True) as one,
        psycopg.connect(served.dsn("eve"), autocommit=True) as other,
    ):
        for number in range(4):
            one.execute(f"CREATE TABLE shop.t{number} AS SELECT {number} AS n")
            assert other.execute(f"SELECT n FROM shop.t{number}").fetchone() == (number,)
            other.execute(f"ALTER TABLE shop.t{number} ADD COLUMN more VARCHAR")
            assert one.execute(f"SELECT * FROM shop.t{number}").fetchone() == (number, None)
        one.execute("BEGIN")
        one.execute("CREATE TABLE shop.undone (a INTEGER)")
        one.execute("ROLLBACK")
        with pytest.raises(psycopg.errors.UndefinedTable):
            other.execute("SELECT * FROM shop.undone")
