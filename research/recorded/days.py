"""All main policies and the portfolio on Facebook's recorded days."""

from __future__ import annotations

from research.outcome import Experiment, Outcome, RunOptions, of_seeds, without_traces

from .comparison import CHOSEN_FROM, compare
from .report import outcome
from .workloads import DAY_SHARE, DEADLINES, ESTIMATES, LOADS, days


def run(options: RunOptions) -> Outcome:
    needs = "swim-facebook/"
    cases = days(options) if options.traces is not None else ()
    compared = [compare(case, options.tell) for case in cases]
    if not compared:
        return without_traces(options, needs)
    notes = (
        f"Ran with {of_seeds(options.seeds)}, which draws the deadlines. Unless --seeds asks for "
        f"more it is {EXPERIMENT.usual_seeds}, as a day takes minutes per policy",
        "SWIM recorded bytes only; tasks follow from the block size, their times from rates that "
        "`queryard trace info` shows",
    )
    return outcome(compared, "days", notes)


EXPERIMENT = Experiment(
    "recorded-days",
    "Facebook's days of 2009 and 2010",
    "SWIM: FB-2009 (24 h, 64 MiB blocks), FB-2010 (12 h, 256 MiB blocks)",
    run,
    {
        "cluster": "nodes of 12 slots, so many that the work is "
        f"{LOADS[0]:.0%} or {LOADS[1]:.0%} of what they could do",
        "deadlines": f"{DEADLINES:.0%} of the jobs, time alone x U(1, 3)",
        "estimates": f"{ESTIMATES}: learnt from tasks that have ended",
        "candidates of the portfolio": CHOSEN_FROM,
        "cost of deciding": f"50 µs per simulated launch, and at most {DAY_SHARE:.1%} of a core: "
        "about forty decisions per day, so that a burst seldom brings one forward",
        "size": "1 is all hours; 0.1 the first tenth of them",
    },
    needs_traces=True,
    usual_seeds=1,
)
