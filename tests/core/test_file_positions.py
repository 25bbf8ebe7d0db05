"""The lines of values in TOML and JSON texts."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.positions import Path, json_lines, toml_lines

TOML = '''\
name = "a # no comment"
text = """
[[queries]]
"""

[[nodes]]   # a comment = 1
slots = 4

[[queries]]
id = 'q1'
map.tasks = 3
"map".seconds = 2
list = [
  1,
  { deep = [true, 1979-05-27 07:32:00] }, # here
  "x",
]

[[queries]]
[[queries.jobs]]
name = "a"
[[queries.jobs]]
name = "b"
[queries.jobs.reduce]
tasks = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 1),
        (("text",), 2),
        (("nodes", 0), 6),
        (("nodes", 0, "slots"), 7),
        (("queries", 0), 9),
        (("queries", 0, "id"), 10),
        (("queries", 0, "map", "tasks"), 11),
        (("queries", 0, "map", "seconds"), 12),
        (("queries", 0, "list", 0), 14),
        (("queries", 0, "list", 1, "deep", 1), 15),
        (("queries", 0, "list", 2), 16),
        (("queries", 1), 19),
        (("queries", 1, "jobs", 0), 20),
        (("queries", 1, "jobs", 1, "name"), 23),
        (("queries", 1, "jobs", 1, "reduce"), 24),
        (("queries", 1, "jobs", 1, "reduce", "tasks"), 25),
    ],
)
def test_toml(path: Path, line: int) -> None:
    tomllib.loads(TOML)
    assert toml_lines(TOML)[path] == line


def paths_of(value: object, path: Path = ()) -> set[Path]:
    found = {path}
    if isinstance(value, dict):
        for key, item in value.items():
            found |= paths_of(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            found |= paths_of(item, (*path, i))
    return found


values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(values)
def test_every_json_value_has_a_line(value: object) -> None:
    for indent in (None, 1):
        text = json.dumps(value, indent=indent)
        lines = json_lines(text)
        assert set(lines) == paths_of(value)
        assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


def test_lines_of_json_are_where_the_key_begins() -> None:
    text = '{\n "a":\n  [1,\n   {"b"\n   : 2}]\n}'
    assert json_lines(text) == {
        (): 1,
        ("a",): 2,
        ("a", 0): 3,
        ("a", 1): 4,
        ("a", 1, "b"): 4,
    }
