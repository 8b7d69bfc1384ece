"""Tables as CSV: UTF-8, units in the header, dot decimals, blank for what is unknown.

Several tables stand one below the other under a header that has the columns of all: `table` says which a row is of.
"""

from __future__ import annotations

from gpufit.report.formats.csv import lines
from gpufit.report.tabular import TabularReport

BINARY = False


def render_tables(report: TabularReport) -> bytes:
    """Every row of every table, the question in front of each."""
    asked = [heading.key for heading in report.question.headings]
    (question,) = report.question.by_key
    named = ["table"] if len(report.tables) > 1 else []
    keys = list(dict.fromkeys(heading.key for table in report.tables for heading in table.headings))
    rows = [
        [
            *(question[key].value for key in asked),
            *(table.name for _ in named),
            *(row[key].value if key in row else None for key in keys),
        ]
        for table in report.tables
        for row in table.by_key
    ]
    return lines([*asked, *named, *keys], rows)
