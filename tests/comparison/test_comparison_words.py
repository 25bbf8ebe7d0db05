"""Scores, tables and sentences, without running anything."""

import re
from dataclasses import replace

import pytest
from rich.console import Console

from queryard.comparison.scores import Scores, scores_of_reference
from queryard.comparison.table import comparison_table
from queryard.comparison.verdict import verdict
from queryard.core.model import Job, Phase, Query
from queryard.workload import Arrival, JobTruth, Workload

FIFO = Scores("fifo", 100.0, 300.0, 5.0, 20.0, 7, 10, 1000.0, 0.8, 0.5)
TLS = Scores("tls", 61.0, 310.0, 2.0, 9.0, 4, 10, 1000.0, 0.8, 0.7)
PS = Scores("ideal PS", 55.0, 200.0, 2.0, 5.0, 3, 10, 990.0, 0.85, 0.8)


def quiet(row: Scores) -> Scores:
    return replace(row, deadlines_missed=None, deadlines=0, queries=9)


def online(row: Scores, queries: int, cut_s: float) -> Scores:
    """So many of its nine queries are online."""
    return replace(quiet(row), online=queries, mean_error_cut_s=cut_s)


def shown(*rows: Scores, references: tuple[Scores, ...] = (), width: int = 80) -> str:
    console = Console(width=width, force_terminal=True, color_system="standard", no_color=False)
    with console.capture() as capture:
        console.print(comparison_table("title [x]", rows, references))
    return capture.get()


def test_the_best_of_a_column_stands_out() -> None:
    text = shown(FIFO, TLS, references=(PS,))
    assert "title [x]" in text
    best = re.findall(r"\x1b\[1;32m\s*([\d.,]+)", text)
    # No ideal, for it is no policy, and no column in which all are alike.
    assert best == ["300", "61.0", "2.00", "9.00", "4", "0.700"]


def test_the_table_fits_into_80_characters() -> None:
    long = replace(FIFO, name="tls-circular-htumm", mean_response_s=12345.0, makespan_s=99999.0)
    srpt = replace(PS, name="clairvoyant SRPT")
    full = replace(FIFO, name="tls-circular-htumm", mean_error_cut_s=502.0, utilisation=1.0)
    plain = Console(width=80)
    with plain.capture() as capture:
        plain.print(comparison_table("t", [long, TLS], [srpt]))
    assert "…" not in capture.get()
    for text in ("tls-circular-htumm", "clairvoyant SRPT", "12,345", "99,999", "80.0"):
        assert text in capture.get()

    with plain.capture() as capture:
        plain.print(comparison_table("t", [full, TLS], [srpt]))
    assert "tls-circular-htumm    100    300   5.00   20.0    502     7  1,000  100.0  0.500\n" in (
        capture.get()
    )


def test_columns_without_numbers_are_left_out() -> None:
    plain = replace(FIFO, deadlines_missed=None, deadlines=0)
    assert "late" in shown(FIFO)
    assert "late" not in shown(plain)
    assert "−70%" not in shown(FIFO)
    assert "−70%" in shown(replace(FIFO, mean_error_cut_s=9.0))


@pytest.mark.parametrize(
    ("rows", "references", "sentence"),
    [
        (
            [FIFO, TLS],
            [PS],
            "tls has the lowest mean response: 61.0 s, 0.61 of fifo (ideal PS 55.0 s). "
            "tls misses the fewest deadlines: 4 of 10; fifo the most: 7.",
        ),
        (
            [replace(FIFO, mean_response_s=50.0), TLS],
            [],
            "fifo has the lowest mean response: 50.0 s, 0.82 of tls. "
            "tls misses the fewest deadlines: 4 of 10; fifo the most: 7.",
        ),
        ([TLS], [], "tls answers in 61.0 s on average. It misses 4 of 10 deadlines."),
        (
            [FIFO, TLS, replace(TLS, name="edf", mean_response_s=70.0)],
            [],
            "tls has the lowest mean response: 61.0 s, 0.61 of fifo. "
            "tls and edf miss the fewest deadlines: 4 of 10; fifo the most: 7.",
        ),
        (
            [TLS, replace(TLS, name="edf"), replace(FIFO, deadlines_missed=4)],
            [],
            "tls and edf have the lowest mean response: 61.0 s, 0.61 of fifo. "
            "All miss 4 of 10 deadlines.",
        ),
        (
            [TLS, replace(TLS, name="edf")],
            [],
            "All answer in 61.0 s on average. All miss 4 of 10 deadlines.",
        ),
        (
            [replace(TLS, deadlines_missed=None, unfinished=2)],
            [],
            "tls answers in 61.0 s on average. Queries without a result: tls 2.",
        ),
        (
            [replace(TLS, mean_response_s=None, deadlines_missed=None)],
            [],
            "No query gave a result.",
        ),
        (
            [online(FIFO, 8, 80.0), online(TLS, 8, 20.0)],
            [],
            "tls has the lowest mean response: 61.0 s, 0.61 of fifo. tls reduces the error of the "
            "8 online queries by 70% soonest: in 20.0 s, 0.25 of fifo.",
        ),
        # Where all are online, the exact answers do not count.
        (
            [online(FIFO, 9, 80.0), online(TLS, 9, 20.0)],
            [PS],
            "tls reduces the error of the 9 online queries by 70% soonest: in 20.0 s, 0.25 of "
            "fifo.",
        ),
        (
            [online(FIFO, 9, 20.0), online(TLS, 9, 20.0)],
            [],
            "All reduce the error of the 9 online queries by 70% in 20.0 s on average.",
        ),
        (
            [online(TLS, 9, 20.0)],
            [],
            "tls reduces the error of the 9 online queries by 70% in 20.0 s on average.",
        ),
        (
            [quiet(FIFO), replace(quiet(TLS), mean_response_s=40.0, scan_bytes_saved=1e9)],
            [PS],
            "tls has the lowest mean response: 40.0 s, 0.40 of fifo (ideal PS 55.0 s). tls is "
            "ahead of ideal PS, which shares no scans.",
        ),
        (
            [quiet(FIFO), replace(quiet(TLS), mean_response_s=40.0)],
            [PS],
            "tls has the lowest mean response: 40.0 s, 0.40 of fifo (ideal PS 55.0 s).",
        ),
    ],
)
def test_verdict(rows: list[Scores], references: list[Scores], sentence: str) -> None:
    assert verdict(rows, references) == sentence


def test_scores_of_a_reference_by_hand() -> None:
    def arrival(name: str, submit_s: float, deadline_s: float | None) -> Arrival:
        job = Job("j", map=Phase(10))
        query = Query(name, (job,), submit_s=submit_s, deadline_s=deadline_s)
        return Arrival(query, {"j": JobTruth(map_s=1.0)})

    workload = Workload("w", (arrival("a", 0, 9.0), arrival("b", 5, 9.0), arrival("c", 5, None)))
    scores = scores_of_reference(
        "ideal", {"a": 4.0, "b": 5.0, "c": 15.0}, workload, {"a": 4.0, "b": 2.5, "c": 5.0}, 2
    )
    assert scores.mean_response_s == 8
    assert (scores.mean_slowdown, scores.max_slowdown) == (2, 3)
    assert (scores.deadlines_missed, scores.deadlines) == (1, 2)
    assert scores.makespan_s == 20
    assert scores.utilisation == 30 / 40
    assert scores.fairness == pytest.approx(36 / (3 * (1 + 4 + 9)))
