"""The workload format: what it means, and what its errors say."""

from dataclasses import replace
from pathlib import Path

import pytest

from queryard.core.errors import InvalidRecord
from queryard.core.model import Node, Phase, TableInput, Tenant
from queryard.core.speedup import Speedup
from queryard.workload import demo_workload, generate, heavy_tailed, load_workload, parse_mix
from queryard.workload.files import save_workload
from queryard.workload.model import Workload

EXAMPLES = Path(__file__).parents[2] / "examples"

FULL = """
name = "full"
seed = 3

[[nodes]]
count = 3
slots = 4
memory = "24 GB"
rack = "r1"

[[nodes]]
id = "slow"
slots = 2
speed = 0.5
reduce_speed = 0.25

[[tables]]
name = "lineitem"
splits = 5
split_size = "64 MB"
replication = 2

[[tables]]
name = "orders"
size = "100 MB"
split_size = "64 MB"

[[tables]]
name = "nation"
splits = [{ bytes = 10, nodes = ["slow"] }, { bytes = "1 kB" }]

[[tenants]]
name = "web"
weight = 3
guarantee = 0.25

[[tenants]]
name = "batch"
cap = 0.5

[[queries]]
id = "q1"
tenant = "web"
priority = 2
submit = "2 min"
within = "1 min"
class_name = "Q1"
memory = "2 GiB"
idempotency_key = "k"
size_bin = "small"
cancel = 300

[[queries.jobs]]
name = "scan"
operator = "join"
scans = ["lineitem", "nation"]
map = { seconds = 3, output = "1 MB" }
reduce = { tasks = 2, shuffle_s = 1, merge_s = 2, reduce_s = 3, bytes = "5 MB" }

[[queries.jobs]]
name = "sum"
upstream = "scan"
inputs = { other = "1 GB" }
map = { tasks = 2, sizes = [1, "2 kB"], seconds = 1.5 }

[[queries]]
id = "est"
kind = "online"
submit_s = 5
deadline_s = 50
target_error = 0.01
count = 2
every = "10 s"

[queries.divisible]
width = 8
work = "1 h"
batches = 4
nested = true
growth = 2
rows = 1000
speedup = { serial = 0.1, most = 6 }
"""


def read(tmp_path: Path, text: str, name: str = "w.toml") -> Workload:
    file = tmp_path / name
    file.write_text(text)
    return load_workload(file)


def test_every_field_arrives_where_it_belongs(tmp_path: Path) -> None:
    workload = read(tmp_path, FULL)
    assert workload.name == "full"
    assert [node.id for node in workload.nodes] == ["n1", "n2", "n3", "slow"]
    assert workload.nodes[0] == Node("n1", 4, 24e9, rack="r1")
    assert workload.nodes[3] == Node("slow", 2, map_speed=0.5, reduce_speed=0.25)
    lineitem, orders, nation = workload.tables
    assert [split.bytes for split in lineitem.splits] == [64e6] * 5
    assert all(len(set(split.nodes)) == 2 for split in lineitem.splits)
    assert [split.bytes for split in orders.splits] == [50e6, 50e6]
    assert [split.nodes for split in nation.splits] == [("slow",), ()]

    assert workload.tenants == (Tenant("web", 3, 0.25), Tenant("batch", cap=0.5))

    q1, est1, est2 = workload.arrivals
    query = q1.query
    assert (query.tenant, query.priority, query.submit_s, query.deadline_s) == ("web", 2, 120, 180)
    assert (query.class_name, query.memory_bytes, query.idempotency_key) == ("Q1", 2 * 2**30, "k")
    assert (q1.size_bin, q1.cancel_s) == ("small", 300)
    scan, total = query.jobs
    assert scan.map == Phase(7, sizes=(64e6,) * 5 + (10, 1e3))
    assert scan.inputs == (TableInput("lineitem", 5 * 64e6), TableInput("nation", 1010))
    assert scan.reduce == Phase(2, 5e6)
    truth = q1.truth["scan"]
    assert (truth.map_s, truth.map_output_bytes) == (3, 1e6)
    assert (truth.shuffle_s, truth.merge_s, truth.reduce_s) == (1, 2, 3)
    assert total.upstream == ("scan",)
    assert total.map == Phase(2, sizes=(1, 2000))
    assert total.inputs == (TableInput("other", 1e9),)

    assert [a.query.id for a in (est1, est2)] == ["est-1", "est-2"]
    assert [(a.query.submit_s, a.query.deadline_s) for a in (est1, est2)] == [(5, 50), (15, 60)]
    assert est1.query.jobs[0].divisible is not None
    assert est1.query.jobs[0].divisible.batches == 4
    assert est1.truth["job"].speedup == Speedup(0.1, 6.0)
    assert est1.work_s == 3600 + 2 * (1 + 2 + 3 + 4)


def test_given_nodes_replace_those_of_the_file_and_hold_its_tables(tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    file.write_text(FULL)
    workload = load_workload(file, [Node("other", 3)])
    assert [node.id for node in workload.nodes] == ["other"]
    assert {node for split in workload.tables[0].splits for node in split.nodes} == {"other"}


def test_places_on_nodes_that_are_not_there_are_local_nowhere(tmp_path: Path) -> None:
    text = (
        '[[tables]]\nname = "t"\nsplits = [{ nodes = ["x"] }]\n[[queries]]\nid = "q"\nscans = "t"'
    )
    assert read(tmp_path, text).tables[0].splits[0].nodes == ("x",)
    assert load_workload(tmp_path / "w.toml", [Node("n", 1)]).tables[0].splits[0].nodes == ("x",)


def test_a_table_added_leaves_the_others_in_place(tmp_path: Path) -> None:
    more = '\n[[tables]]\nname = "extra"\nsplits = 9\n[[queries]]\nid = "q1"'
    before, after = (
        read(tmp_path, FULL),
        read(tmp_path, FULL.replace('\n[[queries]]\nid = "q1"', more)),
    )
    assert after.tables[:3] == before.tables


@pytest.mark.parametrize("source", ["full", "demo", "mix", "heavy"])
def test_a_saved_workload_comes_back_the_same(tmp_path: Path, source: str) -> None:
    mix = "queries=30,online=0.2,divisible=0.2,shared=0.5,deadlines=0.5,memory=0.1,bins=qmix"
    workload = {
        "full": lambda: read(tmp_path, FULL),
        "demo": demo_workload,
        "mix": lambda: generate(parse_mix(mix), seed=5),
        "heavy": lambda: heavy_tailed(50, 1000, 10),
    }[source]()
    file = tmp_path / "saved.json"
    save_workload(workload, file)
    assert load_workload(file) == workload


WORKLOADS = [
    file
    for file in sorted(EXAMPLES.glob("*.*"))
    if file.suffix in (".toml", ".json") and file.stem != "profiles"
]


@pytest.mark.parametrize("file", WORKLOADS, ids=lambda file: file.name)
def test_examples_can_be_read(file: Path) -> None:
    assert load_workload(file).arrivals


BASE = '[[queries]]\nid = "a"\n'

TENANT = '[[tenants]]\nname = "t"\n'

WRONG = {
    "tenant's field": (TENANT + "wieght = 2", "line 3, tenant 't', wieght: unknown field"),
    "tenant's weight": (TENANT + "weight = 0", "line 3, tenant 't', weight: must be above 0"),
    "tenant's cap": (
        TENANT + "cap = 50",
        "line 3, tenant 't', cap: a share lies between 0 and 1, got 50",
    ),
    "tenant without slots": (TENANT + "cap = 0", "line 3, tenant 't', cap: 0 would never let"),
    "guarantee above cap": (
        TENANT + "guarantee = 0.5\ncap = 0.2",
        "line 3, tenant 't', guarantee: 0.5 is above the cap of 0.2",
    ),
    "guarantees above 1": (
        TENANT + 'guarantee = 0.7\n[[tenants]]\nname = "u"\nguarantee = 0.5',
        "line 6, tenant 'u', guarantee: the guarantees add up to 1.2, more than 1",
    ),
    "duplicate tenant": (TENANT + TENANT, "line 4, tenant 't', name: two tenants are called 't'"),
    "nameless tenant": ("[[tenants]]\ncap = 1", "line 1, tenant 1: the field 'name' is missing"),
    "unknown field": (
        BASE + "map = { tasks = 1, secnds = 2 }",
        "line 3, query 'a', map, secnds: unknown field 'secnds'; did you mean 'seconds'? "
        "(valid: bytes, format, make",
    ),
    "negative size": (
        BASE + "[queries.map]\ntasks = 1\nbytes = -3",
        "line 5, query 'a', map, bytes: a size must be finite and at least 0, got -3",
    ),
    "no tasks": (
        BASE + "map = { seconds = 1 }",
        "line 3, query 'a', map: the field 'tasks' is missing",
    ),
    "tasks": (
        BASE + "map = { tasks = 1.5 }",
        "line 3, query 'a', map, tasks: expected a whole number of at least 1, got 1.5",
    ),
    "no work": (BASE, "line 1, query 'a': has no work"),
    "no id": ("[[queries]]\nmap = {tasks = 1}", "line 1, query 1: the field 'id' is missing"),
    "slash": ('[[queries]]\nid = "a/b"\nmap = {tasks = 1}', "line 2, query 'a/b', id: a name"),
    "duplicate id": (
        BASE + "map = {tasks = 1}\n" + BASE + "map = {tasks = 1}",
        "line 5, query 'a', id: the query of line 1 has the id 'a' too",
    ),
    "cycle": (
        BASE
        + '[[queries.jobs]]\nname = "x"\nmap = {tasks = 1}\n'
        + '[[queries.jobs]]\nname = "y"\nupstream = ["x", "z"]\nmap = {tasks = 1}\n'
        + '[[queries.jobs]]\nname = "z"\nupstream = ["y"]\nmap = {tasks = 1}\n',
        "line 8, query 'a', job 'y', upstream: the jobs wait for one another: y -> z -> y",
    ),
    "self": (
        BASE + '[[queries.jobs]]\nname = "x"\nupstream = "x"\nmap = {tasks = 1}\n',
        "line 5, query 'a', job 'x', upstream: the jobs wait for one another: x -> x",
    ),
    "unknown job": (
        BASE + 'jobs = [\n  { name = "x", upstream = ["w"], map = { tasks = 1 } },\n]',
        "line 4, query 'a', job 'x', upstream: unknown job 'w'",
    ),
    "two jobs": (
        BASE + 'jobs = [{ name = "x", map = {tasks = 1} },\n{ name = "x", map = {tasks = 1}}]',
        "line 4, query 'a', job 'x', name: two jobs are called 'x'",
    ),
    "unknown table": (
        BASE + 'scans = "t"',
        "line 3, query 'a', scans: unknown table 't' (valid: none)",
    ),
    "bad unit": (
        BASE + 'submit = "2 fortnights"\nmap = { tasks = 1 }',
        "line 3, query 'a', submit: '2 fortnights': unknown unit of time 'fortnights'",
    ),
    "both spellings": (
        BASE + "submit = 1\nsubmit_s = 1\nmap = { tasks = 1 }",
        "line 4, query 'a', submit_s: 'submit' says the same",
    ),
    "operator": (
        BASE + 'operator = "sort"\nmap = { tasks = 1 }',
        "line 3, query 'a', operator: unknown operator 'sort' (valid: extract, groupby, join)",
    ),
    "online": (
        BASE + 'kind = "online"\nmap = { tasks = 1 }',
        "line 3, query 'a', kind: an online query is made of divisible jobs only",
    ),
    "a curve that is none": (
        BASE + "divisible = { width = 1, work = 1, speedup = { serial = 2 } }",
        "line 3, query 'a', divisible, speedup, serial",
    ),
    "divisible with maps": (
        BASE + "divisible = { width = 1, work = 1 }\nmap = { tasks = 1 }",
        "line 4, query 'a', map: divisible work has no phases",
    ),
    "growth": (
        BASE + "divisible = { width = 1, work = 1, growth = 1 }",
        "line 3, query 'a', divisible: work grows",
    ),
    "splits": (
        '[[tables]]\nname = "t"\nsplits = 3\n' + BASE + 'scans = "t"\nmap = { tasks = 4 }',
        "line 7, query 'a', map, tasks: 4 tasks for 3 splits",
    ),
    "table size": ('[[tables]]\nname = "t"\n' + BASE, "line 1, table 't': how large is it?"),
    "two tables": (
        '[[tables]]\nname = "t"\nsplits = 1\n[[tables]]\nname = "t"\nsplits = 1\n',
        "line 5, table 't', name: two tables",
    ),
    "split node": (
        'nodes = "2x1"\n[[tables]]\nname = "t"\nsplits = [\n { bytes = 1, nodes = ["n1", "n7"]}]',
        "line 5, table 't', split 1, nodes: unknown node 'n7'",
    ),
    "nodes": ('nodes = "16 by 12"', "line 1, nodes: nodes '16 by 12': cannot read"),
    "node speed": ("[[nodes]]\nslots = 1\nspeed = 0", "line 3, node 1, speed: must be above 0"),
    "node slots": ("[[nodes]]\nspeed = 1", "line 1, node 1: the field 'slots' is missing"),
    "two nodes": (
        '[[nodes]]\nslots = 1\nid = "x"\n[[nodes]]\nslots = 1\nid = "x"',
        "line 6, node 'x', id: two nodes have the id 'x'",
    ),
    "no queries": ('name = "x"', "line 1: a workload needs at least one query"),
    "not tables": ("queries = 3", "line 1, queries: expected a list, got 3"),
    "not a table": ("queries = [3]", "line 1, query 1: expected a table of fields, got 3"),
    "syntax": ("name = ?", "not valid TOML: Invalid value (at line 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_named_with_their_line(tmp_path: Path, case: str) -> None:
    text, message = WRONG[case]
    with pytest.raises(InvalidRecord) as caught:
        read(tmp_path, text)
    separator = ": " if case == "syntax" else ", "
    assert str(caught.value).startswith(f"{tmp_path / 'w.toml'}{separator}{message}")


def test_json_mistakes_too(tmp_path: Path) -> None:
    text = '{\n "queries": [\n  {"id": "a",\n   "map": {"tasks": 0}}]}'
    with pytest.raises(InvalidRecord, match=r"w\.json, line 4, query 'a', map, tasks: .* got 0"):
        read(tmp_path, text, "w.json")
    with pytest.raises(InvalidRecord, match=r"w\.json: not valid JSON: .*line 2, column 1"):
        read(tmp_path, '{"name": "x",\n', "w.json")
    with pytest.raises(InvalidRecord, match="the key 'name' twice"):
        read(tmp_path, '{"name": "x", "name": "y"}', "w.json")
    with pytest.raises(InvalidRecord, match="nested too deeply"):
        read(tmp_path, "[" * 100_000, "w.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="No such file"):
        load_workload(tmp_path / "none.toml")
    with pytest.raises(InvalidRecord, match=r"unknown ending '\.csv' \(valid: \.json, \.toml\)"):
        read(tmp_path, "", "w.csv")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidRecord, match="UTF-8"):
        load_workload(tmp_path / "binary.toml")
    with pytest.raises(InvalidRecord, match=r"ending \.json"):
        save_workload(heavy_tailed(1, 1, 1), tmp_path / "w.toml")


def test_copies_may_not_share_an_idempotency_key(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="all copies would be one query"):
        read(tmp_path, BASE + 'idempotency_key = "k"\ncount = 2\nmap = { tasks = 1 }')


def test_truth_of_absent_phases_is_not_kept(tmp_path: Path) -> None:
    workload = heavy_tailed(1, 1, 1)
    (arrival,) = workload.arrivals
    odd = replace(arrival, truth={"job": replace(arrival.truth["job"], work_s=9.0)})
    file = tmp_path / "w.json"
    save_workload(replace(workload, arrivals=(odd,)), file)
    assert load_workload(file) == workload


def test_scans_that_no_other_job_rides_on_are_written_and_read(tmp_path):
    path = tmp_path / "w.toml"
    path.write_text(
        """
[[tables]]
name = "t"
splits = 2
split_size = "64 MB"
[[queries]]
id = "q"
scans = "t"
scans_alone = true
map = { seconds = 1 }
"""
    )
    found = load_workload(path)
    save_workload(found, tmp_path / "w.json")
    for each in (found, load_workload(tmp_path / "w.json")):
        assert each.arrivals[0].query.jobs[0].scans_alone
