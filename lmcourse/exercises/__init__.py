"""Exercises: definition, test cases, checking of answers in isolation, diagnosis of known mistakes, reports.

Read `exercise.py` first, then follow an answer: `checking` → `outcome` (runs it) → `trial` (compares) → `judge` →
`lmcourse.report`.
"""

from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.checking import check, check_exercise, hint
from lmcourse.exercises.compare import EXACT, Tolerance
from lmcourse.exercises.exercise import Exercise, value_exercise
from lmcourse.report import Report

__all__ = [
    "EXACT",
    "Case",
    "Exercise",
    "Report",
    "Tolerance",
    "case",
    "check",
    "check_exercise",
    "edge",
    "hint",
    "script",
    "value_exercise",
]
