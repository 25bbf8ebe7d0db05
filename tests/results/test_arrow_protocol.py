"""Answers as other libraries read them: by Arrow's PyCapsule interface."""

from __future__ import annotations

import pandas
import polars
import pyarrow as pa
import pytest

import queryard
from queryard.core.errors import QueryardError

ENDLESS = "SELECT range AS n, 'some text of a row' AS t FROM range(1000000000000)"


@pytest.fixture(scope="module")
def qy():
    with queryard.connect(slots=2, memory="512MB") as session:
        yield session


def test_other_libraries_read_an_answer_with_its_names(qy) -> None:
    sql = "SELECT range AS n, 'text ' || range AS words FROM range(5000)"
    expected = qy.sql(sql).arrow()
    frame = polars.DataFrame(qy.sql(sql))
    assert frame.columns == ["n", "words"]
    assert frame["n"].to_list() == list(range(5000))
    assert pa.table(qy.sql(sql)).equals(expected)
    assert pa.RecordBatchReader.from_stream(qy.sql(sql)).read_all().equals(expected)
    assert pa.schema(qy.sql(sql)) == expected.schema
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert list(pandas.DataFrame.from_arrow(qy.sql(sql)).columns) == ["n", "words"]
    frames = {"frame": qy.sql(sql)}
    with queryard.connect(tables=frames, slots=1, memory="512MB") as other:
        assert other.sql("SELECT max(n) FROM frame").fetchall() == [(4999,)]


def test_other_libraries_read_an_endless_answer_as_it_comes(qy) -> None:
    reader = pa.RecordBatchReader.from_stream(qy.sql(ENDLESS))
    assert reader.read_next_batch().num_rows > 0
    assert reader.schema.names == ["n", "t"]
    reader.close()


def test_collected_rows_are_read_as_often_as_wanted_and_others_once(qy) -> None:
    answer = qy.sql("SELECT range AS n FROM range(3)")
    assert pa.table(answer).num_rows == 3
    with pytest.raises(QueryardError, match="handed over already"):
        pa.table(answer)
    kept = qy.sql("SELECT range AS n FROM range(3)")
    kept.fetchall()
    assert [polars.DataFrame(kept).height for _ in range(2)] == [3, 3]


def test_an_error_in_the_middle_reaches_other_libraries(qy) -> None:
    answer = qy.sql("SELECT CAST(if(range = 5000000, 'x', '1') AS INTEGER) FROM range(6000000)")
    with pytest.raises(Exception, match="Conversion Error"):
        pa.table(answer)
