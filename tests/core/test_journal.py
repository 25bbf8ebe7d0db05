"""The record of a run: every event and command has a JSON form, and a log replays."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from by_hand import Hand, divisible, maps
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.codec import COMMANDS, EVENTS, decode_command, decode_event, encode_named
from queryard.core.errors import InvalidRecord
from queryard.core.journal import VERSION, Journal, Step
from queryard.core.model import (
    Divisible,
    Job,
    Node,
    Phase,
    Query,
    Split,
    Table,
    TableInput,
    TaskId,
)
from queryard.core.speedup import Speedup
from queryard.policies import resolve_profile
from queryard.sim import Conditions, replay, simulate
from queryard.workload import generate
from queryard.workload.cluster import parse_nodes
from queryard.workload.mix import Mix, SizeBin

MANY = settings(max_examples=examples(60), deadline=None, derandomize=True)

# --- every event and command, with every field at its default or not ------------------------------

names = st.text(st.characters(exclude_characters="/", codec="utf-8"), min_size=1, max_size=6)
sizes = st.floats(0, allow_nan=False, allow_infinity=False) | st.integers(0, 10**6).map(float)
times = st.floats(0, 1e9)
counts = st.integers(1, 5)
phases = st.one_of(
    st.builds(Phase, counts, sizes),
    st.lists(sizes, min_size=1, max_size=4).map(lambda s: Phase(len(s), 0.0, tuple(s))),
)
splits = st.builds(Split, sizes, st.lists(names, max_size=3).map(tuple))
tables = st.builds(Table, names, st.lists(splits, max_size=3).map(tuple))
nodes = st.builds(
    Node,
    names,
    counts,
    sizes | st.just(math.inf),
    st.floats(0.01, 10),
    st.floats(0.01, 10),
    names | st.just(""),
)
inputs = st.lists(st.builds(TableInput, names, sizes), max_size=2).map(tuple)
operators = st.sampled_from(("join", "groupby", "extract"))


@st.composite
def queries(draw: st.DrawFn) -> Query:
    online = draw(st.booleans())
    jobs: list[Job] = []
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        upstream = tuple(job.name for job in jobs if draw(st.booleans()))
        shape: dict[str, Any] = {
            "divisible": Divisible(draw(counts), draw(counts)),
            "scans": draw(st.lists(names, max_size=1).map(tuple)),
        }
        if not online and draw(st.booleans()):
            shape = {
                "map": draw(phases),
                "reduce": draw(st.none() | phases),
                "scans": draw(st.lists(names, max_size=2).map(tuple)),
            }
        jobs.append(Job(name, draw(operators), upstream, draw(inputs), **shape))
    return Query(
        draw(names),
        tuple(jobs),
        draw(names),
        draw(st.floats(-1e3, 1e3)),
        draw(times),
        draw(st.none() | times),
        "online" if online else "exact",
        draw(st.just("") | names),
        draw(sizes),
        draw(st.just("") | names),
        draw(st.none() | st.floats(0, 1)),
    )


profiles = st.sampled_from(("fifo", "tls", "edls-sh", "relaqs")).map(resolve_profile)
maybe = st.none() | times
launch_numbers = st.integers(0, 10**9)
slots = st.integers(1, 100)
curves = st.builds(Speedup, st.floats(0, 1), st.floats(1, 64) | st.just(math.inf))
tasks = st.builds(TaskId, names, st.sampled_from(("map", "reduce")), st.integers(0, 10**6))
outcomes = st.sampled_from(("revoked", "finished", "failed"))

ANY_EVENT: dict[type, st.SearchStrategy[Any]] = {
    ev.QuerySubmitted: st.builds(ev.QuerySubmitted, times, queries()),
    ev.EstimateChanged: st.builds(
        ev.EstimateChanged, times, names, maybe, maybe, maybe, st.none() | curves, maybe, maybe
    ),
    ev.TaskFinished: st.builds(
        ev.TaskFinished,
        times,
        launch_numbers,
        st.none() | names,
        sizes,
        st.none() | st.dictionaries(names, sizes, max_size=3),
    ),
    ev.TaskFailed: st.builds(ev.TaskFailed, times, launch_numbers, names),
    ev.Progressed: st.builds(ev.Progressed, times, names, st.floats(0, 1)),
    ev.WidthChanged: st.builds(ev.WidthChanged, times, names, st.integers(0, 9)),
    ev.MemoryChanged: st.builds(ev.MemoryChanged, times, names, sizes),
    ev.AnswerReported: st.builds(
        ev.AnswerReported, times, names, counts, sizes, times, maybe, st.lists(sizes).map(tuple)
    ),
    ev.LeaseEnded: st.builds(ev.LeaseEnded, times, names, names, slots, outcomes, names),
    ev.NodeJoined: st.builds(ev.NodeJoined, times, nodes),
    ev.NodeLost: st.builds(ev.NodeLost, times, names, names, st.lists(names).map(tuple)),
    ev.NodeSilent: st.builds(ev.NodeSilent, times, names, st.booleans()),
    ev.TableChanged: st.builds(ev.TableChanged, times, tables),
    ev.SegmentsKept: st.builds(ev.SegmentsKept, times, names, st.floats(0, 1)),
    ev.QueryCancelled: st.builds(ev.QueryCancelled, times, names, names),
    ev.PolicyChosen: st.builds(ev.PolicyChosen, times, profiles),
    ev.Paused: st.builds(ev.Paused, times, names | st.just("")),
    ev.Resumed: st.builds(ev.Resumed, times),
    ev.Woke: st.builds(ev.Woke, times),
}
ANY_COMMAND: dict[type, st.SearchStrategy[Any]] = {
    do.Launch: st.builds(
        do.Launch,
        launch_numbers,
        names,
        st.lists(tasks, min_size=1, max_size=3).map(tuple),
        names | st.just(""),
        times,
    ),
    do.Kill: st.builds(do.Kill, launch_numbers),
    do.Grant: st.builds(do.Grant, names, names, slots, st.just("") | names),
    do.Revoke: st.builds(do.Revoke, names, names, slots),
    do.WakeAt: st.builds(do.WakeAt, times),
    do.Scale: st.builds(do.Scale, slots),
    do.Release: st.builds(do.Release, names),
    do.Finish: st.builds(do.Finish, names),
    do.Fail: st.builds(do.Fail, names, names),
}


def test_no_event_and_no_command_is_forgotten_here():
    assert set(ANY_EVENT) == set(EVENTS.values())
    assert set(ANY_COMMAND) == set(COMMANDS.values())


@pytest.mark.parametrize("kind", ANY_EVENT, ids=lambda kind: kind.__name__)
@MANY
@given(data=st.data())
def test_every_event_survives_json(kind: type, data: st.DataObject):
    event = data.draw(ANY_EVENT[kind])
    again = decode_event(json.loads(json.dumps(encode_named(event))))
    assert again == event
    assert type(again) is kind


@pytest.mark.parametrize("kind", ANY_COMMAND, ids=lambda kind: kind.__name__)
@MANY
@given(data=st.data())
def test_every_command_survives_json(kind: type, data: st.DataObject):
    command = data.draw(ANY_COMMAND[kind])
    again = decode_command(json.loads(json.dumps(encode_named(command))))
    assert again == command
    assert type(again) is kind


@MANY
@given(st.lists(st.one_of(*ANY_EVENT.values()), max_size=4), st.one_of(*ANY_COMMAND.values()))
def test_a_journal_survives_being_written_and_read(events: list[Any], command: Any):
    journal = Journal({"seed": 3}, {"order": "fifo"}, [Step(1.5, tuple(events), (command,))])
    text = "".join(line + "\n" for line in journal.to_lines())
    assert "\n" not in next(journal.to_lines())
    assert Journal.from_lines(text.splitlines()) == journal


def test_fields_at_their_default_are_left_out():
    query = Query("q", (maps("j", 1),))
    assert encode_named(ev.QuerySubmitted(1.0, query)) == {
        "type": "QuerySubmitted",
        "time_s": 1.0,
        "query": {"id": "q", "jobs": [{"name": "j", "map": {"tasks": 1}}]},
    }


# --- files that are no journals -------------------------------------------------------------------

HEAD = json.dumps({"queryard_journal": VERSION, "settings": {}, "profile": {}})
STEP = json.dumps({"time_s": 0.0, "events": [], "commands": []})


def step_with(event: dict[str, Any]) -> str:
    return json.dumps({"time_s": 0.0, "events": [event], "commands": []})


UNREADABLE: dict[str, tuple[list[str], str]] = {
    "nothing at all": ([], "line 1: an empty file is not a journal"),
    "a later version": (
        [json.dumps({"queryard_journal": VERSION + 1})],
        f"line 1: journal version {VERSION + 1}; this reads {VERSION}",
    ),
    "some other JSON": (['{"a": 1}'], "line 1: not the first line of a journal"),
    "a list": (["[1, 2]"], "line 1: not the first line of a journal"),
    "a number": (["17"], "line 1: not the first line of a journal"),
    "some other file": (["[profiles.office]"], "line 1: not JSON"),
    "a line cut short": ([HEAD, STEP, STEP[:-9]], "line 3: not JSON"),
    "a step without commands": ([HEAD, '{"time_s": 1, "events": []}'], "line 2: expected time_s"),
    "a head in the middle": ([HEAD, STEP, HEAD], "line 3: expected time_s, events and commands"),
    "an unknown event": (
        [HEAD, STEP, step_with({"type": "TaskFinishd", "time_s": 1.0, "launch": 1})],
        "line 3: unknown event 'TaskFinishd'; did you mean 'TaskFinished'\\?",
    ),
    "a command among the events": ([HEAD, step_with({"type": "Kill", "number": 1})], "line 2: unk"),
    "an event without a type": ([HEAD, step_with({"time_s": 1.0})], "line 2: expected a table wi"),
    "an event that is a word": ([HEAD, step_with("Woke")], "line 2: expected a table with a 'ty"),  # type: ignore[arg-type]
    "a missing field": (
        [HEAD, step_with({"type": "Woke"})],
        "line 2: the field 'time_s' is missing",
    ),
    "an unknown field": (
        [HEAD, step_with({"type": "Woke", "time_s": 1.0, "at": 2})],
        r"line 2: unknown field 'at' \(valid: time_s\)",
    ),
    "a field of another type": (
        [HEAD, step_with({"type": "TaskFinished", "time_s": 1.0, "launch": "one"})],
        "line 2.launch: expected int, got 'one'",
    ),
    "an impossible node": (
        [HEAD, step_with({"type": "NodeJoined", "time_s": 0.0, "node": {"id": "n", "slots": 0}})],
        "line 2.node: node 'n': slots must be a whole number of at least 1",
    ),
    "a job that is no job": (
        [
            HEAD,
            step_with(
                {"type": "QuerySubmitted", "time_s": 0, "query": {"id": "q", "jobs": [{}, {}]}}
            ),
        ],
        r"line 2.query.jobs\[0\]: the field 'name' is missing",
    ),
    "an unknown outcome": (
        [
            HEAD,
            step_with(
                {
                    "type": "LeaseEnded",
                    "time_s": 0,
                    "job": "q/j",
                    "node": "n",
                    "slots": 1,
                    "outcome": "revokd",
                }
            ),
        ],
        "line 2.outcome: unknown value 'revokd'; did you mean 'revoked'\\?",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_record_names_the_line_and_the_field(name: str):
    lines, complaint = UNREADABLE[name]
    with pytest.raises(InvalidRecord, match=complaint):
        Journal.from_lines(lines)


def test_numbers_may_be_whole_where_fractions_are_expected():
    lines = [HEAD, step_with({"type": "Woke", "time_s": 3})]
    (step,) = Journal.from_lines(lines).steps
    assert isinstance(step.events[0].time_s, float)


# --- replay ---------------------------------------------------------------------------------------

NODES = parse_nodes("4x3:4GB")
MIX = Mix(
    queries=14,
    bins=(SizeBin("small", 3, 0.2, 1.0), SizeBin("big", 1, 2.0, 4.0)),
    load=1.5,
    deadlines=0.3,
    online=0.2,
    divisible=0.2,
    shared=0.5,
    tenants={"ann": 1.0, "bob": 2.0},
    memory=0.2,
)
ROUGH = Conditions(
    noise=0.3,
    task_failure=0.05,
    node_mtbf_s=300.0,
    node_repair_s=20.0,
    revoke_delay_s=0.1,
    contention=0.1,
)
WORKLOAD = generate(MIX, seed=5, nodes=NODES)
SWITCHED = ("fifo", "fair", "tls", "s3", "mrshare", "h-tumm", "relaqs", "edls-pr")


def recorded(profile: str, slow_start: float = 1.0) -> Journal:
    return simulate(
        WORKLOAD,
        NODES,
        resolve_profile(profile),
        conditions=ROUGH,
        estimates="observed",
        seed=2,
        slow_start=slow_start,
    ).journal


@pytest.mark.parametrize("profile", ["fifo", "tls", "edls-pr", "tls-circular-htumm", "relaqs"])
def test_a_recorded_run_gives_the_same_commands_again(profile: str):
    journal = recorded(profile, slow_start=0.3)
    checked = 0

    def check(scheduler: Any) -> None:
        nonlocal checked
        checked += 1
        if checked % 10 == 0:
            scheduler.validate()

    assert replay(Journal.from_lines(journal.to_lines()), check) is None
    assert checked == len(journal.steps)


@pytest.mark.parametrize(("first", "second"), list(permutations(SWITCHED, 2)))
def test_a_run_with_a_change_of_policy_replays(first: str, second: str):
    """The second policy takes over in the middle of things, and everything ends all the same."""
    hand = Hand(first, "3x2", [Table("t", tuple(Split(1.0) for _ in range(4)))], seed=4)
    for number in range(8):
        jobs = [
            (maps("scan", 4, 2, scans=("t",)), maps("sum", 2, upstream=("scan",))),
            (divisible("d", 3),),
            (maps("a", 3, 1), maps("b", 2)),
            (Job("online", divisible=Divisible(2, 4)),),
        ][number % 4]
        kind = "online" if number % 4 == 3 else "exact"
        deadline_s = 30.0 if number % 3 else None
        hand.wait(1.0)
        hand.obey(hand.submit(f"q{number}", *jobs, kind=kind, deadline_s=deadline_s))
        if hand.state.running:
            run = next(iter(hand.state.running.values()))
            hand.obey(hand.do(ev.TaskFinished(hand.now, run.number, run.node)))
    hand.obey(hand.wait(1.0).do(ev.PolicyChosen(hand.now, resolve_profile(second))))
    assert hand.scheduler.policy.name == second
    for _ in range(20):
        hand.run_all()
        hand.wait(60.0)
        hand.obey(hand.do(ev.Woke(hand.now)))
    assert len(hand.ended) == 8
    hand.check_replay()


def tampered(journal: Journal, change: Callable[[Step], Step | None]) -> Journal:
    """The same journal with the first step changed for which there is a change."""
    steps = list(journal.steps)
    for number, step in enumerate(steps):
        other = change(step)
        if other is not None:
            steps[number] = other
            return dataclasses.replace(journal, steps=steps)
    raise AssertionError("there is nothing to tamper with")


def drop_a_launch(step: Step) -> Step | None:
    kept = tuple(c for c in step.commands if not isinstance(c, do.Launch))
    return step._replace(commands=kept) if len(kept) < len(step.commands) else None


def move_a_launch(step: Step) -> Step | None:
    if not step.commands or not isinstance(step.commands[0], do.Launch):
        return None
    moved = step.commands[0]._replace(node="elsewhere")
    return step._replace(commands=(moved, *step.commands[1:]))


def hide_a_query(step: Step) -> Step | None:
    kept = tuple(e for e in step.events if not isinstance(e, ev.QuerySubmitted))
    return step._replace(events=kept) if len(kept) < len(step.events) else None


def another_ending(step: Step) -> Step | None:
    for at, command in enumerate(step.commands):
        if isinstance(command, do.Finish):
            changed = (*step.commands[:at], do.Fail(command.query, "no"), *step.commands[at + 1 :])
            return step._replace(commands=changed)
    return None


@pytest.mark.parametrize(
    "change", [drop_a_launch, move_a_launch, hide_a_query, another_ending], ids=lambda c: c.__name__
)
def test_a_tampered_log_is_detected(change: Callable[[Step], Step | None]):
    journal = recorded("tls")
    forged = tampered(journal, change)
    difference = replay(forged)
    assert difference is not None
    assert difference.step.time_s == forged.steps[difference.number - 1].time_s
    assert "recorded" in str(difference)
    assert "decided" in str(difference)


def test_another_seed_or_profile_is_another_run():
    journal = recorded("edls-pr")
    other_seed = dataclasses.replace(journal, settings={**journal.settings, "seed": 99})
    assert replay(other_seed) is not None
    assert replay(dataclasses.replace(journal, profile={"order": "fair"})) is not None
