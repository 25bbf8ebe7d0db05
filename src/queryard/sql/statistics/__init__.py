"""What is known of tables: from footers at once, from the data by `analyze`, kept with the data."""

from .analyse import NotAllAnalysed, analyze
from .model import (
    ColumnStatistics,
    Histogram,
    StatisticsError,
    TableStatistics,
)
from .positions import position
from .store import StatisticsWarning

__all__ = [
    "ColumnStatistics",
    "Histogram",
    "NotAllAnalysed",
    "StatisticsError",
    "StatisticsWarning",
    "TableStatistics",
    "analyze",
    "position",
]
