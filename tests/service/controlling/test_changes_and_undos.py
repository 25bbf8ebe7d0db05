"""Whatever is changed and undone in whatever order, the session follows what a plain model says."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

pytest.importorskip("fastapi")

from queryard.service.controlling.controls import Controls
from queryard.service.problems import Conflict
from service.controlling.still_session import NoTokens, StillSession

FIELDS = ("weight", "cap", "waiting")
USUAL = {"weight": 1.0, "cap": 1.0, "waiting": None}


class Model:
    """All changes as a list; what holds is looked for from the end."""

    def __init__(self, of_file: dict[Any, Any]) -> None:
        self.of_file = dict(of_file)
        # Each: its number, what it sets, whether it was undone.
        self.changes: list[tuple[int, dict[Any, Any], bool]] = []

    def value(self, key: Any) -> Any:
        for _, sets, undone in reversed(self.changes):
            if key in sets and not undone:
                return sets[key]
        return self.of_file.get(key, USUAL.get(key[-1]))

    def may_undo(self, number: int) -> bool:
        place = next((n for n, (id, _, _) in enumerate(self.changes) if id == number), None)
        if place is None or self.changes[place][2] or not self.changes[place][1]:
            return False
        later = [sets for _, sets, undone in self.changes[place + 1 :] if not undone]
        return not any(key in sets for sets in later for key in self.changes[place][1])

    def undo(self, number: int) -> None:
        self.changes = [(id, sets, undone or id == number) for id, sets, undone in self.changes]

    def file_says(self, of_file: dict[Any, Any]) -> bool:
        """Whether something gave way."""
        held = {key for _, sets, undone in self.changes if not undone for key in sets}
        new = {
            key
            for key in held
            if key[0] != "paused"
            and of_file.get(key, USUAL.get(key[-1])) != self.of_file.get(key, USUAL.get(key[-1]))
        }
        self.of_file = dict(of_file)
        for _, sets, undone in self.changes:
            for key in new if not undone else ():
                sets.pop(key, None)
        return bool(new)


names = st.sampled_from(("a", "b", "a/x"))
policies = st.sampled_from(("fair", "fifo", "marshal"))
changed = st.fixed_dictionaries(
    {},
    optional={
        "weight": st.sampled_from((1.0, 2.0, 3.0)),
        "cap": st.sampled_from((0.5, 1.0)),
        "waiting": st.sampled_from((None, 5)),
    },
).filter(bool)
of_file = st.fixed_dictionaries(
    {("profile",): policies},
    optional={
        ("tenant", "a", "weight"): st.sampled_from((1.0, 2.0, 4.0)),
        ("tenant", "b", "waiting"): st.sampled_from((5, 7)),
    },
)
steps = st.one_of(
    st.tuples(st.just("profile"), policies),
    st.tuples(st.just("tenant"), names, changed),
    st.tuples(st.just("tenant"), names, changed),
    st.tuples(st.just("pause")),
    st.tuples(st.just("undo"), st.integers(0, 8)),
    st.tuples(st.just("undo"), st.integers(0, 3)),
    st.tuples(st.just("restart"), of_file),
    st.tuples(st.just("reload"), of_file),
    st.tuples(st.just("restart"), st.none()),
)


def as_table(said: dict[Any, Any]) -> dict[str, Any]:
    """What a file says of tenants, as a session takes it."""
    tenants: dict[str, Any] = {}
    for key, value in said.items():
        if key[0] == "tenant":
            of_tenant = tenants.setdefault(key[1], {})
            if key[2] == "waiting":
                of_tenant["limits"] = {"waiting": value}
            else:
                of_tenant[key[2]] = value
    return tenants


def check(session: StillSession, model: Model) -> None:
    assert session.chosen_profile == model.value(("profile",))
    for name in ("a", "b", "a/x"):
        found = next((tenant for tenant in session.tenants if tenant.name == name), None)
        limits = session.tenant_limits.get(name)
        for field in FIELDS:
            if field == "waiting":
                value = None if limits is None else limits.waiting
            else:
                value = USUAL[field] if found is None else getattr(found, field)
            assert value == model.value(("tenant", name, field)), (name, field)
    assert session.paused_by == model.value(("paused",))


@settings(max_examples=examples(300), deadline=None)
@given(first=of_file, taken=st.lists(steps, min_size=3, max_size=25))
def test_random_changes_and_undos_end_as_a_model_says(first: Any, taken: list[Any]):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "controls.jsonl"
        model = Model(first)

        def start() -> tuple[Controls, StillSession]:
            session = StillSession(model.of_file[("profile",)], as_table(model.of_file))
            return Controls(session, file, NoTokens()), session  # type: ignore[arg-type]

        controls, session = start()
        for step in taken:
            match step:
                case ("profile", name):
                    made = controls.change("ann", {"change": "profile", "profile": name})
                    model.changes.append((made["id"], {("profile",): name}, False))
                case ("tenant", name, fields):
                    body: dict[str, Any] = {"change": "tenant", "tenant": name, **fields}
                    if "waiting" in fields:
                        body["limits"] = {"waiting": body.pop("waiting")}
                    made = controls.change("bob", body)
                    sets = {("tenant", name, field): value for field, value in fields.items()}
                    model.changes.append((made["id"], sets, False))
                case ("pause",):
                    what = "pause" if session.paused_by is None else "resume"
                    made = controls.change("eve", {"change": what})
                    by = "eve" if what == "pause" else None
                    model.changes.append((made["id"], {("paused",): by}, False))
                case ("undo", back):
                    number = controls.show()["last"] - back
                    told = [each for each in controls.show()["changes"] if each["id"] == number]
                    if not told:
                        continue
                    assert told[0]["undoable"] == model.may_undo(number)
                    if told[0]["undoable"]:
                        controls.undo("ann", number)
                        model.undo(number)
                    else:
                        with pytest.raises(Conflict):
                            controls.undo("ann", number)
                case ("reload", said):
                    controls.use_tenants(as_table(said), None, said[("profile",)])
                    model.file_says(said)
                case ("restart", said):
                    before = controls.show()
                    controls.close()
                    if said is not None:
                        model.file_says(said)
                    controls, session = start()
                    if said is None:
                        assert controls.show() == before
            check(session, model)
        controls.close()
