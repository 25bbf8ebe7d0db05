"""From the history of a session, or of a span of time, to a workload and a simulation of it."""

from .recorded import Recorded, difference, recorded
from .window import Window, window

__all__ = ["Recorded", "Window", "difference", "recorded", "window"]
