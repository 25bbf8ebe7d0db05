"""A demonstration: TPC-H data, some tenants, and a mix of queries that does not end.

Each tenant has users that ask, read the answer, think and ask again, over HTTP, as clients do. Such
a mix never floods a machine: on a slow one all are slower. Reports come in bursts, so that there is
a queue to look at, too.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from queryard.core.errors import QueryardError
from queryard.remote import RemoteSession, connect
from queryard.sql.statistics.store import cache_folder
from queryard.workload import tpch
from queryard.workload.tpch.data import Progress

from .tokens import TokenStore

SCALE = 0.5
# Enough for a queue on any machine.
MOST_SLOTS = 4
GRACE_S = 3.0
# After an error, such as a limit or a server that pauses.
PAUSE_S = 2.0
CATALOG = "demo.toml"
PROFILE = "portfolio"

Draw = Callable[[Random], str]


def _tpch(*numbers: int) -> tuple[Draw, ...]:
    """Queries of TPC-H by number, with parameters of their own each time."""
    return tuple(
        lambda rng, number=number: tpch.draw_query(number, rng).strip() for number in numbers
    )


def _year(rng: Random) -> int:
    return rng.randint(1992, 1997)


def _revenue_of_a_month(rng: Random) -> str:
    day = f"DATE '{_year(rng)}-{rng.randint(1, 12):02d}-01'"
    return (
        "SELECT l_shipmode, sum(l_extendedprice * (1 - l_discount)) AS revenue\nFROM lineitem\n"
        f"WHERE l_shipdate >= {day} AND l_shipdate < {day} + INTERVAL 1 MONTH\n"
        "GROUP BY l_shipmode ORDER BY revenue DESC"
    )


def _open_orders(rng: Random) -> str:
    return (
        "SELECT o_orderpriority, count(*) AS orders, sum(o_totalprice) AS value\nFROM orders\n"
        f"WHERE o_orderstatus = 'O' AND o_orderdate >= DATE '{_year(rng)}-01-01'\n"
        "GROUP BY o_orderpriority ORDER BY o_orderpriority"
    )


def _bought_together(rng: Random) -> str:
    return (
        "-- Which parts are bought together?\n"
        "SELECT a.l_partkey AS part, b.l_partkey AS other, count(*) AS times\n"
        "FROM lineitem a JOIN lineitem b USING (l_orderkey)\n"
        f"WHERE a.l_partkey < b.l_partkey AND a.l_shipdate >= DATE '{_year(rng)}-01-01'\n"
        "GROUP BY ALL ORDER BY times DESC, part, other LIMIT 20"
    )


def _best_customers(rng: Random) -> str:
    return (
        "SELECT * FROM (\n"
        "  SELECT n_name, c_name, sum(o_totalprice) AS value,\n"
        "    rank() OVER (PARTITION BY n_name ORDER BY sum(o_totalprice) DESC) AS place\n"
        "  FROM orders JOIN customer ON o_custkey = c_custkey\n"
        "    JOIN nation ON c_nationkey = n_nationkey\n"
        f"  WHERE o_orderdate >= DATE '{_year(rng)}-01-01'\n  GROUP BY n_name, c_name\n"
        ") WHERE place <= 3 ORDER BY n_name, place"
    )


def _mistaken(rng: Random) -> str:
    wrong = rng.choice(("l_prize", "l_discout", "l_ship_date"))
    return f"SELECT avg({wrong}) FROM lineitem"


def _prices_by_flag(rng: Random) -> str:
    return (
        "SELECT l_returnflag, l_linestatus, avg(l_extendedprice) AS price,\n"
        "  sum(l_quantity) AS quantity\n"
        f"FROM lineitem WHERE l_shipdate < DATE '{_year(rng) + 1}-01-01'\n"
        "GROUP BY l_returnflag, l_linestatus"
    )


def _mean_order(rng: Random) -> str:
    return (
        "SELECT o_orderpriority, avg(o_totalprice) AS value, count(*) AS orders\nFROM orders\n"
        f"WHERE o_orderdate >= DATE '{_year(rng)}-01-01' GROUP BY o_orderpriority"
    )


@dataclass(frozen=True, slots=True)
class Users:
    """Users of a tenant that ask alike: how many, how long they think, and what they ask.

    `at_once` queries are asked together. `deadline_s` is drawn between its ends. With `online` set,
    they want provisional answers, and stop at that error.
    """

    tenant: str
    count: int
    think_s: float
    asks: Sequence[Draw]
    below: Sequence[str] = ()
    at_once: int = 1
    deadline_s: tuple[float, float] | None = None
    online: float | None = None

    def pause_s(self, rng: Random) -> float:
        """How long a user thinks; those that ask at once keep step by the clock."""
        if self.at_once > 1:
            return self.think_s - time.monotonic() % self.think_s
        return rng.expovariate(1 / self.think_s)


USERS = (
    Users(
        "dashboards",
        count=3,
        think_s=1.0,
        asks=(_revenue_of_a_month, _revenue_of_a_month, _open_orders, *_tpch(6, 14)),
        deadline_s=(2.0, 5.0),
    ),
    Users(
        "analysts",
        count=4,
        think_s=1.5,
        asks=(
            *_tpch(3, 5, 7, 10, 12, 19),
            _best_customers,
            _best_customers,
            _bought_together,
            _mistaken,
        ),
        below=("analysts/emea", "analysts/apac"),
    ),
    Users(
        "reports",
        count=1,
        think_s=20.0,
        asks=(*_tpch(1, 9, 13, 17, 18, 21), _bought_together),
        at_once=12,
        deadline_s=(10.0, 60.0),
    ),
    Users("explorers", count=1, think_s=4.0, asks=(_prices_by_flag, _mean_order), online=0.002),
)
_SHARES: Mapping[str, str] = {
    "dashboards": "guarantee = 0.3",
    "analysts": "weight = 2",
    "reports": "weight = 1",
    "explorers": "weight = 1\ncap = 0.5",
}


def prepare(folder: Path | None, progress: Progress | None = None) -> Path:
    """The data, made once, and a catalog with settings beside it; the file of the catalog.

    Without a folder it is in the user's cache.
    """
    place = cache_folder() / "demo" if folder is None else folder
    files = tpch.generate(place / f"tpch-{SCALE:g}", SCALE, progress)
    lines = ["# Of `queryard serve --demo`; it is written anew each time."]
    # A portfolio decides, so that its decisions can be looked at.
    lines += ["[session]", f'profile = "{PROFILE}"', "", "[tables]"]
    lines += [f'{file.stem} = "{file.parent.name}/{file.name}"' for file in files]
    for tenant, shares in _SHARES.items():
        lines += ["", f"[tenants.{tenant}]", shares]
    catalog = place / CATALOG
    catalog.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return catalog


@dataclass(slots=True)
class Load:
    """The users of all tenants, each a thread; `start` them, and `stop` them at the end."""

    users: Sequence[Users] = USERS
    seed: int = 1
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, url: str, tokens: TokenStore) -> None:
        """Ask a server, with a token for each tenant."""
        rng = Random(self.seed)
        for users in self.users:
            secret = tokens.add(users.tenant, users.tenant)
            for _ in range(users.count * users.at_once):
                thread = threading.Thread(
                    target=self._live,
                    args=(users, url, secret, Random(rng.random())),
                    name=f"queryard-demo-{users.tenant}",
                    daemon=True,
                )
                self._threads.append(thread)
                thread.start()

    def stop(self) -> None:
        """No further questions; what was asked is not waited for."""
        self._over.set()

    def _live(self, users: Users, url: str, secret: str, rng: Random) -> None:
        if self._over.wait(1.0 if users.at_once > 1 else rng.uniform(0.0, users.think_s)):
            return
        with contextlib.suppress(QueryardError), connect(url, token=secret, patience=0) as session:
            while not self._over.is_set():
                try:
                    self._ask(session, users, rng)
                    pause_s = users.pause_s(rng)
                except QueryardError:
                    pause_s = PAUSE_S
                if self._over.wait(pause_s):
                    return

    def _ask(self, session: RemoteSession, users: Users, rng: Random) -> None:
        sql = rng.choice(users.asks)(rng)
        tenant = rng.choice(users.below) if users.below else None
        if users.online is not None:
            for _ in session.online(sql, stop_at=users.online, every=0.1, tenant=tenant):
                if self._over.is_set():
                    return
            return
        deadline_s = None if users.deadline_s is None else rng.uniform(*users.deadline_s)
        for _ in session.sql(sql, tenant=tenant, deadline=deadline_s).batches():
            pass
