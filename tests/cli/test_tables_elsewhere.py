"""Commands on locations that are not on this machine: an error and its remedy, no traceback."""

from __future__ import annotations

import pytest

from queryard.cli.app import main

COMMANDS = [
    ["tables"],
    ["tables", "x"],
    ["analyze"],
    ["sql", "SELECT * FROM x"],
    ["explain", "SELECT * FROM x"],
    ["shell"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_a_table_at_a_web_address_needs_packages(command, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "aiohttp", None)
    with pytest.raises(SystemExit) as ended:
        main([*command, "--table", "x=http://localhost:1/x.csv"])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert "table x: http://localhost:1/x.csv" in told
    assert "aiohttp" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_a_web_address_is_no_catalog(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command, "--data", "https://example.com/data"])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert "copy the data here" in told
    assert "--table name=https://example.com/data" in told


def test_a_bad_entry_of_a_catalog_file_is_listed_with_its_reason(tmp_path, capsys):
    (tmp_path / "good.csv").write_text("a\n1\n")
    (tmp_path / "c.toml").write_text('[tables]\ngood = "good.csv"\nbad = "none.csv"\n')
    with pytest.raises(SystemExit) as ended:
        main(["tables", "--data", str(tmp_path / "c.toml")])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "good" in out
    assert "passed over: bad, which cannot be used: table bad: " in out
