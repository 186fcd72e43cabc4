"""The teacher's report on a class: one HTML page and four CSV tables.

It reads the results of grading. A `section` holds what is counted of one assignment: `statistics` (scores and
exercises), `dropoff` (what goes wrong, and where learners get no further), `flags` (what somebody should look at) and
`likeness` (answers that are alike, by their `trees`). `page` shows it, `tables` lists it, `writing` puts both into a
folder.
"""

from lmcourse.grading.class_report.likeness import printed_answers
from lmcourse.grading.class_report.writing import write_report

__all__ = ["printed_answers", "write_report"]
