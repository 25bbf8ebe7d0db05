"""What a query takes altogether, seen from the middle of it.

A query that has outlived its prediction is not about to end: the longer it has run, the longer it
is expected to. Predictions are off by factors, now and then by large ones, so the work is taken to
be distributed about them log-logistically, half of all queries within the `spread`. Expected is the
median of those that take more than was done by now. A sure prediction is thus left alone until the
query nears its end, and an unsure one is doubted early.

DuckDB's progress counts pipelines as if all were equal, and knows nothing of the operators behind a
scan. On TPC-H (one run each at scales 1 and 5) it was mostly too low: with nine tenths of the work
done, it was 0.30 for Q1, 0.43 for Q13, 0.77 for Q9; only for Q16 it was ever too high by more than
a tenth. So work over progress tells what a query takes at most, and taken as a bound it helps. On
those traces, with predictions drawn at random with spread 1.5, the mean factor of error (geometric)
in the middle of a query falls from 1.44 to 1.31, at 0.7 of it from 1.39 to 1.22; as an estimate of
its own, progress does worse (1.69 and 1.55). Windows are the exception, 0.67 as soon as they begin:
the bound does not go below what a query takes that is far less than was predicted.
"""

from __future__ import annotations

import math

# Below, progress is mostly the first row groups of a small table.
TELLING = 0.05
# A spread of 1 would be certainty.
LEAST_SPREAD = 1.02
# One query in 28 takes less than the prediction over this power of its spread.
FAR = 3


def revised(predicted_s: float, done_s: float, progress: float, spread: float = 1.5) -> float:
    """The total work of a query of which so much was predicted and so much is done.

    >>> [round(revised(10.0, done_s, 0.0), 1) for done_s in (0.0, 2.0, 5.0, 8.0, 10.0, 20.0)]
    [10.0, 10.1, 11.0, 13.1, 15.0, 26.5]
    >>> revised(10.0, 4.0, 0.5), revised(10.0, 4.0, 0.1) == revised(10.0, 4.0, 0.0)
    (8.0, True)
    """
    spread = max(spread, LEAST_SPREAD)
    # Half of those that take longer than t take less than (m^k + 2·t^k)^(1/k).
    power = math.log(3) / math.log(spread)
    larger_s = max(predicted_s, done_s)
    shares = (predicted_s / larger_s) ** power + 2 * (done_s / larger_s) ** power
    expected_s: float = larger_s * shares ** (1 / power)
    if progress >= TELLING:
        expected_s = min(expected_s, max(done_s / progress, predicted_s / spread**FAR))
    return max(expected_s, done_s)
