"""The teacher's report on a class: one HTML page and four CSV tables.

It reads the results of grading. A `section` holds what is counted of one assignment: `statistics` (scores and
exercises), `dropoff` (what goes wrong, and where learners get no further) and `flags` (what somebody should look at).
`page` shows it, `tables` lists it, `writing` puts both into a folder.
"""

from lmcourse.grading.class_report.writing import write_report

__all__ = ["write_report"]
