"""A page of feedback over any outputs: nothing in it runs, reaches out, or tells a hidden test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st
from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode, from_dict, validate
from traitlets.config import Config

from lmcourse.exercises import Report
from lmcourse.grading.cells import new_code_cell, new_markdown_cell, new_notebook, new_output
from lmcourse.grading.config import configure
from lmcourse.grading.pages import display, html
from lmcourse.grading.pages.display import CleanForDisplay
from lmcourse.grading.pages.hide_tests import HideTests, without_hidden
from lmcourse.grading.pages.html import clean_html
from lmcourse.grading.reports import REPORT_FIELDS, read_report
from lmcourse.report import REPORT_MIME
from tests.grading.strange import ANYTHING
from tests.grading.tiny_course import graded_cell

ATTACKS = (
    "<script>owned</script>",
    "<img src=x onerror=owned>",
    "<img src=https://owned.example/x.png>",
    "<svg onload=owned><script>owned</script></svg>",
    "<a href='javascript:owned'>x</a>",
    "<a href='data:text/html,owned'>x</a>",
    "<a href='&#106;ava\tscript:owned'>x</a>",
    "<iframe srcdoc='<script>owned</script>'></iframe>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=owned&gt;'>",
    "<noscript><p title='</noscript><img src=x onerror=owned>'>",
    "<div style='background:url(https://owned.example)'>x</div>",
    "<style>@import 'https://owned.example';</style>",
    "<form action=https://owned.example><button>owned</button></form>",
    "<meta http-equiv=refresh content='0;url=https://owned.example'>",
    "<link rel=stylesheet href=https://owned.example>",
    "<base href=https://owned.example>",
    "</pre></div><script>owned</script>",
    "]]>--><script>owned</script>",
    '"><script>owned</script>',
    "' onmouseover=owned x='",
    "[x](javascript:owned)",
    "![x](https://owned.example/x.png)",
    '![x](x.png"onerror="owned)',
    "![x](attachment:x.png)",
    "<javascript:owned>",
    "```html\n<script>owned</script>\n```",
    "$<script>owned</script>$",
    "\\begin{x}<script>owned</script>\\end{x}",
    "\x1b[31m<script>owned</script>\x1b[0m",
    "\x1b]8;;javascript:owned\x1b\\x\x1b]8;;\x1b\\",
    "{{ owned }}{% owned %}",
    "\ud800<script>owned</script>",
)

TEXTS = st.lists(st.sampled_from(ATTACKS) | st.text(max_size=5), min_size=1, max_size=3).map("".join)
VALUES = TEXTS | ANYTHING
MIMES = st.sampled_from(
    [
        "text/plain",
        "text/html",
        "text/markdown",
        "text/latex",
        "image/png",
        "image/jpeg",
        "image/svg+xml",
        "application/javascript",
        "application/vnd.jupyter.widget-view+json",
        "application/pdf",
        REPORT_MIME,
    ]
)
FORGED = st.fixed_dictionaries(
    {
        "exercise": TEXTS | ANYTHING,
        "points": st.floats() | st.integers(),
        "max_points": st.integers(),
        "hidden": st.booleans(),
        "cases": st.lists(
            st.fixed_dictionaries(
                {
                    "name": TEXTS,
                    "passed": st.booleans(),
                    "message": TEXTS,
                    "call": TEXTS,
                    "hidden": st.booleans(),
                }
            ),
            max_size=2,
        ),
        "diagnosis": TEXTS,
        "notes": st.lists(TEXTS, max_size=2),
        "to_come": st.lists(TEXTS, max_size=2),
        "answered": st.booleans(),
    }
)
DATA = st.dictionaries(MIMES, VALUES, max_size=4) | st.fixed_dictionaries({REPORT_MIME: FORGED, "text/html": TEXTS})
OUTPUTS = st.fixed_dictionaries(
    {"output_type": st.sampled_from(["stream", "error", "display_data", "execute_result", "pyout"]) | ANYTHING},
    optional={
        "name": VALUES,
        "text": VALUES,
        "ename": VALUES,
        "evalue": VALUES,
        "traceback": st.lists(TEXTS, max_size=3) | ANYTHING,
        "data": DATA | ANYTHING,
        "metadata": st.dictionaries(MIMES, st.dictionaries(st.sampled_from(["alt", "width", "height"]), VALUES)),
        "execution_count": VALUES,
    },
)
METADATA = st.dictionaries(st.sampled_from(["tags", "name", "jupyter", "nbgrader", "slideshow"]), VALUES, max_size=2)
ATTACHED = st.dictionaries(TEXTS | st.just("x.png"), st.dictionaries(MIMES, VALUES, max_size=2), max_size=2)
CELLS = st.one_of(
    st.fixed_dictionaries(
        {"cell_type": st.just("code"), "source": TEXTS, "outputs": st.lists(OUTPUTS, max_size=4), "metadata": METADATA},
        optional={"execution_count": VALUES},
    ),
    st.fixed_dictionaries(
        {"cell_type": st.sampled_from(["markdown", "raw"]), "source": TEXTS, "metadata": METADATA},
        optional={"attachments": ATTACHED | ANYTHING},
    ),
)


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> HTMLExporter:
    """As nbgrader draws feedback, but for marks and comments."""
    config = Config()
    configure(config, tmp_path_factory.mktemp("course"))
    made = HTMLExporter(config=config)
    made.register_preprocessor(HideTests(config=config), enabled=True)
    made.register_preprocessor(CSSHTMLHeaderPreprocessor(config=config), enabled=True)
    return made


def page(exporter: HTMLExporter, *cells: Any) -> str:
    """The page of a notebook that need not even be valid; nbconvert would stop at that before it is cleaned."""
    notebook = from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)})
    cleaned, _ = CleanForDisplay().preprocess(notebook, {})
    validate(cleaned)
    drawn, _ = exporter.from_notebook_node(cleaned, resources={})
    drawn.encode()  # it is written as UTF-8
    return drawn


def attacks_in(text: str) -> list[str]:
    """What a browser would run, fetch or send on a page: no attack may be more than text."""
    soup = BeautifulSoup(text, "html.parser")
    found = [str(tag) for tag in soup.find_all(["svg", "iframe", "object", "embed", "base", "form", "math", "button"])]
    found += [str(tag) for tag in soup.find_all(["script", "style", "link", "meta"]) if "owned" in str(tag)]
    for tag in soup.find_all(True):
        for name, value in tag.attrs.items():
            link = re.sub(r"[\x00-\x20]", "", str(value)).lower()
            outside = name in ("src", "href", "action", "srcset", "poster", "background") and "owned" in link
            kept = name == "href" and tag.name == "a" and link.startswith(("http:", "https:", "mailto:", "#"))
            loud = name.startswith("on") and "owned" in link
            styled = name == "style" and "owned" in link
            found += [f"{tag.name} {name}={value}"] if (outside and not kept) or loud or styled else []
    return found


@settings(max_examples=60, deadline=None)
@given(cells=st.lists(CELLS, min_size=1, max_size=4))
def test_no_output_runs_or_reaches_out(exporter: HTMLExporter, cells: Any) -> None:
    assert attacks_in(page(exporter, *cells)) == []


def test_every_attack_in_every_place(exporter: HTMLExporter) -> None:
    cells: list[Any] = []
    for attack in ATTACKS:
        data = dict.fromkeys(("text/plain", "text/html", "text/markdown", "text/latex", "image/png"), attack)
        alone = [{"output_type": "display_data", "data": {mime: attack}, "metadata": {}} for mime in data]
        error = {"output_type": "error", "ename": attack, "evalue": attack, "traceback": [attack]}
        stream = {"output_type": "stream", "name": attack, "text": attack}
        result = {"output_type": "execute_result", "data": data, "metadata": {"image/png": {"alt": attack}}}
        outputs = [*alone, error, stream, result]
        cells.append({"cell_type": "code", "source": attack, "metadata": {"tags": [attack]}, "outputs": outputs})
        cells += [{"cell_type": kind, "source": attack, "metadata": {}} for kind in ("markdown", "raw")]
    assert attacks_in(page(exporter, *cells)) == []


def test_the_search_for_attacks_finds_them() -> None:
    """Of those above which are HTML; the others are Markdown, or break out of something."""
    pages = [attack for attack in ATTACKS if attack.startswith("<") and "title" not in attack]
    assert [attack for attack in pages if not attacks_in(attack)] == ["<javascript:owned>"]


@settings(max_examples=100, deadline=None)
@given(data=FORGED | ANYTHING | st.fixed_dictionaries(dict.fromkeys(REPORT_FIELDS, ANYTHING)))
def test_a_forged_report_is_a_report_or_none(data: Any) -> None:
    report = read_report(data)
    if report is not None:
        assert isinstance(report, Report)
        assert 0 <= float(repr(report)) <= report.max_points + 0.5
        assert attacks_in(report._repr_html_()) == []
        assert all(case.message == case.call == "" for case in report.cases if case.hidden)
        (str(report) + report._repr_html_()).encode()


SECRET = "SECRET = 4711"
HIDDEN = f"check(one)\n### BEGIN HIDDEN TESTS\n{SECRET}\ncheck(one, hidden=True)\n### END HIDDEN TESTS"
ERRORS = st.sampled_from(["NameError", "NoScore", "NotRun", "CourseError", "ValueError", SECRET, f"x\n{SECRET}"])
SAYS = st.sampled_from(
    [
        SECRET,
        f"name 'one' is not defined. {SECRET}",
        f"name '{SECRET}' is not defined",
        f"name 'x' is not defined\n{SECRET}",
        f"the cell said {HIDDEN}",
    ]
)
RESULTS = st.sampled_from([SECRET, f"1 {SECRET}", HIDDEN, "1.0"])
LEAKS = st.one_of(
    st.builds(lambda text: {"output_type": "stream", "name": "stdout", "text": text}, SAYS),
    st.builds(
        lambda name, says: {"output_type": "error", "ename": name, "evalue": says, "traceback": [says]}, ERRORS, SAYS
    ),
    st.builds(
        lambda text, rich: {"output_type": "execute_result", "metadata": {}, "data": {"text/plain": text, rich: text}},
        RESULTS,
        MIMES,
    ),
)


@settings(max_examples=40, deadline=None)
@given(outputs=st.lists(LEAKS, max_size=3))
def test_no_output_of_a_graded_cell_tells_what_is_hidden(exporter: HTMLExporter, outputs: Any) -> None:
    cell = {"cell_type": "code", "source": HIDDEN, "outputs": outputs, "metadata": graded_cell("one").metadata}
    drawn = BeautifulSoup(page(exporter, cell), "html.parser").text
    assert "4711" not in drawn
    assert "hidden=True" not in drawn
    assert "check(one)" in drawn


def test_an_undefined_name_is_told_and_nothing_after_it() -> None:
    cell = new_code_cell(HIDDEN, metadata=graded_cell("one").metadata)
    says = "name 'one' is not defined. Did you mean: 'eins'?"
    cell.outputs = [new_output("error", ename="NameError", evalue=says, traceback=[])]
    nb, _ = HideTests().preprocess(new_notebook(cells=[cell]), {})
    assert nb.cells[0].outputs[0].text == "NameError: name 'one' is not defined"


def shown(*outputs: NotebookNode) -> list[NotebookNode]:
    nb, _ = CleanForDisplay().preprocess(new_notebook(cells=[new_code_cell(outputs=list(outputs))]), {})
    return nb.cells[0].outputs


def rich(text: str, mime: str = "text/html", **more: str) -> NotebookNode:
    return new_output("display_data", data={mime: text} | more)


def test_a_page_has_room_for_so_much() -> None:
    assert len(shown(*[rich("<b>x</b>")] * (display.MAX_OUTPUTS + 1))) == display.MAX_OUTPUTS
    pieces = shown(*[rich("x" * display.MAX_RICH_PIECE_CHARS)] * 10)
    assert sum(len(each.data.get("text/html", "")) for each in pieces) <= display.MAX_RICH_CHARS
    assert pieces[-1].data == {"text/plain": display.TOO_LARGE}
    (large,) = shown(rich("x" * (display.MAX_RICH_PIECE_CHARS + 1), **{"text/plain": "a table"}))
    assert large.data == {"text/plain": "a table"}
    texts = shown(*[new_output("stream", name="stdout", text="x" * 10**6)] * 3)
    assert sum(len(each.text) for each in texts) < display.MAX_TEXT_CHARS + 100


def test_a_long_text_or_one_that_cannot_be_read_is_shown_as_it_is(
    exporter: HTMLExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = new_markdown_cell("**x** <i>" * html.MAX_MARKDOWN_CHARS)
    assert "**x** &lt;i&gt;" in page(exporter, long)
    assert "<strong>x</strong>" in page(exporter, new_markdown_cell("**x**"))

    def gives_up(*_: Any) -> str:
        raise RecursionError

    monkeypatch.setattr(html.MarkdownWithMath, "render", gives_up)
    assert "**x** &lt;b&gt;" in page(exporter, new_markdown_cell("**x** <b>"))
    monkeypatch.setattr(display, "clean_html", gives_up)
    (given_up,) = shown(rich("<b>x</b>"))
    assert given_up.data == {"text/plain": display.TOO_LARGE}


def test_feedback_pages_are_drawn_in_this_order(tmp_path: Path) -> None:
    """`HideTests` relies on reports that `CleanForDisplay` has drawn."""
    config = Config()
    configure(config, tmp_path)
    assert config.HTMLExporter.preprocessors == [CleanForDisplay]
    assert HideTests in config.GenerateFeedback.preprocessors


@pytest.mark.parametrize(
    ("html", "clean"),
    [
        ("<b>bold</b>", "<b>bold</b>"),
        ("a<script>alert(1)</script>", "aalert(1)"),
        ("<img src=x onerror=alert(1)>", "<img>"),
        ("<img src='https://example.org/seen.png'>", "<img>"),
        ('<img src="data:image/png;base64,AAAA">', '<img src="data:image/png;base64,AAAA">'),
        ('<img src="data:image/svg+xml;base64,AAAA">', "<img>"),
        ("<a href='javascript:alert(1)'>x</a>", "<a>x</a>"),
        ("<a href='data:text/html,<b>'>x</a>", '<a href="#">x</a>'),
        ("<a href='https://example.org'>x</a>", '<a href="https://example.org">x</a>'),
        ('<div style="position: fixed; color: red">x</div>', '<div style="color: red;">x</div>'),
        ("<iframe srcdoc='x'></iframe><form action=x><input></form>x", "\nx"),
        ("<svg onload=alert(1)><style>*{}</style></svg>", "*{}"),
    ],
)
def test_html_keeps_what_is_harmless(html: str, clean: str) -> None:
    assert clean_html(html) == clean


def test_hidden_regions_go_even_if_they_never_end() -> None:
    source = "a\n### BEGIN HIDDEN TESTS\nb\n### END HIDDEN TESTS\nc\n# BEGIN HIDDEN TESTS\nd"
    assert without_hidden(source) == "a\nc"
