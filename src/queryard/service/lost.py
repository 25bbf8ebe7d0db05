"""What a server that was killed has left: queries without an end."""

from __future__ import annotations

from pathlib import Path

from queryard.history import HistoryError, HistoryReader, QueryRecord, file_to_read
from queryard.history.places import beside


def lost_queries(place: Path) -> list[QueryRecord]:
    """Queries of the last session on some data, if its process ended before they did."""
    file = file_to_read(beside(place))
    if file is None:
        return []
    try:
        with HistoryReader(file) as reader:
            sessions = reader.sessions()
            if not sessions or not sessions[-1].lost:
                return []
            return reader.queries(session=sessions[-1].session, outcomes=["lost"])
    except HistoryError:  # the session itself says what is wrong with it
        return []
