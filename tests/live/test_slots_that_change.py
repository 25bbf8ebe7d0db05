"""A session with a number of slots that changes between a least and a most."""

from __future__ import annotations

import time

import pytest
from engine.native_driving import check_same, plain
from long_forms import one_each
from waiting import turns_until, wait_until

import queryard
from queryard.core.commands import Release, Scale
from queryard.core.errors import InvalidProfile, QueryardError
from queryard.core.events import NodeJoined, NodeLost
from queryard.history import HistoryReader
from queryard.sim import replay

from .crowds import ENDLESS, busy, check_empty, check_kernel, kernel, spin, spun

SQL = "SELECT key, count(*) AS n, sum(small) AS s FROM facts GROUP BY key"


def profile(name: str, **settings):
    rule = {"name": name, "period_s": 0.1, **settings}
    return {"order": "fifo", "name": name, "provisioning": rule}


def slots(session) -> int:
    """How many are in use."""
    return kernel(session, lambda k: sum(1 for n in k.state.nodes.values() if not n.draining))


def journal_of(file):
    with HistoryReader(file) as reader:
        return reader.journal(reader.session(None).session)


@pytest.mark.parametrize(
    ("name", "plan"), one_each(["+x", "-x", "dlx", "maxbsd"], ["native", "staged"])
)
def test_the_number_of_slots_stays_between_its_bounds(data, tmp_path, name, plan):
    file = tmp_path / "history.sqlite"
    with queryard.connect(
        data, slots=(1, 3), memory="2 GB", profile=profile(name), history=file, plan=plan
    ) as session:
        assert session.slots == 3
        handles = [session.submit(spin(8), plan="native") for _ in range(4)]
        handles += [session.submit(SQL, deadline=1) for _ in range(3)]
        for _ in turns_until(lambda: all(handle.ended for handle in handles)):
            check_kernel(session)
            assert 1 <= slots(session) <= 3
            time.sleep(0.01)
        for handle in handles[:4]:
            assert handle.result(60).fetchall()[0][1] == spun(8)
        expected = plain(data, SQL)
        for handle in handles[4:]:
            check_same(handle.result(60).arrow(), expected)
        check_empty(session)
    journal = journal_of(file)
    assert replay(journal, lambda scheduler: scheduler.validate()) is None
    present = 0
    for step in journal.steps:
        present += sum(isinstance(event, NodeJoined) for event in step.events)
        present -= sum(isinstance(event, NodeLost) for event in step.events)
        assert 1 <= present <= 3


def test_slots_are_given_up_and_come_back(data, tmp_path):
    file = tmp_path / "history.sqlite"
    with queryard.connect(
        data, slots=(1, 3), memory="2 GB", profile=profile("-x"), history=file
    ) as session:
        session.sql(spin(1)).fetchall()
        wait_until(lambda: slots(session) == 1, 30.0, "a single slot")
        wait_until(lambda: kernel(session, lambda k: len(k.state.nodes)) == 1, 30.0)
        session.use_profile(profile("+x"))
        handle = busy(session)
        wait_until(lambda: slots(session) == 3, 30.0, "three slots")
        check_kernel(session)
        handle.cancel()
        assert session.sql(spin(1)).fetchall()[0][1] == spun(1)
        check_empty(session)
    steps = journal_of(file).steps
    commands = [command for step in steps for command in step.commands]
    assert any(isinstance(command, Release) for command in commands)
    assert {command.nodes for command in commands if isinstance(command, Scale)} >= {1, 2, 3}


def test_a_query_goes_on_while_slots_leave_it(data):
    with queryard.connect(
        data, slots=(1, 3), memory="2 GB", profile=profile("-x"), history=False
    ) as session:
        handles = [session.submit(SQL.replace("sum(small)", f"sum(small + {i})")) for i in range(6)]
        handles += [session.submit(spin(10))]
        wait_until(lambda: slots(session) == 1 or all(h.ended for h in handles), 30.0)
        for handle in handles:
            assert handle.result(60).arrow().num_rows in (1, 1000)
        check_empty(session)


def test_memory_is_kept_to_while_slots_come_and_go(data):
    with queryard.connect(
        data, slots=(1, 4), memory="1 GB", profile=profile("-x"), history=False
    ) as session:
        most = session.client.pool_bytes
        large = session.submit(ENDLESS, memory=most)
        wait_until(lambda: large.status == "running", 30.0)
        others = [session.submit(spin(2), memory=most // 4) for _ in range(4)]
        for step in range(60):
            check_kernel(session)
            if step % 20 == 10:
                session.use_profile(profile("+x" if step % 40 == 10 else "-x"))
            time.sleep(0.01)
        assert not any(handle.ended for handle in others)
        large.cancel()
        for handle in others:
            assert handle.result(60).fetchall()[0][1] == spun(2)
        check_empty(session)


def test_a_query_that_needs_all_memory_starts_with_few_slots_in_use(data):
    with queryard.connect(
        data, slots=(1, 4), memory="1 GB", profile=profile("-x"), history=False
    ) as session:
        session.sql(spin(1)).fetchall()
        wait_until(lambda: kernel(session, lambda k: len(k.state.nodes)) == 1, 30.0)
        handle = session.submit(spin(1), memory=session.client.pool_bytes)
        assert handle.result(30).fetchall()[0][1] == spun(1)
        check_empty(session)


def test_twins_hear_of_the_end_on_many_nodes(data):
    with queryard.connect(data, slots=(1, 3), memory="2 GB", history=False) as session:
        handles = [session.submit(SQL) for _ in range(5)]
        expected = plain(data, SQL)
        for handle in handles:
            check_same(handle.result(60).arrow(), expected)
            assert handle.wait(30)
        check_empty(session)


@pytest.mark.parametrize("name", ["+x", "-x", "dlx", "maxbsd"])
def test_a_fixed_number_of_slots_cannot_change(data, name):
    with pytest.raises(InvalidProfile, match=r"changes the number of slots.*slots=\(1, 2\)"):
        queryard.connect(data, slots=2, profile=profile(name), history=False)
    with queryard.connect(data, slots=2, history=False) as session:
        with pytest.raises(InvalidProfile, match="slots="):
            session.use_profile(profile(name))
        assert session.profile["name"] == "marshal"


@pytest.mark.parametrize("given", [(2, 1), (0, 3), (1,), (1, 2, 3), (1.0, 2), "1-3", True])
def test_bounds_that_make_no_sense_are_refused(data, given):
    with pytest.raises(QueryardError, match="slots"):
        queryard.connect(data, slots=given, history=False)


def test_equal_bounds_are_a_fixed_number(data):
    with queryard.connect(data, slots=(2, 2), history=False) as session:
        assert session.slots == 2
        assert kernel(session, lambda k: len(k.state.nodes)) == 1
