"""A report with its displays: a score for nbgrader, HTML for notebooks, text for terminals."""

from __future__ import annotations

from typing import Any

from lmcourse.report.data import REPORT_MIME, ReportData, failing_shown
from lmcourse.report.html import html


class Report(ReportData):
    """The result of checking one exercise, which shows itself.

    nbgrader takes partial credit from the text of a graded cell's last value, so the `repr` of a report is the bare
    number of points. A notebook shows its HTML; the same facts travel along as JSON, from which feedback is drawn
    afresh. `str` is for terminals and screen readers.
    """

    def __repr__(self) -> str:
        return f"{self.points:g}"

    def __float__(self) -> float:
        return self.points

    def __str__(self) -> str:
        """The report as plain text."""
        lines = [f"{self.exercise}   {self.points:g} / {self.max_points} points"]
        for name, passed, results in self.rows():
            lines.append(f"{'✓' if passed else '✗'} {name}")
            failing, more = failing_shown(results)
            texts = [text for result in failing for text in (result.call, result.message)]
            lines += [f"    {text}" for text in [*texts, more] if text]
        if self.diagnosis:
            lines.append(f"→ {self.diagnosis}")
        lines += [f"· {remark}" for remark in self.remarks]
        if self.closing:
            lines.append(self.closing)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {REPORT_MIME: self.to_json()}
