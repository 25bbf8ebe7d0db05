"""The catalogue, profiles of one's own, and their errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kernel_driver import Yard

from queryard.core.errors import InvalidProfile
from queryard.policies import about, catalogue, compose, load_profiles, resolve_profile
from queryard.policies.compose import DEFAULTS
from queryard.policies.parts import PARTS

ASKED_FOR = {
    *("fifo", "priority", "fair", "query-fair", "hierarchical", "capacity"),
    *("edf", "largest-slowdown", "srtf", "locf", "edls-sh", "edls-pr"),
    *("swrd", "tls", "hlfet", "dfa", "lodfa"),
    *("static", "best-static", "tumm", "h-tumm", "mrshare", "s3", "relaqs"),
}


def names() -> list[str]:
    return [info.name for info in catalogue()]


def test_the_catalogue_holds_every_published_policy_and_three_new_ones():
    assert set(names()) >= ASKED_FOR
    new = [info for info in catalogue() if info.origin == "new"]
    assert len(new) >= 3
    assert all(info.citation for info in catalogue() if info.origin != "new")
    assert {info.origin for info in catalogue()} == {"paper", "baseline", "new"}


@pytest.mark.parametrize("name", names())
def test_a_registered_profile_is_data_that_composes(name: str):
    profile = resolve_profile(name)
    policy = compose(profile)
    assert policy.name == name
    assert json.loads(json.dumps(profile)) == profile
    assert profile["summary"].endswith(".")
    yard = Yard(name, "2x2")
    yard.submit("q", [("work", 5, 1.0)]).submit("r", [("work", 5, 1.0)], deadline_s=9.0)
    assert set(yard.run().ends) == {"q", "r"}


@pytest.mark.parametrize(
    "part", [part for parts in PARTS.values() for part in parts.values()], ids=lambda p: p.name
)
def test_a_part_states_its_rule(part: type):
    assert part.__doc__


@pytest.mark.parametrize("decision", PARTS)
def test_the_first_part_of_a_decision_is_the_default(decision: str):
    part = compose({}).parts[list(PARTS).index(decision)]
    assert part.name == next(iter(PARTS[decision])) == DEFAULTS[decision]


def test_a_part_may_be_given_by_its_settings_alone():
    profile = {"name": "mine", "placement": {"name": "locf", "heartbeat_s": 1}, "slots": {}}
    assert about(profile).composition == "fifo + open + locf(heartbeat_s=1)"


def test_compositions_read_as_in_the_papers():
    lines = {info.name: info.composition for info in catalogue()}
    assert lines["tls"] == "qef + lodfa"
    assert lines["s3"] == "fifo + circular"
    assert lines["edls-sh"] == "by deadline (edf ≤70% | largest-slowdown ≤30%)"
    assert lines["edls-pr"] == "drawn by deadline (edf | largest-slowdown)"
    assert lines["deadline-first"] == "by deadline (edf ≥70% | swrd) + lodfa"
    assert lines["tls-circular-htumm"] == "qef + lodfa + h-tumm + circular"


def test_an_unknown_profile_lists_the_valid_ones():
    with pytest.raises(InvalidProfile, match=r"unknown profile 'tsl'; did you mean 'tls'\?") as at:
        resolve_profile("tsl")
    assert all(name in str(at.value) for name in names())


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"order": "fifos"}, r"order: unknown order 'fifos'; did you mean 'fifo'\? .*edf.*qef"),
        ({"job": "dfa"}, r"unknown key of a profile 'job'.*jobs"),
        ({"jobs": "dfs"}, r"jobs: .*'dfs'.*dfa, hlfet, lodfa"),
        ({"order": {"name": "qef", "windows": 3}}, r"order: .*'windows'.*limit_slow, window_s"),
        ({"order": {"name": "qef", "window_s": 0}}, r"order, qef: window_s must be .* above 0"),
        ({"order": {"name": "qef", "limit_slow": 1.5}}, r"order, qef: limit_slow .* whole number"),
        ({"provisioning": {"name": "dlx", "maximum": 0}}, r"provisioning, dlx: maximum"),
        ({"placement": {"name": "locf", "heartbeat_s": True}}, r"placement, locf: heartbeat_s"),
        ({"base": "tsl"}, r"base: unknown profile 'tsl'; did you mean 'tls'\?"),
        ({"base": ["tls"]}, r"base: unknown profile"),
        ({"pools": {"by": "tenants", "default": "fifo"}}, r"pools.by: .*'tenants'"),
        ({"pools": {"by": "tenant", "default": "fifi"}}, r"pools.default.order: .*'fifi'"),
        (
            {"pools": {"by": "tenant", "children": {"a": {"order": "fair", "cap": 2}}}},
            r"pools.children.a: cap must be a share",
        ),
        ({"pools": {"by": "tenant", "choice": "dice"}}, r"pools.choice: .*lottery, share"),
        ({"pools": {"order": "fifo"}, "order": "fair"}, r"either pools or an order"),
    ],
)
def test_a_wrong_profile_names_the_key_and_the_remedy(profile: dict, message: str):
    with pytest.raises(InvalidProfile, match=message):
        resolve_profile(profile)


def test_a_profile_may_start_from_a_registered_one():
    mine = resolve_profile({"base": "tls", "placement": "any"})
    assert (mine["order"], mine["jobs"], mine["placement"]) == ("qef", "lodfa", "any")
    assert "summary" not in mine
    # An order in place of the base's pools, and pools in place of its order.
    assert "pools" not in resolve_profile({"base": "tenant-tls", "order": "fair"})
    capped = resolve_profile({"base": "tls", "pools": {"cap": 0.5}})
    assert capped["pools"] == {"order": "qef", "cap": 0.5}
    assert "order" not in capped


def test_pools_continue_those_of_the_base():
    children = {"dashboards": {"weight": 3, "guarantee": 0.25}, "nightly": {"order": "fifo"}}
    mine = resolve_profile({"base": "hierarchical", "pools": {"children": children}})
    assert mine["pools"] == {
        "by": "tenant",
        "default": {"order": "fair"},
        "children": {
            "dashboards": {"order": "fair", "weight": 3, "guarantee": 0.25},
            "nightly": {"order": "fifo"},
        },
    }
    half = {"children": {"deadline": {"cap": 0.5}, "batch": {"cap": 0.5}}}
    mine = resolve_profile({"base": "edls-sh", "pools": half})
    assert mine["pools"]["children"]["deadline"] == {"order": "edf", "cap": 0.5}


def test_a_resolved_profile_is_the_callers_own():
    profile = dict(resolve_profile("edls-sh"))
    profile["pools"]["children"].clear()
    assert resolve_profile("edls-sh")["pools"]["children"]


def test_profiles_come_from_toml(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(
        """
        [service]
        port = 8080

        [profiles.office]
        base = "hierarchical"
        summary = "Ours."
        jobs = "dfa"
        [profiles.office.pools.children.dashboards]
        order = { name = "qef", window_s = 60 }
        weight = 3
        cap = 0.8

        [profiles.plain]
        order = "swrd"
        """
    )
    loaded = load_profiles(path)
    assert list(loaded) == ["office", "plain"]
    assert compose(loaded["office"]).name == "office"
    assert loaded["office"]["pools"]["children"]["dashboards"]["order"]["window_s"] == 60
    assert loaded["plain"] == {"name": "plain", "order": "swrd"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[profiles.x]\norder = 'fifos'", r"mine.toml, profiles.x: order: unknown order 'fifos'"),
        ("[profiles.x]\nbase = 'nine'", r"mine.toml, profiles.x: base: unknown profile 'nine'"),
        ("[profiles]\nx = 3", r"mine.toml, profiles.x: expected a table, got 3"),
        ("[profiles.x\n", r"mine.toml: .*line 1"),
        ("[policies.x]\n", r"mine.toml: has no profiles; write them as \[profiles.NAME\]"),
        ("profiles = 3\n", r"mine.toml: has no profiles"),
    ],
)
def test_errors_of_a_file_name_the_file_and_the_key(tmp_path: Path, text: str, message: str):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InvalidProfile, match=message):
        load_profiles(path)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(InvalidProfile, match=r"none.toml: cannot be read: No such file"):
        load_profiles(tmp_path / "none.toml")
