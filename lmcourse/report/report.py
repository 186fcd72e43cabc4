"""A report in three forms: a score for nbgrader, HTML for notebooks, text for terminals.

The HTML is readable in JupyterLab's light and dark themes and on nbgrader's feedback pages. All texts are escaped,
because names and messages may come from a learner's code. There are no scripts and no external classes; colours are
JupyterLab's variables, with defaults for pages that do not define them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from textwrap import indent as indent_lines
from textwrap import wrap
from typing import Any

from lmcourse.base.text import code_html, prose_html
from lmcourse.report.data import REPORT_MIME, CaseResult, ReportData, code_shown

TEXT = "var(--jp-content-font-color1, #212121)"
FAINT = "var(--jp-content-font-color2, #616161)"
GOOD = "var(--jp-success-color1, #2e7d32)"
BAD = "var(--jp-error-color1, #c62828)"
HINT = "var(--jp-brand-color1, #1565c0)"
COLUMNS = 80

CODE = "font-family: var(--jp-code-font-family, monospace); font-size: 0.92em;"
SMALL = f"color: {FAINT}; font-size: 0.92em;"


def html(report: ReportData) -> str:
    """Return the report as one HTML element: diagnosis, failing cases, passing cases, hints, small print."""
    spoken = f"{report.exercise}: {report.points:g} of {report.max_points} points"
    accent = GOOD if report.passed else BAD if report.answered else FAINT
    failing, more = report.failing()
    parts = [
        *(_row(BAD, "!", f"<b>{with_marks(notice)}</b>") for notice in report.notices),
        *(_row(HINT, "→", with_marks(sentence)) for sentence in report.sentences),
        _table_html(report.table),
        *_failing_html(failing),
        *([_row(BAD, "✗", code_html(more, CODE), "failed")] if more else []),
        *([_row(GOOD, "✓", code_html(report.passing(), CODE), "passed")] if report.passing() else []),
        hints_html(report.hints),
        *(f'<div style="{SMALL}">{with_marks(line)}</div>' for line in report.remarks),
    ]
    return (
        f'<section role="status" aria-label="{escape(spoken, quote=True)}" style="color: {TEXT}; '
        f"border-left: 4px solid {accent}; padding: 0.3em 0 0.3em 0.9em; margin: 0.3em 0; max-width: 52em; "
        f'line-height: 1.5;">{_heading(report, accent)}{"".join(parts)}</section>'
    )


def _heading(report: ReportData, accent: str) -> str:
    done = " · all passed" if report.passed else ""
    return (
        f'<div style="{CODE}"><b>{escape(report.exercise)}</b> &nbsp; '
        f'<b style="color: {accent};">{report.points:g} / {report.max_points}</b> points{done}</div>'
    )


def _row(colour: str, mark: str, content: str, spoken: str = "") -> str:
    label = f' role="img" aria-label="{spoken}"' if spoken else ""
    return (
        f'<div style="padding-left: 1.4em; text-indent: -1.4em;"><b{label} style="color: {colour}; '
        f'display: inline-block; width: 1.4em; text-indent: 0;">{mark}</b>{content}</div>'
    )


def _table_html(table: Sequence[Sequence[str]]) -> str:
    if not table:
        return ""
    cell = "padding: 0.1em 0.8em 0.1em 0; text-align: {};"
    head, *rows = (
        [f'style="{cell.format("right" if place else "left")}">{escape(text)}' for place, text in enumerate(row)]
        for row in table
    )
    lines = ["".join(f'<th scope="col" {one}</th>' for one in head)]
    lines += ["".join((f'<th scope="row" {first}</th>', *(f"<td {one}</td>" for one in rest))) for first, *rest in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="border-collapse: collapse; margin: 0.4em 0;">{body}</table>'


def _failing_html(failing: Sequence[tuple[str, Sequence[CaseResult]]]) -> Iterator[str]:
    """Yield a row for each failing case: its code, what differs, and the expected and received value."""
    codes = code_shown([result for _, results in failing for result in results])
    for name, results in failing:
        details = "".join(_detail(result, *next(codes)) for result in results)
        yield _row(BAD, "✗", code_html(name, CODE) + details, "failed")


def _detail(result: CaseResult, remark: str, code: str) -> str:
    faint = f"text-indent: 0; color: {FAINT};"
    return "".join(
        [
            f'<div style="{faint}">{escape(remark)}</div>' * bool(remark),
            _block(code),
            f'<div style="{faint}">{code_html(result.message, CODE)}</div>' * bool(result.message),
            _block(result.values),
        ]
    )


def _block(lines: str) -> str:
    """Return lines of code, which keep their breaks when they are copied."""
    style = (
        f"{CODE} color: inherit; background: none; border: 0; margin: 0; padding: 0; text-indent: 0; line-height: 1.5;"
    )
    wrap = "white-space: pre-wrap; overflow-wrap: anywhere;"
    return f'<pre style="{style} {wrap}">{escape(lines)}</pre>' if lines else ""


def hints_html(hints: Sequence[str]) -> str:
    """Return hints that unfold one after the other, each inside the one before it."""
    nested = ""
    for number in range(len(hints), 0, -1):
        nested = (
            f'<details style="margin: 0.2em 0;"><summary style="color: {HINT}; cursor: pointer; display: list-item;">'
            f"Hint {number} of {len(hints)}</summary>"
            f'<div style="padding-left: 1.4em;">{with_marks(hints[number - 1])}{nested}</div></details>'
        )
    return nested


def with_marks(text: str) -> str:
    """Return a sentence of the course as escaped HTML: `backticks` become code, *asterisks* become emphasis."""
    return prose_html(text, CODE)


class Report(ReportData):
    """The result of checking one exercise, which Jupyter can display.

    nbgrader reads partial credit from the text of a graded cell's last value, so the `repr` of a report is only the
    number of points. A notebook shows the HTML, and also stores the report as JSON, from which feedback pages are made.
    `str` is for terminals and screen readers.
    """

    def __repr__(self) -> str:
        return f"{self.points:g}"

    def __float__(self) -> float:
        return self.points

    def __str__(self) -> str:
        """Return the report as plain text."""
        return "\n".join(line for text, indent in self._lines() for line in _wrapped(text, indent))

    def _lines(self) -> Iterator[tuple[str, int]]:
        """Yield each paragraph of the text, with the indentation of all lines after its first; of code, -1."""
        done = " · all passed" if self.passed else ""
        yield f"{self.exercise}   {self.points:g} / {self.max_points} points{done}", 4
        yield from ((f"! {notice}", 2) for notice in self.notices)
        yield from ((f"→ {sentence}", 2) for sentence in self.sentences)
        yield from ((line, 0) for line in _table_lines(self.table))
        failing, more = self.failing()
        codes = code_shown([result for _, results in failing for result in results])
        for name, results in failing:
            yield f"✗ {name}", 2
            for result in results:
                remark, code = next(codes)
                parts = (remark, 4), (code, -1), (result.message, 4), (result.values, -1)
                yield from ((indent_lines(text, "    "), indent) for text, indent in parts if text)
        if more:
            yield f"✗ {more}", 2
        if passing := self.passing():
            yield f"✓ {passing}", 2
        if self.hints:
            yield "· `hint()` gives a nudge.", 2
        yield from ((f"· {remark}", 2) for remark in self.remarks)

    def _repr_html_(self) -> str:
        return html(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {REPORT_MIME: self.to_json()}


def _table_lines(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  " + "  ".join(text.rjust(width) if place else text.ljust(width) for place, (text, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in table)
    ]


def _wrapped(text: str, indent: int) -> list[str]:
    if indent < 0:
        return text.splitlines()
    return wrap(text, COLUMNS, subsequent_indent=" " * indent, break_on_hyphens=False, drop_whitespace=True)
