"""The commands as a person calls them: output, exit codes, and what mistakes look like."""

import json
from pathlib import Path

import pytest

from queryard.cli import main
from queryard.core.journal import Journal
from queryard.policies.parts import PARTS

EXAMPLES = Path(__file__).parents[2] / "examples"
FIRST = str(EXAMPLES / "first.toml")
SMALL = ["--generate", "queries=12,bins=80:1-2/20:4,deadlines=0.5", "--nodes", "4x4"]


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def queryard(capsys: pytest.CaptureFixture[str]):
    def call(*args: str) -> Outcome:
        with pytest.raises(SystemExit) as left:
            main(args)
        captured = capsys.readouterr()
        return Outcome(int(left.value.code or 0), captured.out, captured.err)

    return call


def test_version(queryard) -> None:
    outcome = queryard("--version")
    assert outcome.code == 0
    assert outcome.out.startswith("queryard ")


@pytest.mark.parametrize("command", ["compare", "simulate", "policies", "parts"])
def test_help_teaches_by_example(queryard, command: str) -> None:
    outcome = queryard(command, "--help")
    assert outcome.code == 0
    assert f"queryard {command}" in outcome.out


def test_policies(queryard) -> None:
    outcome = queryard("policies")
    assert outcome.code == 0
    for name in ("fifo", "tls", "s3", "relaqs"):
        assert name in outcome.out


def test_one_policy_part_by_part(queryard) -> None:
    outcome = queryard("policies", "tls")
    assert outcome.code == 0
    for text in ("lodfa", "order", "jobs", "placement"):
        assert text in outcome.out


def test_a_former_name_of_a_policy_is_valid(queryard) -> None:
    assert "cost-of-delay" in queryard("policies", "dearest").out
    assert "12 of 12" in queryard("simulate", *SMALL, "--policy", "dearest").out


def test_a_policy_of_the_users_part_by_part(queryard) -> None:
    file = str(EXAMPLES / "profiles.toml")
    outcome = queryard("policies", "office", "--profile", file)
    assert outcome.code == 0, outcome.err
    for text in ("dashboard: order qef, weight 3, guarantee 0.25", "every other", "circular"):
        assert text in outcome.out
    assert outcome.out.count("limit_slow = 3") == 1
    assert "office" in queryard("policies", "--profile", file).out


def test_settings_are_shown_as_they_are_written(queryard) -> None:
    told = queryard("policies", "relaqs").out
    assert "objective = 'sum'" in told


def test_parts(queryard) -> None:
    outcome = queryard("parts")
    assert outcome.code == 0
    for decision, known in PARTS.items():
        assert decision in outcome.out
        for name in known:
            assert f" {name} " in outcome.out
    assert "limit_slow = 3" in outcome.out


def test_the_parts_of_one_decision(queryard) -> None:
    outcome = queryard("parts", "placement")
    assert outcome.code == 0
    for text in ("local", "locf", "heartbeat_s = 3.0", "POSUM"):
        assert text in outcome.out
    assert "circular" not in outcome.out


def test_compare_shows_policies_and_ideals(queryard) -> None:
    outcome = queryard("compare", FIRST, "--policy", "fifo,fair")
    assert outcome.code == 0, outcome.err
    for text in ("fifo", "fair", "ideal PS", "clairvoyant SRPT", "lowest mean response"):
        assert text in outcome.out


def test_compare_as_json(queryard) -> None:
    outcome = queryard("compare", *SMALL, "--policy", "fifo, tls", "--policy", "edf", "--json")
    assert outcome.code == 0, outcome.err
    data = json.loads(outcome.out)
    assert [row["policy"] for row in data["policies"]] == ["fifo", "tls", "edf"]
    assert [row["name"] for row in data["references"]] == ["ideal PS", "clairvoyant SRPT"]
    assert data["workload"] | {"queries": 12, "nodes": 4, "slots": 16} == data["workload"]
    for row in data["policies"]:
        assert row["summary"]["counts"]["finished"] == 12
        assert row["scores"]["deadlines"] == 6
    assert "mean response" in data["verdict"]


def test_the_same_seed_is_the_same_output(queryard) -> None:
    command = ["compare", *SMALL, "--policy", "fair", "--noise", "0.3", "--json"]
    first, again, other = (queryard(*command, "--seed", seed).out for seed in ("1", "1", "2"))
    assert first == again != other


def test_simulate_writes_what_was_asked_for(queryard, tmp_path: Path) -> None:
    figure, journal = tmp_path / "run.html", tmp_path / "run.jsonl"
    outcome = queryard(
        "simulate",
        *SMALL,
        "--policy",
        "tls",
        "--figure",
        str(figure),
        "--journal",
        str(journal),
        "--slow-start",
        "0.05",
        "--condition",
        "task_start_s=0.5",
    )
    assert outcome.code == 0, outcome.err
    assert "queries finished" in outcome.out
    assert "12 of 12" in outcome.out
    assert "task_start_s 0.5" in outcome.out
    assert figure.stat().st_size > 1000
    with journal.open() as lines:
        assert Journal.from_lines(lines).steps


def test_simulate_by_tenant_and_size(queryard) -> None:
    outcome = queryard("simulate", FIRST, "--policy", "fair")
    assert outcome.code == 0, outcome.err
    for text in ("tenant", "batch", "web"):
        assert text in outcome.out


def test_online_queries_are_judged_by_their_errors(queryard) -> None:
    online = str(EXAMPLES / "online.toml")
    outcome = queryard("compare", online, "--policy", "fair,relaqs")
    assert outcome.code == 0, outcome.err
    assert "−70%" in outcome.out
    assert "relaqs reduces the error of the 7 online queries" in outcome.out
    data = json.loads(queryard("compare", online, "--policy", "fair,relaqs", "--json").out)
    fair, relaqs = (row["scores"] for row in data["policies"])
    assert relaqs["mean_error_cut_s"] < fair["mean_error_cut_s"]
    assert (relaqs["online"], relaqs["queries"]) == (7, 8)


def test_work_under_leases_is_not_counted_in_tasks(queryard) -> None:
    outcome = queryard("simulate", str(EXAMPLES / "online.toml"), "--policy", "fair")
    assert outcome.code == 0, outcome.err
    assert "Simulated 8 queries, all under leases, in " in outcome.out


def test_slots_shared_by_tenant(queryard) -> None:
    command = ["compare", str(EXAMPLES / "tenants.toml"), "--policy", "fifo", "--json"]
    plain, shared = (json.loads(queryard(*command, *more).out) for more in ([], ["--by-tenant"]))
    assert not plain["settings"]["by_tenant"]
    assert shared["settings"]["by_tenant"]
    assert shared["workload"]["tenants"][0] == {
        "name": "web",
        "weight": 2.0,
        "guarantee": 0.25,
        "cap": 1.0,
    }
    # The web no longer waits for the nights, which have half of the slots at most.
    (before,), (after,) = (
        [
            tenant
            for tenant in data["policies"][0]["summary"]["tenants"]
            if tenant["tenant"] == "web"
        ]
        for data in (plain, shared)
    )
    assert after["response_s"]["mean"] < before["response_s"]["mean"] / 5
    assert plain["policies"][0]["scores"]["deadlines_missed"] == 8
    assert shared["policies"][0]["scores"]["deadlines_missed"] == 0


def test_a_run_shared_by_tenant_says_so(queryard) -> None:
    outcome = queryard("simulate", FIRST, "--policy", "fifo", "--by-tenant")
    assert outcome.code == 0, outcome.err
    assert "slots shared by tenant" in outcome.out


def test_profiles_of_the_users_file(queryard, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[profiles.mine]\norder = "fifo"\nsummary = "mine"\n')
    outcome = queryard("compare", FIRST, "--policy", "fair,mine", "--profile", str(file), "--json")
    assert outcome.code == 0, outcome.err
    assert [row["policy"] for row in json.loads(outcome.out)["policies"]] == ["fair", "mine"]


def test_the_profiles_of_the_example(queryard) -> None:
    file = str(EXAMPLES / "profiles.toml")
    outcome = queryard("simulate", FIRST, "--policy", "office", "--profile", file)
    assert outcome.code == 0, outcome.err
    assert "office" in outcome.out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["compare"], "which workload? there is none; give a file, --generate SPEC or --demo"),
        (["compare", FIRST, "--demo"], "are too many"),
        (["compare", "none.toml"], "none.toml: cannot be read (No such file or directory)"),
        (
            ["compare", "--demo", "--policy", "fifoo"],
            "unknown policy 'fifoo'; did you mean 'fifo'?",
        ),
        (["compare", "--demo", "--policy", ""], "--policy: name at least one policy"),
        (["compare", "--demo", "--nodes", "16 by 12"], "cannot read '16 by 12'; write groups"),
        (["compare", "--demo", "--nodes", "1000000000x1"], "more than 100,000 nodes"),
        (["compare", "--generate", "size=3"], "--generate: unknown key 'size'"),
        (["compare", "--demo", "--figure", "x.gif"], "unknown ending '.gif'"),
        (["compare", "--demo", "--figure", "nowhere/x.png"], "there is no folder 'nowhere'"),
        (["compare", "--demo", "--estimates", "magic"], "'magic'"),
        (["compare", "--demo", "--condition", "wind=3"], "unknown condition 'wind'"),
        (["compare", "--demo", "--condition", "noise"], "expected a number, as in noise=0.1"),
        (["simulate", "--demo", "--policy", "fifo,fair"], "`compare` takes several"),
        (["simulate", "--demo", "--journal", "nowhere/x"], "there is no folder"),
        (["policies", "nil"], "unknown policy 'nil'"),
        (["parts", "orders"], "unknown decision 'orders'; did you mean 'order'?"),
    ],
)
def test_mistakes_are_one_clean_line(queryard, args: list[str], message: str) -> None:
    outcome = queryard(*args)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert message in outcome.err


@pytest.mark.parametrize(
    "args", [["compare", "--slow-start", "2", "--demo"], ["compare", "--wrong"], ["no-command"]]
)
def test_wrong_options_are_explained_too(queryard, args: list[str]) -> None:
    outcome = queryard(*args)
    assert outcome.code == 2
    assert outcome.err
    assert "Traceback" not in outcome.err


def test_a_bad_workload_names_line_and_field(queryard, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('[[queries]]\nid = "a"\nmap = { tasks = -1 }\n')
    outcome = queryard("compare", str(file))
    assert outcome.code == 2
    assert f"{file}, line 3, query 'a', map, tasks: expected a whole number" in outcome.err
