"""All main policies and the portfolio on recorded workloads."""

from research.outcome import Experiment, Joint

from .days import EXPERIMENT as _DAYS
from .streams import EXPERIMENT as _STREAMS
from .verdict import together

EXPERIMENTS: tuple[Experiment, ...] = (_STREAMS, _DAYS)
JOINTS: tuple[Joint, ...] = (
    Joint(
        "recorded-verdict",
        "The portfolio over all recorded workloads",
        "all runs of recorded-streams and recorded-days",
        tuple(experiment.name for experiment in EXPERIMENTS),
        together,
    ),
)
