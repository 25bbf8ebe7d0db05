"""What is known of tables: from footers at once, from the data by `analyze`, kept with the data.

Some of their rows are kept, too, as samples on which conditions are judged (`Catalog.judge`).
"""

from .analyse import NotAllAnalysed, analyze
from .judge import Judge, Share
from .model import (
    ColumnStatistics,
    Histogram,
    StatisticsError,
    TableStatistics,
)
from .positions import position
from .quick import quick_statistics, sample_table
from .samples import TableSample
from .store import StatisticsWarning

__all__ = [
    "ColumnStatistics",
    "Histogram",
    "Judge",
    "NotAllAnalysed",
    "Share",
    "StatisticsError",
    "StatisticsWarning",
    "TableSample",
    "TableStatistics",
    "analyze",
    "position",
    "quick_statistics",
    "sample_table",
]
