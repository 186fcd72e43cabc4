"""A report with its displays: a score for nbgrader, HTML for notebooks, text for terminals.

The HTML reads well in Lab's light and dark themes and in nbgrader's feedback pages. Every text is escaped: names and
messages may come from a learner's code. No script, no class from outside: colours are Lab's own variables with a
fallback for pages that do not define them.
"""

from __future__ import annotations

from html import escape
from typing import Any

from lmcourse.report.data import REPORT_MIME, CaseResult, ReportData, failing_shown
from lmcourse.text import code_html, prose_html

TEXT = "var(--jp-content-font-color1, #212121)"
FAINT = "var(--jp-content-font-color2, #616161)"
GOOD = "var(--jp-success-color1, #2e7d32)"
BAD = "var(--jp-error-color1, #c62828)"
HINT = "var(--jp-brand-color1, #1565c0)"
CODE = "font-family: var(--jp-code-font-family, monospace); font-size: 0.92em;"


def html(report: ReportData) -> str:
    """The report as one HTML element."""
    accent = GOOD if report.passed else BAD if report.answered else FAINT
    rows = "".join(_row(*group) for group in report.rows())
    return (
        f'<section role="status" aria-label="{escape(_spoken(report), quote=True)}" style="color: {TEXT}; '
        f"border-left: 4px solid {accent}; padding: 0.3em 0 0.3em 0.9em; margin: 0.3em 0; max-width: 52em; "
        f'line-height: 1.5;">{_heading(report, accent)}{rows}{_diagnosis(report)}{_small_print(report)}</section>'
    )


def _spoken(report: ReportData) -> str:
    return f"{report.exercise}: {report.points:g} of {report.max_points} points"


def _heading(report: ReportData, accent: str) -> str:
    done = " · all passed" if report.passed else ""
    return (
        f'<div style="{CODE}"><b>{escape(report.exercise)}</b> &nbsp; '
        f'<b style="color: {accent};">{report.points:g} / {report.max_points}</b> points{done}</div>'
    )


def _row(name: str, passed: bool, results: list[CaseResult]) -> str:
    mark, colour, spoken = ("✓", GOOD, "passed") if passed else ("✗", BAD, "failed")
    failing, more = failing_shown(results)
    details = "".join(map(_detail, failing)) + (
        f'<div style="text-indent: 0; color: {FAINT};">{more}</div>' if more else ""
    )
    return (
        f'<div style="padding-left: 1.4em; text-indent: -1.4em;"><span role="img" aria-label="{spoken}" '
        f'style="color: {colour}; display: inline-block; width: 1.4em; text-indent: 0;">{mark}</span>'
        f"{escape(name)}{details}</div>"
    )


def _detail(result: CaseResult) -> str:
    call = (
        f'<div style="{CODE} text-indent: 0; overflow-wrap: anywhere;">{escape(result.call)}</div>'
        if result.call
        else ""
    )
    text = (
        f'<div style="text-indent: 0; color: {FAINT};">{code_html(result.message, CODE)}</div>'
        if result.message
        else ""
    )
    return call + text


def _diagnosis(report: ReportData) -> str:
    if not report.diagnosis:
        return ""
    return f'<div style="margin-top: 0.4em;"><b style="color: {HINT};">→</b> {with_marks(report.diagnosis)}</div>'


def _small_print(report: ReportData) -> str:
    lines = [*report.remarks, *([report.closing] if report.closing else [])]
    return "".join(f'<div style="color: {FAINT}; font-size: 0.92em;">{with_marks(line)}</div>' for line in lines)


def with_marks(text: str) -> str:
    """A sentence of the course's own, escaped: `backticks` become code, *asterisks* emphasis."""
    return prose_html(text, CODE)


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
