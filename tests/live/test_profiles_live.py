"""Every registered profile decides over real queries, native and staged, and can be changed."""

from __future__ import annotations

import threading
import time
import warnings
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine.native_driving import check_same, plain
from long_forms import some_of
from waiting import wait_until

import queryard
from queryard.core.commands import Launch
from queryard.core.errors import InvalidProfile
from queryard.core.events import QuerySubmitted, TaskFailed, TaskFinished
from queryard.core.model import MAP, Node
from queryard.history import HistoryReader
from queryard.live.session import Session
from queryard.policies import catalogue
from queryard.replay import recorded
from queryard.sim import replay
from queryard.sql.catalog import open_catalog
from queryard.sql.planner import plan_staged

from .crowds import check_empty, check_kernel, kernel

PROFILES = [info.name for info in catalogue()]
QUERIES = [
    "SELECT key, count(*) AS n, sum(small) AS s FROM facts GROUP BY key",
    "SELECT part, count(*) AS n, max(price) AS p FROM facts JOIN dims USING (key) GROUP BY part",
    "SELECT count(*) AS n, min(day) AS d FROM facts WHERE small > 50",
    "SELECT a.part, count(*) AS n FROM dims a JOIN dims b ON a.part = b.part GROUP BY a.part",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`facts` in many row groups, so that staged queries have tasks to be ordered."""
    place = tmp_path_factory.mktemp("profiles")
    rows = 60_000
    facts = pa.table(
        {
            "id": range(rows),
            "key": [i * 7919 % 1000 for i in range(rows)],
            "small": [None if i % 11 == 0 else i * 31 % 97 for i in range(rows)],
            "price": [i % 1000 / 8 for i in range(rows)],
            "day": [i * 17 % 900 for i in range(rows)],
        }
    )
    pq.write_table(facts, place / "facts.parquet", row_group_size=7_500)
    dims = {"key": range(1000), "part": [i % 7 for i in range(1000)]}
    pq.write_table(pa.table(dims), place / "dims.parquet")
    return place


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """Staged queries have many tasks, although the data is small."""
    several = partial(plan_staged, target_bytes=100e3, broadcast_bytes=0.0, partitions=4)
    monkeypatch.setattr("queryard.sql.planner.plan_staged", several)


@pytest.fixture(scope="module")
def expected(folder):
    return {sql: plain(folder, sql) for sql in QUERIES}


def ask(session, number: int):
    """One of them, native or staged, for one of three tenants; some have deadlines."""
    return session.submit(
        QUERIES[number // 2 % len(QUERIES)],
        plan="staged" if number % 2 else "native",
        tenant=("web", "lab", "ops")[number % 3],
        priority=number % 2,
        deadline=30 if number % 4 == 0 else None,
    )


def ask_all(session, number: int = 2 * len(QUERIES)):
    """Every query, native and staged."""
    return [ask(session, place) for place in range(number)]


def check_answers(handles, expected) -> None:
    for handle in handles:
        check_same(handle.result(60).arrow(), expected[handle.sql])
        assert handle.wait(60)
        assert handle.status == "finished"


def journal_of(file):
    with HistoryReader(file) as reader:
        return reader.journal(reader.session(None).session)


# --- all of them -------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", some_of(PROFILES, 9))
def test_every_profile_serves_native_and_staged_queries(profile, folder, expected, tmp_path):
    file = tmp_path / "history.sqlite"
    tenants = {"web": {"weight": 2}, "lab": {"guarantee": 0.5}}
    with queryard.connect(
        folder, slots=2, memory="2 GB", profile=profile, tenants=tenants, history=file
    ) as session:
        handles = ask_all(session, 5)
        check_kernel(session)
        check_answers(handles, expected)
        assert not any(handle.reasons for handle in handles)
        check_empty(session)
    with HistoryReader(file) as reader:
        found = recorded(reader)
        assert {record.outcome for record in reader.queries()} == {"finished"}
    assert replay(found.journal, lambda scheduler: scheduler.validate()) is None


def test_profiles_change_while_queries_run_and_nothing_is_lost(folder, expected, tmp_path):
    file = tmp_path / "history.sqlite"
    with queryard.connect(folder, slots=2, memory="2 GB", history=file) as session:
        handles = []
        for number, profile in enumerate(PROFILES):
            handles.append(ask(session, number))
            session.use_profile(profile)
            assert session.profile["name"] == profile
        check_answers(handles, expected)
        check_empty(session)
    assert replay(journal_of(file), lambda scheduler: scheduler.validate()) is None


def test_profiles_are_changed_from_many_threads(folder, expected):
    with queryard.connect(folder, slots=2, memory="2 GB", history=False) as session:
        over = threading.Event()

        def change(step: int) -> None:
            place = step
            while not over.is_set():
                session.use_profile(PROFILES[place % len(PROFILES)])
                place += 7
                time.sleep(0.002)

        threads = [threading.Thread(target=change, args=(step,)) for step in range(3)]
        for thread in threads:
            thread.start()
        try:
            check_answers(ask_all(session, 12), expected)
        finally:
            over.set()
            for thread in threads:
                thread.join(30)
        check_empty(session)


def test_a_profile_of_ones_own_may_be_used(folder, expected):
    own = {"base": "tls", "name": "mine", "jobs": "hlfet"}
    with queryard.connect(folder, slots=2, history=False, profile="fifo") as session:
        session.use_profile(own)
        assert session.profile["jobs"] == "hlfet"
        check_answers(ask_all(session, 4), expected)


@pytest.mark.parametrize("profile", ["nonsense", {"order": "nonsense"}, 3, {"base": "nonsense"}])
def test_a_profile_that_makes_no_sense_changes_nothing(folder, profile):
    with queryard.connect(folder, slots=2, history=False, profile="fifo") as session:
        with pytest.raises(InvalidProfile):
            session.use_profile(profile)
        assert session.profile["name"] == "fifo"
        assert session.sql("SELECT 1").fetchall() == [(1,)]


# --- which job of a staged query ---------------------------------------------------------------

# One part is a single job, the other a chain: dims, joined with facts, then grouped.
_SHORT = "SELECT 3 AS k, count(DISTINCT price)::BIGINT AS n FROM facts"
_CHAIN = (
    "SELECT 2 AS k, max(s)::BIGINT AS n FROM (SELECT part, sum(n) AS s FROM "
    "(SELECT key, count(*) AS n FROM facts GROUP BY key) JOIN dims USING (key) GROUP BY part)"
)
SHORT_FIRST = f"{_SHORT} UNION ALL {_CHAIN}"
CHAIN_FIRST = f"{_CHAIN} UNION ALL {_SHORT}"


def first_launches(journal) -> list[str]:
    """The tables that jobs read, in the order in which the first task of each was launched."""
    reads = {}
    seen: list[str] = []
    for step in journal.steps:
        for event in step.events:
            if isinstance(event, QuerySubmitted):
                for job in event.query.jobs:
                    tables = "+".join(item.table for item in job.inputs)
                    reads[event.query.job_id(job.name)] = f"{job.operator} {tables}".strip()
        for command in step.commands:
            if isinstance(command, Launch) and (name := reads[command.tasks[0].job]) not in seen:
                seen.append(name)
    return seen


@pytest.mark.parametrize(
    ("profile", "sql", "first"),
    [
        ("fifo", SHORT_FIRST, "groupby facts"),  # as they were submitted
        ("dfa", SHORT_FIRST, "extract dims"),  # the deepest
        ("hlfet", SHORT_FIRST, "extract dims"),  # the beginning of the longest path
        ("lodfa", SHORT_FIRST, "groupby facts"),  # what reads a table that others read, too
        ("fifo", CHAIN_FIRST, "extract dims"),
        ("dfa", CHAIN_FIRST, "extract dims"),
        ("hlfet", CHAIN_FIRST, "extract dims"),
        ("lodfa", CHAIN_FIRST, "groupby facts"),
    ],
)
def test_the_jobs_of_a_staged_query_are_ordered_by_the_rule(profile, sql, first, folder, tmp_path):
    file = tmp_path / "history.sqlite"
    with queryard.connect(
        folder, slots=1, memory="2 GB", profile=profile, history=file, plan="staged"
    ) as session:
        handle = session.submit(sql)
        found = handle.result(60).arrow()
        assert handle.wait(60)
        assert handle.reasons == ()
    check_same(found, plain(folder, sql))
    journal = journal_of(file)
    assert replay(journal, lambda scheduler: scheduler.validate()) is None
    order = first_launches(journal)
    assert order[0] == first
    # The chain goes on before the short part only where the rule is about depth or length.
    if (profile, sql) in (("dfa", SHORT_FIRST), ("hlfet", SHORT_FIRST)):
        assert order.index("join facts") < order.index("groupby facts")


# --- maps, reduces, and nodes of unequal speed --------------------------------------------------


def unequal(folder, profile, file, nodes=None):
    """A session on emulated machines, of which one is half as fast."""
    memory = 750e6
    nodes = nodes or (
        Node("fast", 1, memory),
        Node("slow", 1, memory, map_speed=0.25, reduce_speed=0.25),
    )
    return Session(open_catalog(folder), memory="2 GB", profile=profile, history=file, nodes=nodes)


@pytest.mark.parametrize("profile", some_of(["tumm", "h-tumm", "fifo", "tls-circular-htumm"], 2))
def test_unequal_nodes_are_both_used_and_the_slow_one_less(profile, folder, expected, tmp_path):
    file = tmp_path / "history.sqlite"
    with unequal(folder, profile, file) as session:
        handles = [session.submit(sql, plan="staged") for sql in QUERIES[:3]]
        check_answers(handles, expected)
        check_empty(session)
    journal = journal_of(file)
    assert replay(journal, lambda scheduler: scheduler.validate()) is None
    nodes = [
        command.node
        for step in journal.steps
        for command in step.commands
        if isinstance(command, Launch)
    ]
    assert set(nodes) == {"fast", "slow"}
    assert nodes.count("slow") < nodes.count("fast")


def test_native_queries_run_on_unequal_nodes_too(folder, expected, tmp_path):
    with unequal(folder, "h-tumm", tmp_path / "history.sqlite") as session:
        check_answers(ask_all(session), expected)
        check_empty(session)


@pytest.mark.parametrize(
    ("profile", "share"), [("static", 2), ("static-1-3", 1), ("static-3-1", 3)]
)
def test_no_more_maps_run_at_once_than_their_lane_has(profile, share, folder, expected, tmp_path):
    file = tmp_path / "history.sqlite"
    with queryard.connect(
        folder, slots=4, memory="2 GB", profile=profile, history=file, plan="staged"
    ) as session:
        handles = [session.submit(sql) for sql in QUERIES[:3]]
        check_answers(handles, expected)
    kinds = {}
    running = {MAP: 0, "reduce": 0}
    most = dict(running)
    for step in journal_of(file).steps:
        for event in step.events:
            if isinstance(event, TaskFinished | TaskFailed):
                running[kinds[event.launch]] -= 1
        for command in step.commands:
            if isinstance(command, Launch):
                kind = command.tasks[0].kind
                kinds[command.number] = kind
                running[kind] += 1
                most[kind] = max(most[kind], running[kind])
    assert most[MAP] <= share
    assert most["reduce"] <= 4 - share
    assert most[MAP] > 0 < most["reduce"]


# --- parts that have nothing to go by in a session --------------------------------------------

IDLE = {
    "locf": "placement 'locf'",
}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_with_parts_that_do_nothing_in_a_session_warns_when_it_is_chosen(profile, folder):
    for choose in (_connect_with, _change_to):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            choose(profile, folder)
        told = [warning for warning in caught if "has no effect" in str(warning.message)]
        assert len(told) == (profile in IDLE)
        for warning in told:
            assert warning.category is UserWarning
            assert str(warning.message).startswith(f"policy {profile}: {IDLE[profile]}")
            assert warning.filename == __file__


def _connect_with(profile, folder):
    queryard.connect(folder, slots=1, history=False, profile=profile).close()


def _change_to(profile, folder):
    with queryard.connect(folder, slots=1, history=False) as session:
        session.use_profile(profile)


@pytest.mark.filterwarnings("ignore:policy:UserWarning")
@pytest.mark.parametrize("profile", ["s3", "mrshare", "tls-circular"])
def test_under_policies_that_would_share_scans_each_query_reads_for_itself_and_may_be_cancelled(
    profile, folder, expected, tmp_path
):
    file = tmp_path / "history.sqlite"
    with queryard.connect(
        folder, slots=2, memory="2 GB", profile=profile, history=file, plan="staged"
    ) as session:
        for _ in range(2):
            handles = [session.submit(sql) for sql in QUERIES[:3] * 2]
            wait_until(lambda: any(view.status == "running" for view in session.queries()), 30.0)
            for handle in handles[::3]:
                handle.cancel()
            for place, handle in enumerate(handles):
                assert handle.wait(60)
                if place % 3:
                    check_same(handle.result(60).arrow(), expected[handle.sql])
                else:
                    assert handle.status in ("cancelled", "finished")
        check_empty(session)
        assert kernel(session, lambda k: not k.state.running)
    launches = [
        command
        for step in journal_of(file).steps
        for command in step.commands
        if isinstance(command, Launch)
    ]
    assert {len(launch.tasks) for launch in launches} == {1}
    assert {launch.round for launch in launches} == {""}
