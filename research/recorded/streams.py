"""All main policies and the portfolio on streams of queries from Spark logs and TPC-H stages."""

from __future__ import annotations

from research.outcome import Experiment, Outcome, RunOptions, without_traces

from .comparison import CHOSEN_FROM, compare
from .report import outcome
from .workloads import DEADLINES, ESTIMATES, LOADS, STREAM_SHARE, STREAMS, streams


def run(options: RunOptions) -> Outcome:
    needs = "spark-eventlogs/ or decima-tpch/"
    cases = streams(options) if options.traces is not None else ()
    compared = [compare(case, options.tell) for case in cases]
    if not compared:
        return without_traces(options, needs)
    return outcome(compared, "streams")


_QUERIES = " and ".join(f"{queries} of {name}'s" for name, (queries, _) in STREAMS.items())
EXPERIMENT = Experiment(
    "recorded-streams",
    "Recorded queries of Spark and TPC-H, drawn as a stream",
    "public Spark event logs; Decima's TPC-H stages",
    run,
    {
        "arrivals": f"Poisson, {_QUERIES} queries drawn from all that were recorded, at "
        f"loads of {LOADS[0]:.0%} and {LOADS[1]:.0%} on 50 slots; Decima's, which take 25 times as "
        f"long to simulate, with {STREAMS['Decima'][1]:.0%} of the seeds",
        "deadlines": f"{DEADLINES:.0%} of the queries, time alone x U(1, 3)",
        "estimates": f"{ESTIMATES}: learnt from tasks that have ended",
        "candidates of the portfolio": CHOSEN_FROM,
        "cost of deciding": f"50 µs per simulated launch, and at most {STREAM_SHARE:.0%} of a core",
    },
    needs_traces=True,
)
