"""The kernel and a backend joined in real time: sessions, handles and answers."""

from queryard.results.answer import Answer

from .admission.limits import Refused
from .connecting import connect
from .handle import Handle
from .session import Session

__all__ = ["Answer", "Handle", "Refused", "Session", "connect"]
