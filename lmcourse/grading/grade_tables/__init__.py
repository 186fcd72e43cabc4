"""Grades written into the table that a learning platform gave and imports again.

`table` reads and writes it as it is, `moodle` and `canvas` know where a grade stands in theirs, `filling` fills it in.
"""

from lmcourse.grading.grade_tables.filling import Filled, fill_in, read_sheet

__all__ = ["Filled", "fill_in", "read_sheet"]
