"""The simulator: the same kernel, driven through a hidden truth."""

from .conditions import Conditions
from .forecast import Forecast, Forecasts, Limit, forecast
from .replay import replay
from .run import SimResult, alone_times, build, simulate

# Its name before.
Run = SimResult

__all__ = [
    "Conditions",
    "Forecast",
    "Forecasts",
    "Limit",
    "Run",
    "SimResult",
    "alone_times",
    "build",
    "forecast",
    "replay",
    "simulate",
]
