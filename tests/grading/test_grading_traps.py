"""Plain nbgrader, as an instructor runs it, over a class in which everybody does something else.

One run for all: the class is graded once, then each test looks at one learner.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from subprocess import CompletedProcess

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from lmcourse.report import CHECK_PREFIX, REPORT_MIME, check_id
from tests.grading.tiny_course import EXERCISES, SECRET, Course, Submission

FULL = dict.fromkeys(EXERCISES, 2.0)
NOTHING = dict.fromkeys(EXERCISES, 0.0)

SHADOW = "STOLEN = 2"
NO_NAME = "=<b>bob"
"""No plain name for a folder."""

SCRIPT = "<script>alert('owned')</script>"
ATTACK = "onerror=alert(1)"

LIAR = """
REPORT = {"exercise": "one", "points": 1.0, "max_points": 2, "hidden": True, "diagnosis": "drawn afresh", "notes": [],
          "cases": [{"name": "a", "passed": False, "message": "a hidden input", "call": "", "hidden": True}],
          "to_come": [], "answered": True}
class Lie:
    def __init__(self, report): self.report = report
    def __repr__(self): return "1"
    def _repr_mimebundle_(self, **_):
        report = {"application/vnd.lmcourse.report+json": self.report} if self.report else {}
        return report | {"text/plain": "1", "text/html": "<b>forged praise</b>"}
"""


@dataclass
class Class:
    """The graded class."""

    course: Course
    commands: dict[str, CompletedProcess[str]]
    scores: dict[str, dict[str, float | None]]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Class:
    course = Course(tmp_path_factory.mktemp("course").resolve())
    ran = {"generate": course.nbgrader("generate_assignment", "01-tiny")}
    assert ran["generate"].returncode == 0, ran["generate"].stderr
    release = nbformat.read(course.release, as_version=4)
    built = [str(path.relative_to(course.root)) for path in (course.source, course.release)]
    ran["validate"] = course.nbgrader("validate", *built)
    hand_in(course, release)
    trusted = "--ExamineNotebook.isolation=process"  # the tiny course has checks of its own
    limits = [trusted, "--Execute.timeout=4", "--Execute.iopub_timeout=3", "--RunNotebook.output_limit=100000"]
    ran["autograde"] = course.nbgrader("autograde", "01-tiny", *limits, LMCOURSE_SEED="77")
    ran["feedback"] = course.nbgrader("generate_feedback", "01-tiny")
    ran["export"] = course.nbgrader("export", "--to", "grades.csv")
    return Class(course, ran, course.scores())


def hand_in(course: Course, release: nbformat.NotebookNode) -> None:
    """One submission for each thing that can happen."""

    def new() -> Submission:
        return Submission(release)

    course.submit("perfect", new().nb)
    course.submit("blank", release)

    odd = new()
    odd.returns("one", "float('nan')")
    odd.returns("two", "-1")
    odd.returns("three", "True")
    course.submit("odd_numbers", odd.nb)

    odd = new()
    odd.code("class Shown(str):\n    def __repr__(self): return str(self)")
    odd.returns("one", "Shown('np.float64(2.0)')")
    odd.returns("two", "Shown('tensor(2.)')")
    odd.returns("three", "'well done'")
    course.submit("odd_objects", odd.nb)

    odd = new()
    odd.returns("one", "99")
    odd.returns("two", "None")
    odd.returns("three", "float('inf')")
    course.submit("odd_sizes", odd.nb)

    several = new()
    several.answer("one", "def one(hidden):\n    return 0.5 if hidden else 2")
    several.code("get_ipython().ast_node_interactivity = 'all'")
    course.submit("several_results", several.nb)

    warns = new()
    warns.code("import os, sys, warnings")
    warns.answer("one", "def one(hidden):\n    warnings.warn('beware')\n    return 2")
    warns.answer("two", "def two(hidden):\n    print('oh', file=sys.stderr)\n    return 2")
    warns.answer("three", "def three(hidden):\n    os.write(2, b'from deep below')\n    return 2")
    course.submit("warns", warns.nb)

    copied = new()
    for name in ("one", "two"):
        copied.copied(f"check-{name}", to=len(copied.nb.cells))
        copied.copied(f"answer-{name}", to=len(copied.nb.cells), source="pass")
    copied.copied("check-three", to=2)  # above its answer
    course.submit("copied", copied.nb)

    deleted = new()
    deleted.delete("check-one", "check-two", "answer-two", "set-up")
    deleted.code("def check(answer, *, hidden=False): return answer(hidden)")
    course.submit("deleted", deleted.nb)

    retyped = new()
    for identity, kind in (
        ("check-one", new_markdown_cell),
        ("check-two", new_raw_cell),
        ("answer-three", new_markdown_cell),
    ):
        place = retyped.place(identity)
        old = retyped.nb.cells[place]
        retyped.nb.cells[place] = kind(old.source, metadata=old.metadata, id=old["id"])
    retyped.cell("check-one")["attachments"] = {}
    course.submit("retyped", retyped.nb)

    forged = new()
    forged.returns("one", "50")
    forged.cell("check-one").metadata.nbgrader["points"] = 50
    forged.cell("check-two").source = "2"
    forged.cell("check-two").metadata.nbgrader["locked"] = False
    forged.returns("two", "0")
    forged.returns("three", "0")
    forged.cell("check-three").metadata["tags"] = ["skip-execution"]
    forged.cell("check-three").metadata.nbgrader["solution"] = True
    forged.code("'extra'")
    forged.nb.cells[0].metadata["nbgrader"] = {
        "grade": True,
        "grade_id": "bonus",
        "points": 40,
        "schema_version": 3,
    }
    forged.nb.metadata["kernelspec"] = {"name": "no-such-kernel", "display_name": "x"}
    course.submit("forged", forged.nb)

    mangled = new()
    mangled.nb.cells[0].metadata["nbgrader"] = {}
    mangled.cell("set-up").metadata["nbgrader"] = ["not", "a", "dict"]
    mangled.insert(0, new_code_cell("1", metadata={"nbgrader": {"grade_id": 7, "schema_version": 99}}))
    mangled.code("# \ud800")
    course.submit("mangled", mangled.nb)

    hidden_traceback = new()
    hidden_traceback.answer(
        "one", "def one(hidden):\n    if hidden: raise KeyError('the secret ' + 'input')\n    return 2"
    )
    hidden_traceback.answer("two", "def renamed(hidden):\n    return 2")
    hidden_traceback.answer("three", "def three(hidden):\n    print('the printed', 'input')\n    return 2")
    course.submit("failing", hidden_traceback.nb)

    lies = new()
    lies.code(LIAR)
    lies.returns("one", "Lie(REPORT)")
    lies.returns("two", "Lie({'exercise': 'two', 'points': 1})")
    lies.returns("three", "Lie(None)")
    course.submit("lies", lies.nb)

    shadows = new()
    shadows.code(f"from pathlib import Path\nPath('colorsys.py').write_text({SHADOW!r})")
    shadows.answer("one", "import colorsys\ndef one(hidden):\n    return getattr(colorsys, 'STOLEN', 1)")
    shadows.answer("two", "import helper_of_mine\ndef two(hidden):\n    return helper_of_mine.STOLEN")
    shadows.answer("three", "def three(hidden):\n    return 2 * (open('data.csv').read() == '1,2,3')")
    folder = course.submit("shadows", shadows.nb).parent
    for name in (
        "colorsys",
        "random",
        "torch",
        "helper_of_mine",
        "sitecustomize",
        "pathlib",
        "ipykernel_launcher",
    ):
        (folder / f"{name}.py").write_text(SHADOW)
    (folder / "lmcourse").mkdir()
    (folder / "lmcourse" / "__init__.py").write_text(SHADOW)
    (folder / "page.html").write_text(SCRIPT)
    (folder / "data.csv").write_text("forged")

    crash = new()
    crash.code("import os; os._exit(3)", before="answer-two")
    course.submit("crashes", crash.nb)

    loop = new()
    loop.code("while True: pass", before="answer-two")
    course.submit("loops", loop.nb)

    stuck = new()
    stuck.code("while True:\n    try: sum(range(10**9))\n    except BaseException: pass", before="answer-two")
    course.submit("stuck", stuck.nb)

    flood = new()
    flood.code("for _ in range(300): print('x' * 10_000)", before="answer-two")
    course.submit("floods", flood.nb)

    course.submit("not_json", "{ this is not a notebook")
    course.submit("empty", "")
    course.submit("wrong_shape", '{"cells": [1, 2], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    course.submit("binary", bytes(range(256)))
    folder = course.root / "submitted" / "links" / "01-tiny"
    folder.mkdir(parents=True)
    (folder / "tiny.ipynb").symlink_to(course.source)
    course.submit("other", new_notebook(cells=[new_code_cell("1 + 1")]))
    course.submit("misnamed", new().nb, name="my tiny.ipynb")
    (course.root / "submitted" / "nothing" / "01-tiny").mkdir(parents=True)
    course.submit(NO_NAME, new().nb)

    course.submit("scripts", with_scripts(new()).nb)


def with_scripts(page: Submission) -> Submission:
    """Everything by which a notebook can bring a script into somebody's browser."""
    shown = {
        "text/html": f"<b>kept</b>{SCRIPT}<img src=x {ATTACK}><a href='javascript:alert(1)'>a</a>",
        "text/markdown": f"{SCRIPT}<svg {ATTACK}>",
        "image/svg+xml": f"<svg xmlns='http://www.w3.org/2000/svg'>{SCRIPT}</svg>",
        "application/javascript": "alert('owned')",
        "text/latex": f"$x$ {SCRIPT}",
        "image/png": f'"><img src=x {ATTACK}>',
        REPORT_MIME: {"exercise": SCRIPT, "points": 2},
        "application/vnd.jupyter.widget-view+json": {"model_id": SCRIPT},
    }
    for mime, value in shown.items():
        page.code(f"from IPython.display import publish_display_data as show\nshow({{{mime!r}: {value!r}}})")
    page.code(
        "kernel = get_ipython().kernel\n"
        f"count = dict(code='', execution_count={SCRIPT!r})\n"
        "kernel.send_response(kernel.iopub_socket, 'execute_input', count)"
    )
    page.code(f"raise ValueError({SCRIPT!r})")
    page.code(f"print({SCRIPT!r})")
    page.insert(
        0,
        new_markdown_cell(f"# Notes\n{SCRIPT}\n\n[link](javascript:alert(1)) <img src=x {ATTACK}>\n\n**kept too**"),
    )
    page.insert(0, new_raw_cell(SCRIPT, metadata={"raw_mimetype": "text/html"}))
    attached = new_markdown_cell("![a](attachment:a.svg)")
    attached["attachments"] = {"a.svg": {"image/svg+xml": SCRIPT, "text/html": SCRIPT}}
    page.insert(0, attached)
    page.nb.metadata["title"] = SCRIPT
    page.nb.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"x": SCRIPT}}}
    page.nb.metadata["language_info"] = {"name": SCRIPT, "pygments_lexer": SCRIPT}
    page.nb.cells[0].metadata["tags"] = [f'"><script {ATTACK}>']
    return page


def errors(course: Course, student: str) -> dict[str, str]:
    """The error in each graded cell of a graded notebook, by exercise."""
    nb = nbformat.read(course.graded(student), as_version=4)
    found = {}
    for cell in nb.cells:
        marks = cell.metadata.get("nbgrader", {})
        for output in cell.outputs if cell.cell_type == "code" and marks.get("grade") else []:
            if output.output_type == "error":
                found[marks["grade_id"].removeprefix(CHECK_PREFIX)] = f"{output.ename}: {output.evalue}"
    return found


def test_plain_commands_work_on_this_layout(graded: Class) -> None:
    for name in ("generate", "feedback", "export"):
        assert graded.commands[name].returncode == 0, graded.commands[name].stderr
    assert "perfect" in (graded.course.root / "grades.csv").read_text()


def test_the_release_has_no_source_no_answer_and_no_hidden_test(graded: Class) -> None:
    files = [path for path in (graded.course.root / "notebooks").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["data.csv", "tiny.ipynb"]
    text = graded.course.release.read_text()
    for leak in ("SOLUTION", "HIDDEN", "secret", "return 2"):
        assert leak not in text
    assert "# Your code here" in text


def test_validate_passes_on_the_solution_and_fails_on_the_release(graded: Class) -> None:
    of_solution, of_release = graded.commands["validate"].stdout.split("Success", 1)
    assert "FAILED" not in of_solution
    assert "VALIDATION FAILED ON 3" in of_release


def test_one_broken_submission_never_stops_the_others(graded: Class) -> None:
    handed_in = {path.name for path in (graded.course.root / "submitted").iterdir()}
    assert graded.scores["perfect"] == FULL
    assert graded.scores["blank"] == NOTHING
    # nbgrader itself never looks into a folder without a notebook; `lmcourse grade` does.
    assert handed_in - graded.scores.keys() == {"nothing"}
    unclear = [name for name, marks in graded.scores.items() if None in marks.values()]
    assert sorted(unclear) == sorted(["misnamed", NO_NAME])  # left to a human, and so told
    assert "processing assignment '01-tiny' for student 'misnamed'" in graded.commands["autograde"].stderr
    assert f"The name of the folder {NO_NAME} is no plain name: rename it" in graded.commands["autograde"].stderr
    assert not graded.course.graded(NO_NAME).exists()


@pytest.mark.parametrize("student", ["odd_numbers", "odd_objects", "odd_sizes"])
def test_only_a_finite_number_in_range_is_a_score(graded: Class, student: str) -> None:
    assert graded.scores[student] == NOTHING
    assert errors(graded.course, student).keys() == set(EXERCISES)


def test_each_unusable_score_says_what_it_was(graded: Class) -> None:
    told = errors(graded.course, "odd_sizes")
    assert told["one"] == "NoScore: The check gave '99', more than the 2 points of this exercise."
    assert "gave no result" in told["two"]
    assert "'inf', which is not a score" in told["three"]


def test_the_last_of_several_results_counts(graded: Class) -> None:
    assert graded.scores["several_results"] == FULL | {"one": 0.5}


def test_a_warning_costs_nothing(graded: Class) -> None:
    assert graded.scores["warns"] == FULL
    assert "beware" in graded.course.graded("warns").read_text()  # it did reach the graded cell


def test_copied_cells_count_once_and_in_their_place(graded: Class) -> None:
    assert graded.scores["copied"] == FULL
    nb = nbformat.read(graded.course.graded("copied"), as_version=4)
    marked = [cell.metadata.nbgrader.grade_id for cell in nb.cells if "nbgrader" in cell.metadata]
    assert sorted(marked) == sorted([*EXERCISES, *(check_id(name) for name in EXERCISES)])


def test_deleted_checks_are_put_back(graded: Class) -> None:
    assert graded.scores["deleted"] == FULL | {"two": 0.0}
    assert "NameError" in errors(graded.course, "deleted")["two"]


def test_retyped_cells_are_code_again(graded: Class) -> None:
    assert graded.scores["retyped"] == FULL


def test_what_a_notebook_claims_about_its_cells_is_ignored(graded: Class) -> None:
    assert graded.scores["forged"] == NOTHING


def test_mangled_metadata_costs_nothing(graded: Class) -> None:
    assert graded.scores["mangled"] == FULL


def test_a_failing_hidden_test_leaks_neither_source_nor_inputs(graded: Class) -> None:
    page = graded.course.feedback("failing")
    assert "KeyError while this check ran" in page
    assert "name &#39;two&#39; is not defined" in page or "name 'two' is not defined" in page
    for leak in ("the secret input", "the printed input", "hidden=True", "HIDDEN"):
        assert leak not in page


def test_no_page_of_feedback_has_a_hidden_test(graded: Class) -> None:
    pages = sorted((graded.course.root / "feedback").rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        assert "HIDDEN" not in text
        for name in EXERCISES:
            assert SECRET.format(name=name).split("#")[1] not in text


def test_a_report_is_drawn_from_its_facts_and_not_from_its_html(graded: Class) -> None:
    assert graded.scores["lies"] == {"one": 1.0, "two": 0.0, "three": 1.0}
    page = graded.course.feedback("lies")
    assert "drawn afresh" in page
    assert "report of the check and its points disagree" in page
    for lie in ("forged praise</b>", "<b>forged praise", "a hidden input</div>"):
        assert lie not in page


def test_files_beside_the_notebook_do_not_stand_in_for_packages(graded: Class) -> None:
    assert graded.scores["shadows"] == {"one": 1.0, "two": 0.0, "three": 2.0}


def test_submitted_pages_and_modules_go_nowhere(graded: Class) -> None:
    for step in ("autograded", "feedback"):
        names = {path.name for path in (graded.course.root / step / "shadows").rglob("*")}
        assert not names & {"page.html", "lmcourse", "torch.py", "sitecustomize.py"}


def test_points_before_a_crash_stay(graded: Class) -> None:
    assert graded.scores["crashes"] == NOTHING | {"one": 2.0}
    assert "ended Python itself" in errors(graded.course, "crashes")["three"]
    assert "ended Python itself" in graded.course.feedback("crashes")


def test_an_endless_loop_costs_its_own_cell(graded: Class) -> None:
    assert graded.scores["loops"] == FULL


def test_a_loop_that_cannot_be_stopped_costs_what_follows(graded: Class) -> None:
    assert graded.scores["stuck"] == NOTHING | {"one": 2.0}
    assert "could not be stopped" in errors(graded.course, "stuck")["two"]


def test_a_flood_of_output_is_cut(graded: Class) -> None:
    assert graded.scores["floods"] == FULL
    assert graded.course.graded("floods").stat().st_size < 300_000
    assert "more output than is kept" in graded.course.graded("floods").read_text()


@pytest.mark.parametrize("student", ["not_json", "empty", "wrong_shape", "binary", "links", "other"])
def test_what_is_no_notebook_of_this_assignment_gets_zero_and_a_reason(graded: Class, student: str) -> None:
    assert graded.scores[student] == NOTHING
    told = errors(graded.course, student)["one"]
    wanted = {"links": "is a link", "other": "is it another notebook"}.get(student, "cannot be read as a notebook")
    assert wanted in told
    assert wanted in graded.course.feedback(student)


def test_the_seed_is_kept_with_what_was_graded(graded: Class) -> None:
    notes = json.loads(graded.course.graded("perfect").read_text())["metadata"]["lmcourse"]
    assert notes["seed"] == 77


def test_nothing_in_feedback_runs(graded: Class) -> None:
    page = graded.course.feedback("scripts")
    assert attacks_in(page) == []
    assert "<b>kept</b>" in page
    assert "kept too" in page
    assert graded.scores["scripts"] == FULL


def test_nothing_in_the_formgrader_runs(graded: Class) -> None:
    """The formgrader draws with HTMLExporter and this configuration, in an instructor's browser."""
    from nbconvert.exporters import HTMLExporter
    from nbgrader.server_extensions.formgrader import handlers
    from traitlets.config import Config

    from lmcourse.grading.config import configure

    config = Config()
    configure(config, graded.course.root)
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    resources = {"submission_id": "", "notebook_id": "", "assignment_id": "", "prev": None, "next": None}
    resources |= {
        "index": 0,
        "total": 1,
        "base_url": "",
        "last_name": "",
        "first_name": "",
        "student": "scripts",
    }
    path = str(graded.course.graded("scripts"))
    page, _ = HTMLExporter(config=config).from_filename(path, resources=resources)
    assert attacks_in(page) == []
    assert "<b>kept</b>" in page
    assert "kept too" in page


def attacks_in(page: str) -> list[str]:
    """What of `with_scripts` a browser would run or fetch on this page."""
    soup = BeautifulSoup(page, "html.parser")
    found = [str(tag) for tag in soup.find_all("script") if "owned" in tag.text or "alert" in str(tag.attrs)]
    found += [str(tag) for tag in soup.find_all(["svg", "iframe", "object", "embed", "base", "form"])]
    for tag in soup.find_all(True):
        found += [
            f"{name} on {tag.name}" for name, value in tag.attrs.items() if name.startswith("on") and "alert" in value
        ]
        found += [str(tag)] if "javascript:" in str(tag.get("href", "")).lower() else []
        found += (
            [str(tag)] if tag.name == "img" and not str(tag.get("src", "data:image/")).startswith("data:image/") else []
        )
    return found
