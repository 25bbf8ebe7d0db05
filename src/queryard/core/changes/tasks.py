"""Tasks begin, finish, fail, and run again. The hot path of the kernel: kept flat on purpose."""

from __future__ import annotations

from typing import Any

from ..commands import Launch
from ..entities import JobState
from ..errors import InvalidEvent
from ..events import TaskFailed, TaskFinished
from ..failed_at import failed_at
from ..lifecycle import TASK_MOVES
from ..model import MAP, TaskId
from ..nodes import NodeState
from ..phases import PhaseState
from ..state import State
from . import estimates, queries

_new = tuple.__new__
_LAUNCH_FROM, _LAUNCH_TO = TASK_MOVES["launched"]
_FINISH_FROM, _FINISH_TO = TASK_MOVES["finished"]


def launch_one(
    state: State, node: NodeState, job: JobState, phase: PhaseState, index: int, round: str = ""
) -> Launch:
    """Enter the launch of a single task, which is already taken."""
    number = state.next_launch
    state.next_launch = number + 1
    kind = phase.kind
    # Named tuples made this way cost half; this runs once per task.
    task = _new(TaskId, (job.id, kind, index))
    state.running[number] = launch = _new(Launch, (number, node.id, (task,), round, state.now))
    node.free -= 1
    if kind == MAP:
        node.maps += 1
    else:
        node.reduces += 1
    counts = phase.counts
    counts[_LAUNCH_FROM] -= 1
    counts[_LAUNCH_TO] += 1
    job.slots += 1
    job.query.slots += 1
    return launch


def launch_ride(state: State, node: NodeState, launch: Launch) -> None:
    """Enter a launch of map tasks that ride together; they are already taken."""
    state.next_launch += 1
    state.running[launch.number] = launch
    node.free -= 1
    node.maps += 1
    for task in launch.tasks:
        job = state.jobs[task.job]
        counts = job.map.counts  # type: ignore[union-attr]
        counts[_LAUNCH_FROM] -= 1
        counts[_LAUNCH_TO] += 1
        job.slots += 1
        job.query.slots += 1


def launch_again(state: State, node: NodeState, run: Launch) -> Launch:
    """Enter a second launch of a task that runs: the first of the two to end well counts."""
    number = state.next_launch
    state.next_launch = number + 1
    (task,) = run.tasks
    job = state.jobs[task.job]
    state.running[number] = launch = Launch(number, node.id, run.tasks, "", state.now)
    state.twins[number], state.twins[run.number] = run.number, number
    node.free -= 1
    if task.kind == MAP:
        node.maps += 1
    else:
        node.reduces += 1
    job.slots += 1
    job.query.slots += 1
    return launch


def _end(state: State, run: Launch) -> NodeState:
    """A launch that was taken out of the running leaves its slot; the node it ran on."""
    if state.killed:
        state.killed.discard(run[0])
    notes = state.notes
    if notes.every_run:
        notes.ended_runs.append(run)
    return _leave(state, run)


def _leave(state: State, run: Launch) -> NodeState:
    """The slot of a launch is free."""
    node = state.nodes[run[1]]
    state.notes.freed.append(node)
    node.free += 1
    if run[2][0][1] == MAP:
        node.maps -= 1
    else:
        node.reduces -= 1
    return node


def _late(state: State, number: int, what: object) -> None:
    """A launch that does not run was beaten, was lost with its node, or was never made."""
    if not 0 <= number < state.next_launch:
        raise InvalidEvent(f"{what!r}: launch {number} was never made")
    run = state.beaten.pop(number, None)
    if run is not None:
        _leave(state, run)


def _beat(state: State, number: int) -> None:
    """A launch has done its task: one that does the same is stopped, and counts for nothing."""
    other = state.twins.pop(number, None)
    if other is None:
        return
    del state.twins[other]
    run = state.beaten[other] = state.running.pop(other)
    _leave_query(state, run)
    notes = state.notes
    if notes.every_run:
        notes.ended_runs.append(run)
    if other in state.killed:
        state.killed.discard(other)
    else:
        notes.kills.append(other)
        notes.rare = True


def part_twins(state: State, number: int) -> bool:
    """One of two launches of a task is gone without a result: the other goes on alone.

    False if it was the only one.
    """
    other = state.twins.pop(number, None)
    if other is None:
        return False
    del state.twins[other]
    return True


def _leave_query(state: State, run: Launch) -> None:
    """A launch of a task that another launch does holds no slot for its query any more."""
    job = state.jobs[run.tasks[0].job]
    job.slots -= 1
    job.query.slots -= 1
    state.notes.touched.append(job)


def drop_twin(state: State, run: Launch) -> None:
    """A launch is gone without a result, and its task runs on in another."""
    _leave_query(state, run)
    query = state.jobs[run.tasks[0].job].query
    if query.stage == "ending":
        queries.clear(state, query)


def finished(state: State, event: TaskFinished) -> None:
    time_s, number, place, _, _ = event
    run = state.running.pop(number, None)
    if run is None:
        _late(state, number, event)
        return
    node = _end(state, run)
    if state.twins:
        _beat(state, number)
    notes = state.notes
    seconds = time_s - run[4]
    for job_id, kind, index in run[2]:
        job = state.jobs[job_id]
        query = job.query
        job.slots -= 1
        query.slots -= 1
        if kind == MAP:
            phase: Any = job.map
            node.map_mean.add(seconds)
            query.left_s -= job.map_s
            if place is not None and job.reduce is not None:
                phase.outputs.setdefault(place, []).append(index)
        elif run[3]:
            _folded(state, job, index)
            continue
        else:
            phase = job.reduce
            node.reduce_mean.add(seconds)
            query.left_s -= job.reduce_s
        phase.mean.add(seconds)
        counts = phase.counts
        counts[_FINISH_FROM] -= 1
        counts[_FINISH_TO] = done = counts[_FINISH_TO] + 1
        if done >= phase.milestone:
            _pass_milestone(state, job, phase)
        if notes.every_task:
            notes.served.append(job)
        if query.stage == "ending":
            queries.clear(state, query)


def _folded(state: State, job: JobState, index: int) -> None:
    """A reduce has folded what a round left; it waits for the rest."""
    phase: Any = job.reduce
    leave, enter = TASK_MOVES["folded"]
    phase.counts[leave] -= 1
    phase.counts[enter] += 1
    phase.give_back(index)
    job.folding -= 1
    state.notes.touched.append(job)
    if job.query.stage == "ending":
        queries.clear(state, job.query)


def _pass_milestone(state: State, job: JobState, phase: PhaseState) -> None:
    """The 1st, 2nd, 4th, 8th … task of a phase, or its last, is done.

    Means are looked at on these occasions only, so that a task costs no more than counting.
    """
    done = phase.done
    if done < phase.spec.tasks:
        _complete(state, job)
        if phase.milestone:
            phase.milestone = min(2 * done, phase.spec.tasks)
        estimates.learn(state, job, phase.kind, phase.mean.mean)
        return
    state.remaking.pop(job.id, None)  # its maps are done again, or needed no more
    if job.query.stage == "ending":
        return
    if job.query.spec.class_name and not phase.told:
        phase.told = True
        estimates.class_mean(state, job, phase.kind).merge(phase.mean)
    state.notes.touched.append(job)
    if job.map is not None and job.map.left:
        job.map.milestone = 0  # its job may be done with any of them
    _complete(state, job)


def _complete(state: State, job: JobState) -> None:
    """A job is done with its last reduce (or map); maps being made again matter no more."""
    maps, reduces = job.map, job.reduce
    if maps is None or job.done or job.query.stage != "running":
        return
    if (maps.left == 0) if reduces is None else (reduces.left == 0 and maps.running == 0):
        queries.job_done(state, job)


def failed(state: State, event: TaskFailed) -> None:
    killed = event.launch in state.killed
    run = state.running.get(event.launch)
    if run is None:
        _late(state, event.launch, event)
        return
    failing = run.tasks
    if event.job:
        failing = tuple(task for task in run.tasks if task.job == event.job)
        if not failing:
            return  # its query has left the launch already
    if event.retry == "elsewhere" and not killed and len(failing) == 1:
        _note_place(state, failing[0], run.node)
    if len(failing) < len(run.tasks):
        others = tuple(task for task in run.tasks if task.job != event.job)
        state.running[event.launch] = run._replace(tasks=others)
        requeue(state, run._replace(tasks=failing), TASK_MOVES["failed"])
        state.notes.rare = True
    else:
        del state.running[event.launch]
        _end(state, run)
        if part_twins(state, event.launch):
            drop_twin(state, run)
            state.notes.rare = True
        else:
            requeue(state, run, TASK_MOVES["failed"])
    # When tasks that ride together fail, it is not known which one did: each is tried again alone.
    if killed or len(failing) > 1 or event.retry == "free":
        return
    job_id, kind, index = failing[0]
    job = state.jobs.get(job_id)
    if job is None or job.query.stage == "ending":
        return
    task = TaskId(job_id, kind, index)
    if event.retry == "never":
        queries.end(state, job.query, "failed", f"task {task} failed: {event.cause}")
        return
    phase: Any = job.map if kind == MAP else job.reduce
    if phase.failures is None:
        phase.failures = {}
    phase.failures[index] = failures = phase.failures.get(index, 0) + 1
    if failures >= state.settings.max_attempts:
        cause = f"task {task} failed {failures} times, the last time with: {event.cause}"
        queries.end(state, job.query, "failed", cause)


def _note_place(state: State, task: TaskId, node: str) -> None:
    """A task has failed at a node, which may be why: another one is preferred for a while.

    Tasks that may ride with others are taken by splits, wherever they have failed.
    """
    job = state.jobs[task.job]
    if len(job.spec.scans) == 1 and not job.spec.scans_alone:
        return
    phase: Any = job.map if task.kind == MAP else job.reduce
    phase.failed_at[task.index] = failed_at(phase.failed_at.get(task.index), node, state.now)
    state.notes.avoided = True


def requeue(state: State, run: Launch, move: tuple[int, int]) -> None:
    """The tasks of a launch that gave no result are pending again."""
    leave, enter = move
    for job_id, kind, index in run.tasks:
        job = state.jobs[job_id]
        phase: Any = job.map if kind == MAP else job.reduce
        phase.counts[leave] -= 1
        phase.counts[enter] += 1
        phase.give_back(index)
        if kind != MAP and run.round:
            # What it was to fold is folded by another, or left to the last run.
            job.folding -= 1
            job.folds += 1 if job.folds_early else 0
        job.slots -= 1
        job.query.slots -= 1
        state.notes.touched.append(job)
        if kind == MAP:
            state.notes.returned.append((job, index))
        if job.query.stage == "ending":
            queries.clear(state, job.query)
        else:
            _complete(state, job)


def lose_outputs(state: State, job: JobState, node: str) -> None:
    """Finished maps that had their output on a lost node run again if reduces still need it."""
    maps = job.map
    if maps is None or node not in maps.outputs or job.done:
        return
    if job.reduce is None or not job.reduce.left:
        return
    state.remaking[job.id] = job
    # From now on every map that ends is looked at: the reduces may need none of them.
    maps.milestone = 0
    leave, enter = TASK_MOVES["output lost"]
    for index in maps.outputs.pop(node):
        maps.counts[leave] -= 1
        maps.counts[enter] += 1
        maps.give_back(index)
        job.query.left_s += job.map_s
        state.notes.returned.append((job, index))
    state.notes.touched.append(job)
