"""The report of a check: data, text and HTML.

This package does not load torch, so programs that only read reports (progress, welcome page, grading) start fast.
"""

from lmcourse.report.data import CHECK_PREFIX, REPORT_MIME, CaseResult, check_id, exercise_of, stand_in_sentence
from lmcourse.report.report import Report

__all__ = ["CHECK_PREFIX", "REPORT_MIME", "CaseResult", "Report", "check_id", "exercise_of", "stand_in_sentence"]
