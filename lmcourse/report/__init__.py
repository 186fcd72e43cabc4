"""The report of a check: data, text and HTML.

Nothing here loads torch: whoever only reads reports (progress, the welcome page, grading) answers at once.
"""

from lmcourse.report.data import CHECK_PREFIX, REPORT_MIME, CaseResult, check_id, stand_in_sentence
from lmcourse.report.report import Report

__all__ = ["CHECK_PREFIX", "REPORT_MIME", "CaseResult", "Report", "check_id", "stand_in_sentence"]
