"""What grading a class tells its teacher: one page to read, and four tables to calculate with.

`record` is what is known of each submission. `section` counts one assignment: `glance` (the scores), `tallies` (each
exercise), `mistakes` (what goes wrong, and how often), `stops` (where learners get no further) and `doubts` (what
somebody should look at). `page` shows it, `tables` lists it, `writing` puts both into a folder.
"""

from lmcourse.grading.classroom.record import Record
from lmcourse.grading.classroom.writing import write_report

__all__ = ["Record", "write_report"]
