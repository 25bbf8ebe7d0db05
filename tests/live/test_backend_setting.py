"""Where queries run, as files and options say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import queryard
from queryard.cli.data_options import backend_table
from queryard.core.errors import QueryardError
from queryard.live.backend_setting import KEYS, BackendSetting, read_backend
from queryard.live.settings import Bounds, session_settings, sized
from queryard.service.config_file import InvalidConfig, read_config

RAY = {"kind": "ray", "address": "auto"}


def test_a_name_is_enough_and_a_table_says_all():
    assert read_backend("ray") == BackendSetting("ray")
    table = {
        **RAY,
        "slots": 4,
        "memory": "2 GB",
        "nodes": [1, 8],
        "autoscaler": True,
        "namespace": "yard",
        "temp": "/scratch",
    }
    assert {*table, "store"} == set(KEYS)
    found = BackendSetting("ray", "auto", 4, 2_000_000_000, (1, 8), True, "yard", None, "/scratch")
    assert read_backend(table) == found
    assert read_backend(table, "10.0.0.5:6379").address == "10.0.0.5:6379"
    assert read_backend({"kind": "ray", "store": "1 GB"}).store == 1_000_000_000


def test_settings_are_compared_with_the_address_that_counts():
    scaled = {"kind": "ray", "nodes": [1, 2], "autoscaler": True}
    assert read_backend(scaled, "auto").autoscaler
    with pytest.raises(QueryardError, match="on this machine has none"):
        read_backend({**scaled, "address": "auto"}, "local")
    with pytest.raises(QueryardError, match="store: is for a cluster that is started on this"):
        read_backend({"kind": "ray", "store": "1 GB"}, "auto")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "rey"}, "backend: kind: unknown backend 'rey'; did you mean 'ray'"),
        ({**RAY, "node": [1, 2]}, "backend: unknown key 'node'; did you mean 'nodes'"),
        ({**RAY, "nodes": 3}, "backend: nodes: must be the least and the most nodes"),
        ({**RAY, "nodes": [3, 1]}, "backend: nodes: the least, 3, is above the most, 1"),
        (
            {**RAY, "slots": [1, 2]},
            "a range, and the slots of a Ray cluster are those of its nodes",
        ),
        ({**RAY, "slots": 0}, "backend: slots: must be a whole number, at least 1"),
        ({**RAY, "memory": "much"}, "backend: memory: 'much' is not a size"),
        ({**RAY, "store": "1 MB"}, "backend: store: must be at least 75 MB"),
        ({**RAY, "store": "1 GB"}, "backend: store: is for a cluster that is started on this"),
        ({**RAY, "autoscaler": 1}, "backend: autoscaler: must be true or false"),
        ({**RAY, "autoscaler": True}, "needs the least and the most nodes, as nodes ="),
        ({"kind": "ray", "nodes": [1, 2], "autoscaler": True}, "on this machine has none"),
        ({"nodes": [1, 2]}, 'backend: nodes: is for a cluster; say kind = "ray" as well'),
        ({**RAY, "address": ""}, "backend: address: must be 'local', 'auto' or the address"),
        ({**RAY, "namespace": 7}, "backend: namespace: must be a text"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], told: str):
    with pytest.raises(QueryardError, match=told):
        read_backend(given)


def test_an_error_in_a_file_names_its_line(tmp_path: Path):
    file = tmp_path / "yard.toml"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "t.csv").write_text("a\n1\n")
    head = '[folders]\nfiles = "data"\n\n'
    for text, line, told in (
        ('[backend]\nkind = "ray"\nadress = "auto"\n', 6, "unknown key 'adress'"),
        ('[backend]\nkind = "ray"\nnodes = 4\n', 6, "nodes: must be the least and the most"),
        ("[backend]\nnodes = [1, 4]\n", 5, "is for a cluster"),
        ("[session]\nslots = 2\n[backend]\nslots = 2\n", 7, r"in \[session\]"),
        ("[session]\nslot = 2\n", 5, "unknown key 'slot'"),
    ):
        file.write_text(head + text)
        with pytest.raises(QueryardError, match=rf"line {line}: .*{told}"):
            queryard.connect(file, history=False)
        with pytest.raises(InvalidConfig, match=rf"line {line}: .*{told}"):
            read_config(file, tmp_path / "tokens.json")
    file.write_text(head + '[session]\nbackend = "ray"\n')
    with pytest.raises(QueryardError, match=r"line 5: .*as kind under \[backend\]"):
        queryard.connect(file, history=False)


def test_a_file_may_say_it_for_a_session_of_one_process(tmp_path: Path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    file = tmp_path / "yard.toml"
    file.write_text('[tables]\nt = "t.csv"\n[backend]\nslots = [1, 3]\nmemory = "500 MB"\n')
    with queryard.connect(file, history=False, statistics="off", profile="fifo") as session:
        assert (session.slots, session.memory_bytes) == (3, 500_000_000)
        assert session.sql("SELECT sum(a) FROM t").fetchall() == [(1,)]
    with queryard.connect(file, history=False, statistics="off", slots=2) as session:
        assert session.slots == 2


def test_provisioning_stays_within_the_nodes():
    profile = {"order": "fifo", "provisioning": "+x"}
    found = sized(profile, Bounds(2, 9, "nodes"))["provisioning"]
    assert (found["minimum"], found["maximum"]) == (2, 9)
    with pytest.raises(QueryardError, match=r"as nodes = \[1, 8\] under \[backend\]"):
        sized(profile, Bounds(1, 1, "nodes"))
    settings = session_settings({"backend": {**RAY, "nodes": [1, 4]}})
    assert settings["backend"].nodes == (1, 4)


def test_options_of_the_server_are_the_same_keys():
    assert backend_table("ray", "auto", None, False, None) == {"backend": "ray", "address": "auto"}
    found = backend_table("ray", "auto", "2:16", True, "yard")
    assert read_backend(found["backend"]).nodes == (2, 16)
    assert read_backend(found["backend"]).autoscaler
    assert backend_table(None, None, None, False, None) == {}
    with pytest.raises(QueryardError, match="--nodes 4: write the least and the most"):
        backend_table("ray", None, "4", False, None)
    with pytest.raises(QueryardError, match="--nodes: is for a cluster; give --backend ray"):
        backend_table(None, None, "1:4", False, None)
