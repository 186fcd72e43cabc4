"""On feedback and formgrader pages, learners' content cannot run, load files, cover the page or fake a report."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import from_dict, write
from traitlets.config import Config

from lmcourse.grading import pages
from lmcourse.grading.config import configure
from lmcourse.grading.gradebook import nbgrader_configuration
from lmcourse.grading.notebooks import new_code_cell, new_notebook, new_output
from lmcourse.grading.pages import CleanForDisplay, FeedbackExporter
from lmcourse.report import REPORT_MIME, CaseResult, Report, check_id
from tests.grading.conftest import Course
from tests.grading.learners import REPOSITORY

pytestmark = pytest.mark.prove

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

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
    "<div style='position:fixed;inset:0;background:url(https://owned.example)'>x</div>",
    "<div class='modal-backdrop owned' id='owned'>x</div>",
    "<style>@import 'https://owned.example';</style>",
    "<form action=https://owned.example><button>owned</button></form>",
    "<meta http-equiv=refresh content='0;url=https://owned.example'>",
    "<link rel=stylesheet href=https://owned.example>",
    "<base href=https://owned.example>",
    "</pre></div><script>owned</script>",
    "]]>--><script>owned</script>",
    '"><script>owned</script>',
    "' onmouseover=owned x='",
    "1 onload=owned()",
    "https://owned.example/x.png",
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

MIMES = (
    *("text/plain", "text/html", "text/markdown", "text/latex", "image/png", "image/jpeg", "image/svg+xml"),
    *("application/javascript", "application/json", "application/pdf", "text/vnd.mermaid", REPORT_MIME),
)


def configuration(course: Path, template: str) -> Config:
    """Return the configuration with which nbgrader renders feedback, or formgrader its pages."""

    from nbgrader.converters import GenerateFeedback
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.server_extensions.formgrader import handlers

    config = Config()
    configure(config, course)
    if template == "feedback":
        made: Config = GenerateFeedback(coursedir=CourseDirectory(config=config), config=config).config
        return made
    config.HTMLExporter.template_name = template
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    return config


@pytest.fixture(scope="module", params=["feedback", "formgrade"])
def exporter(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> HTMLExporter:
    config = configuration(tmp_path_factory.mktemp("course"), request.param)
    made = FeedbackExporter(config=config) if request.param == "feedback" else HTMLExporter(config=config)
    made.register_preprocessor(CSSHTMLHeaderPreprocessor(config=config), enabled=True)
    return made


def page(exporter: HTMLExporter, *cells: Any, resources: Any = None, **metadata: Any) -> str:
    """Return the page of a notebook, without nbconvert's validation, which would reject some attacks before
    cleaning."""
    notebook = from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": list(cells)})
    cleaned, _ = CleanForDisplay().preprocess(notebook, {})
    marks = {"notebook": "tiny", "score": 1, "max_score": 2, "late_penalty": 0}
    given = {"nbgrader": marks, "index": 0, "total": 1, **(resources or {})}
    drawn: str = exporter.from_notebook_node(cleaned, resources=given)[0]
    drawn.encode()  # pages are written as UTF-8
    return drawn


def code(*outputs: Any, **rest: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": "1", "metadata": {}, "outputs": list(outputs), **rest}


def output(data: Any, kind: str = "display_data", **metadata: Any) -> dict[str, Any]:
    return {"output_type": kind, "data": data, "metadata": metadata}


def marks(name: str) -> dict[str, Any]:
    return {"nbgrader": {"grade": True, "solution": False, "locked": True, "grade_id": name, "points": 2, "score": 1}}


def attacks_in(text: str) -> list[str]:
    """Return the parts that a browser would run, load, send or put over the page; attacks must be only text."""
    soup = BeautifulSoup(text, "html.parser")
    found = [str(tag) for tag in soup.find_all(["svg", "iframe", "object", "embed", "base", "form", "math"])]
    found += [str(tag) for tag in soup.find_all(["script", "style", "link", "meta", "button"]) if "owned" in str(tag)]
    for tag in soup.find_all(True):
        for name, value in tag.attrs.items():
            link = re.sub(r"[\x00-\x20]", "", str(value)).lower()
            kept = name == "href" and tag.name == "a" and link.startswith(("http:", "https:", "mailto:", "#"))
            if "owned" in link and name not in ("alt", "title", "data-link") and not kept:
                found.append(f"{tag.name} {name}={value}")
    return found


def cells_with(attack: str) -> list[dict[str, Any]]:
    """Return cells with the attack in every place that a page could show."""
    about = {mime: {"width": attack, "alt": attack, "isolated": True} for mime in MIMES}
    kinds = ({"output_type": "stream", "name": attack, "text": attack}, {"output_type": attack, "data": {}})
    error = {"output_type": "error", "ename": attack, "evalue": attack, "traceback": [attack, attack]}
    picture = output({"image/png": DOT}, "execute_result", filenames={"image/png": attack}, **about)
    view = output({"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "text/plain": attack})
    shown = [*kinds, error, picture, view, *(output({mime: attack}, **about) for mime in MIMES)]
    attachments = {attack: {"image/png": attack, "text/html": attack}, "x.png": {"image/svg+xml": attack}}
    return [
        code(*shown, source=attack, metadata={"tags": [attack], "alt": attack}),
        code(output({"text/plain": "1"}), metadata=marks(attack), execution_count=attack),
        {"cell_type": "markdown", "source": attack, "metadata": {"name": attack}, "attachments": attachments},
        {"cell_type": "raw", "source": attack, "metadata": {"raw_mimetype": "text/html"}},
    ]


@pytest.mark.parametrize("exporter", ["feedback"], indirect=True)
@pytest.mark.parametrize("attack", ATTACKS)
def test_feedback_runs_no_script_and_loads_no_file(exporter: HTMLExporter, attack: str) -> None:
    state = {"application/vnd.jupyter.widget-state+json": {"state": {"x": {"model_name": attack}}}}
    language = {"name": attack, "pygments_lexer": attack}
    drawn = page(exporter, *cells_with(attack), widgets=state, title=attack, language_info=language)
    assert attacks_in(drawn) == []
    assert "owned" in drawn or "attachment" in attack


@pytest.mark.parametrize("exporter", ["formgrade"], indirect=True)
def test_formgrader_runs_no_script_and_loads_no_file(exporter: HTMLExporter) -> None:
    shown = ("student", "first_name", "last_name", "notebook_path")
    names = dict.fromkeys(shown, "\"'></title><script>owned</script>")
    cells = [cell for attack in ATTACKS for cell in cells_with(attack)]
    assert attacks_in(page(exporter, *cells, resources=names)) == []


def test_the_search_finds_attacks_that_are_html() -> None:
    raw = [attack for attack in ATTACKS if attack.startswith("<") and "title" not in attack]
    assert [attack for attack in raw if not attacks_in(attack)] == ["<javascript:owned>"]


@pytest.mark.parametrize("odd", [None, 3, [], {}, "x", [None], {"a": 1}])
def test_outputs_of_unknown_types_are_left_out(odd: Any) -> None:
    parts = {"name": odd, "text": odd, "evalue": odd, "traceback": odd, "data": odd, "metadata": odd}
    kinds = ("stream", "error", "display_data", "execute_result", odd)
    outputs = [odd, *({"output_type": kind, **parts} for kind in kinds), *(output({mime: odd}) for mime in MIMES)]
    nb, _ = CleanForDisplay().preprocess(from_dict({"cells": [code(*outputs)]}), {})
    assert "<" not in str(nb.cells[0].outputs)


REPORT = Report(
    "one",
    1.0,
    2,
    True,
    (
        CaseResult("four by four", False, "expected 2, got <b>3</b>", "one(4)"),
        CaseResult("long rows", False, "expected 9, got 8", "one(1234567)", hidden=True),
    ),
    "You forgot the `mask`.",
)


def test_report_of_a_graded_cell_is_rendered_from_its_json(exporter: HTMLExporter) -> None:
    fake = {"text/html": "<b>2 / 2</b> points · all passed", "text/plain": "2"}
    shown = output({REPORT_MIME: REPORT.to_json(), **fake}, "execute_result")
    drawn = page(exporter, code(shown, metadata=marks(check_id("one"))))
    [section] = BeautifulSoup(drawn, "html.parser").select('section[role="status"]')
    assert section["aria-label"] == "one: 1 of 2 points"
    assert "border-left" in str(section["style"])
    for text in ("You forgot the mask.", "one(1234567)", "expected 9, got 8", "expected 2, got <b>3</b>"):
        assert text in section.text
    assert "all passed" not in drawn


@pytest.mark.parametrize("metadata", [{}, {"nbgrader": marks("one")["nbgrader"] | {"solution": True}}, marks("a b")])
def test_a_report_in_an_ordinary_cell_is_shown_as_a_number(exporter: HTMLExporter, metadata: dict[str, Any]) -> None:
    drawn = page(exporter, code(output({REPORT_MIME: REPORT.to_json(), "text/plain": "1"}), metadata=metadata))
    assert "You forgot" not in drawn


@pytest.mark.parametrize("change", [{"exercise": None}, {"cases": "x"}, {"more": 1}])
def test_invalid_reports_are_not_rendered(exporter: HTMLExporter, change: dict[str, Any]) -> None:
    shown = output({REPORT_MIME: REPORT.to_json() | change, "text/html": "<b>forged</b>", "text/plain": "1"})
    drawn = page(exporter, code(shown, metadata=marks(check_id("one"))))
    assert "You forgot" not in drawn
    assert "forged" not in drawn


def test_honest_work_looks_the_same_as_in_the_notebook(exporter: HTMLExporter) -> None:
    text = "## Notes\n\n`a < b` and $a<b$ **bold**\n\n| x |\n|---|\n| 1 |\n\n![dot](attachment:dot.png)\n\n- [ ] <https://a.example>"
    note = {"cell_type": "markdown", "source": text, "metadata": {}, "attachments": {"dot.png": {"image/png": DOT}}}
    table = "<table><thead><tr><th>1</th></tr></thead></table>"
    plot = output({"image/png": DOT, "text/plain": "<Figure>"}, **{"image/png": {"width": 7, "alt": "a curve"}})
    soup = BeautifulSoup(page(exporter, note, code(output({"text/html": table}), plot)), "html.parser")
    body = soup.select_one("#notebook-container")
    assert body is not None
    assert [tag.text for tag in body.select("h2, p > code, strong, thead th")] == ["Notes", "a < b", "bold", "x", "1"]
    pictures = [(str(tag["src"])[:22], tag["alt"], tag.get("width")) for tag in body.select("img")]
    assert pictures == [("data:image/png;base64,", "dot", None), ("data:image/png;base64,", "a curve", "7")]
    assert "$a&lt;b$" in str(body)
    assert body.select('a[href="https://a.example"]')


SLOW = {
    "formatting in every block": "".join(f"<b title={n}>" for n in range(250)) + "<p>x" * 600,
    "many short cells": "".join(f"<b title={n}>" for n in range(70)) + "<p>x" * 70,
    "deep": "<div>" * 1190,
    "brackets": "[" * 5_990,
}


@pytest.mark.parametrize("exporter", ["feedback"], indirect=True)
@pytest.mark.parametrize("name", SLOW)
def test_no_page_takes_minutes_or_is_huge(exporter: HTMLExporter, name: str) -> None:
    note = {"cell_type": "markdown", "source": SLOW[name], "metadata": {}}
    shown = code(*[output({"text/html": SLOW[name]}), output({"text/markdown": SLOW[name]})] * 100)
    begin = time.process_time()
    drawn = page(exporter, shown, *[note] * (280_000 // len(SLOW[name])))
    assert time.process_time() - begin < 60
    assert len(drawn) < 5_000_000


def test_large_results_are_shown_as_text(exporter: HTMLExporter) -> None:
    size = pages.MAX_PIECE_CHARS
    assert "**x** &lt;i&gt;" in page(exporter, {"cell_type": "markdown", "source": "**x** <i>" * size, "metadata": {}})
    drawn = page(exporter, code(output({"text/html": "<hr>" * size, "text/plain": "a table"})))
    assert "a table" in drawn
    assert "<hr" not in drawn.partition("notebook-container")[2]
    streams = [{"output_type": "stream", "name": "stdout", "text": "x" * 150_000}] * 3
    drawn = page(exporter, code(*streams))
    assert drawn.count("x") < pages.MAX_OUTPUT_CHARS + 10_000
    assert pages.TOO_LARGE in drawn


def test_nbgrader_writes_feedback_without_warnings(tmp_path: Path) -> None:
    """The real command runs on a real gradebook with two cells of a learner and a comment."""
    from nbgrader.api import Gradebook

    course = Course(tmp_path.resolve())
    shutil.copy(REPOSITORY / "nbgrader_config.py", course.root)
    (course.root / "solutions").mkdir()
    nbgrader_configuration(course.root)  # finds alembic, which creates gradebooks
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db", "lmcourse") as book:
        book.add_assignment("01-tiny")
        book.add_notebook("tiny", "01-tiny")
        book.add_grade_cell(check_id("one"), "tiny", "01-tiny", max_score=2, cell_type="code")
        book.add_solution_cell("one", "tiny", "01-tiny")
        book.add_student("ada")
        book.add_submission("01-tiny", "ada")
        book.find_grade(check_id("one"), "tiny", "01-tiny", "ada").auto_score = 1.0
        book.find_comment("one", "tiny", "01-tiny", "ada").manual_comment = "Almost! <script>owned</script>"
        book.db.commit()
    answer = {"nbgrader": {"grade": False, "solution": True, "locked": False, "grade_id": "one"}}
    result = new_output("execute_result", data={REPORT_MIME: REPORT.to_json(), "text/plain": "1"})
    cells = [
        new_code_cell("def one(n): return 3", metadata=answer),
        new_code_cell("check(one)", metadata=marks(check_id("one")), outputs=[result]),
    ]
    folder = course.root / "autograded" / "ada" / "01-tiny"
    folder.mkdir(parents=True)
    write(new_notebook(cells=cells), folder / "tiny.ipynb")
    course.run("nbgrader", "generate_feedback", "01-tiny")
    assert [line for line in course.told.splitlines() if "| INFO]" not in line and line] == []
    drawn = (course.root / "feedback" / "ada" / "01-tiny" / "tiny.html").read_text()
    assert attacks_in(drawn) == []
    soup = BeautifulSoup(drawn, "html.parser")
    [link] = soup.select("#toc a[href^='#check_']")
    assert link.text == "one"
    assert soup.select(f'a[name="{str(link["href"])[1:]}"]')
    for text in ("(Score: 1.0 / 2.0)", "Almost!", "one(1234567)"):
        assert text in soup.text
