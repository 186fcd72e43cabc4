"""What grading a class tells its teacher: one page to read, and four tables to calculate with.

It reads the results of grading. `section` counts those of one assignment: `glance` (the scores), `tallies` (each
exercise), `mistakes` (what goes wrong, and how often), `stops` (where learners get no further) and `doubts` (what
somebody should look at). `page` shows it, `tables` lists it, `writing` puts both into a folder.
"""

from lmcourse.grading.classroom.writing import write_report

__all__ = ["write_report"]
