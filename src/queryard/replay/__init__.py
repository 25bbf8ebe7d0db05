"""From the history of a session to a workload, and to a simulation of it."""

from .recorded import Recorded, difference, recorded

__all__ = ["Recorded", "difference", "recorded"]
