"""What happened, kept: an append-only store in one SQLite file beside the data.

`History` records a session without ever making it wait; `HistoryReader` reads any number of
sessions, also while they are being recorded.
"""

from .errors import HistoryError, HistoryWarning
from .overviews import Overviews
from .places import file_to_read, file_to_write
from .reading import HistoryReader
from .retention import Retention
from .rows import (
    AskedRow,
    CostRow,
    DoneRow,
    DoneState,
    EndedRow,
    ForecastRow,
    HeldRow,
    LearntRow,
    PastRow,
    QueryRecord,
    SessionRecord,
    SessionRow,
)
from .store import History, Steps

__all__ = [
    "AskedRow",
    "CostRow",
    "DoneRow",
    "DoneState",
    "EndedRow",
    "ForecastRow",
    "HeldRow",
    "History",
    "HistoryError",
    "HistoryReader",
    "HistoryWarning",
    "LearntRow",
    "Overviews",
    "PastRow",
    "QueryRecord",
    "Retention",
    "SessionRecord",
    "SessionRow",
    "Steps",
    "file_to_read",
    "file_to_write",
]
