"""A learner's hour in a few seconds: JupyterLab, the welcome page, notebook 01, its widgets, an exercise, Validate.

The tests are steps in one session of one notebook, in this order.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from lmcourse.report import CHECK_PREFIX, REPORT_MIME, check_id
from tests.browser.driver import LONG, Lab, Notebook, solution_of, start_lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.prove

PATH = "01-floating-point/floating_point.ipynb"
VIEW = "application/vnd.jupyter.widget-view+json"

WRONG = """def tensor_bytes(shape: list[int], dtype: str) -> int:
    bits = 1 if dtype == "bool" else 8 * getattr(torch, dtype).itemsize
    return math.prod(shape) * bits // 8
"""


@pytest.fixture(scope="module")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on a fresh learner's copy."""
    with start_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """A browser tab."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    yield page
    page.close()


@pytest.fixture(scope="module")
def notebook(lab: Lab, page: Page) -> Notebook:
    """Notebook 01, opened from the welcome page, with every cell run once."""
    welcome = Notebook.open(page, lab, "welcome.ipynb")
    page.locator(".lmcourse-progress a", has_text="Floating point").click()
    welcome.wait_until_ready(PATH)
    welcome.run_all()
    return welcome


def report(notebook: Notebook, name: str) -> dict[str, Any]:
    """Return the report below an exercise."""
    [output] = notebook.cell(check_id(name))["outputs"]
    found: dict[str, Any] = output["data"][REPORT_MIME]
    return found


def with_widgets(notebook: Notebook) -> list[str]:
    """Return the ids of the cells that show a widget."""
    return [
        cell["id"]
        for cell in notebook.cells()
        if any(VIEW in output.get("data", {}) for output in cell.get("outputs", ()))
    ]


def test_every_cell_runs_and_only_open_exercises_raise(notebook: Notebook) -> None:
    checks = 0
    for cell in notebook.cells():
        marks = cell["metadata"].get("nbgrader", {})
        errors = {output["ename"] for output in cell.get("outputs", ()) if output["output_type"] == "error"}
        assert errors <= ({"NotImplementedError"} if marks.get("solution") else set()), cell["source"]
        assert cell["cell_type"] != "code" or cell["execution_count"], cell["source"]
        if marks.get("grade"):
            checks += 1
            assert report(notebook, marks["grade_id"].removeprefix(CHECK_PREFIX))["points"] == 0
    assert checks >= 8


def test_no_dialog_notification_or_panel_is_shown(notebook: Notebook) -> None:
    """Jupyter's news, dialogs about a kernel or a changed file, and a panel for authors of assignments are absent."""
    assert notebook.page.locator(".Toastify__toast, .jp-Dialog").all_inner_texts() == []
    assert notebook.page.get_by_text("Create Assignment").count() == 0


def test_every_figure_has_alt_text(notebook: Notebook) -> None:
    pictures = notebook.panel.locator(".jp-OutputArea img")
    texts = [picture.get_attribute("alt") for picture in pictures.all()]
    assert len(texts) >= 8
    assert all(texts), texts


def test_every_control_shows_its_name_and_value(notebook: Notebook) -> None:
    """For a slider with equal ratios, a screen reader must read the number itself, not its logarithm."""
    told = 0
    for slider in notebook.panel.locator(".widget-slider").all():
        shown = [slider.locator(part).text_content() for part in (".widget-label", ".widget-readout")]
        shown[0] = shown[0] or slider.get_attribute("title")
        handle = slider.locator(".noUi-handle")
        assert [handle.get_attribute(name) for name in ("aria-label", "aria-valuetext")] == shown
        told += all(shown)
    assert told >= 5
    groups = notebook.panel.locator(".widget-toggle-buttons").all()
    assert groups
    for group in groups:
        assert group.get_attribute("aria-label") == group.locator(".widget-label").text_content()
        assert group.locator(".widget-label").get_attribute("title") == "", "hovering over it would show this"
        pressed = [button.get_attribute("aria-pressed") for button in group.locator("button").all()]
        assert sorted(pressed) == [*["false"] * (len(pressed) - 1), "true"]


def test_a_figure_without_controls_has_alt_text(notebook: Notebook) -> None:
    """JupyterLab itself drops the alt text of pictures outside widgets."""
    notebook.run_script(
        "await app.commands.execute('notebook:insert-cell-below');"
        "panel.content.activeCell.model.sharedModel.setSource(argument);"
        "await app.commands.execute('notebook:run-cell');",
        "figures.number_line()",
    )
    picture = notebook.panel.locator(".jp-RenderedImage img[alt]")
    picture.wait_for()
    assert str(picture.get_attribute("alt")).startswith("Number line of")
    notebook.run_script("await app.commands.execute('notebook:delete-cell');")


def test_figures_are_dark_in_a_dark_theme(notebook: Notebook) -> None:
    def filters() -> set[str]:
        pictures = notebook.panel.locator(".jp-OutputArea img").all()
        return {picture.evaluate("element => getComputedStyle(element).filter") for picture in pictures}

    assert filters() == {"none"}
    notebook.run_script("await app.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'});")
    assert filters() == {"invert(0.93) hue-rotate(180deg)"}
    notebook.run_script("await app.commands.execute('apputils:change-theme', {theme: 'JupyterLab Light'});")


def test_no_line_begins_with_the_full_stop_after_a_formula(notebook: Notebook) -> None:
    formulas = notebook.panel.locator(".jp-RenderedMarkdown mjx-container:not([display])")
    spaces = formulas.evaluate_all("all => all.map(one => getComputedStyle(one).whiteSpace)")
    assert len(spaces) > 20
    assert set(spaces) == {"nowrap"}


def test_long_lines_of_code_are_not_cut(notebook: Notebook) -> None:
    editors = notebook.panel.locator(".jp-CodeCell .cm-scroller").all()
    assert len(editors) >= 20
    assert all(editor.evaluate("element => element.scrollWidth <= element.clientWidth") for editor in editors)


def test_each_control_of_each_widget_changes_the_picture(notebook: Notebook) -> None:
    moved = 0
    for cell_id in with_widgets(notebook):
        cell = notebook.select(cell_id)
        if cell.get_by_role("button", name="This is my guess").count():
            continue  # its slider moves the number beside it
        shown = cell.locator(".widget-html-content").last
        for control in controls(cell):
            before = shown.inner_html()
            use(control)
            wait_for_change(notebook.page, shown, before, f"{notebook.cell(cell_id)['source']}: {control}")
            moved += 1
    assert moved >= 15


def controls(cell: Locator) -> list[Locator]:
    """Return the controls of a widget: one button of each group, and every slider, list, box and field."""
    kinds = (
        ".noUi-handle",
        ".widget-toggle-buttons",
        ".widget-toggle-button >> nth=0",
        ".widget-box > .widget-button >> nth=0",
        ".widget-dropdown select",
        ".widget-checkbox input",
        ".widget-text input",
    )
    return [control for kind in kinds for control in cell.locator(kind).all()]


def use(control: Locator) -> None:
    """Move a control one step, with the keyboard where that is possible."""
    kind = control.get_attribute("class") or ""
    tag = control.evaluate("element => element.tagName")
    if "noUi-handle" in kind:
        now, most = (float(control.get_attribute(f"aria-value{name}") or 0) for name in ("now", "max"))
        control.press("ArrowLeft" if now >= most else "ArrowRight")
    elif "widget-toggle-buttons" in kind:
        control.locator("button:not(.mod-active)").first.click()
    elif tag == "SELECT":
        options = control.locator("option").all_inner_texts()
        control.select_option(next(text for text in options if text != control.input_value()))
    elif tag == "INPUT" and control.get_attribute("type") == "text":
        control.fill("0.1")
        control.press("Enter")
    else:
        control.click()


def wait_for_change(page: Page, shown: Locator, before: str, what: str) -> None:
    """Wait until the widget changes without an error."""
    for _ in range(100):
        now = shown.inner_html()
        if now != before:
            assert 'role="alert"' not in now, what
            return
        page.wait_for_timeout(50)
    pytest.fail(f"The picture does not change: {what}")


def test_a_wrong_answer_is_explained(notebook: Notebook) -> None:
    notebook.write("tensor_bytes", WRONG)
    notebook.run("tensor_bytes")
    notebook.run("check_tensor_bytes")
    found = report(notebook, "tensor_bytes")
    assert 0 < found["points"] < found["max_points"]
    shown = notebook.select("check_tensor_bytes").locator("section[role=status]")
    assert found["diagnosis"]
    assert found["diagnosis"] in shown.inner_text()
    assert "all passed" not in shown.inner_text()


def test_code_copied_from_a_report_gives_the_value_in_it(notebook: Notebook) -> None:
    """The first failing case is too large to be shown whole, so its code calls `inputs`."""
    notebook.write("loss_scales", solution_of("loss_scales").replace("sizes[len(sizes) // 100]", "sizes[0]"))
    notebook.run("loss_scales")
    notebook.run("check_loss_scales")
    code, values, *_ = notebook.select("check_loss_scales").locator("section[role=status] pre").all()
    code.evaluate("element => getSelection().selectAllChildren(element)")
    notebook.page.keyboard.press("ControlOrMeta+c")
    notebook.run_script("await app.commands.execute('notebook:insert-cell-below');")
    cell = notebook.run_script("return panel.content.activeCell.model.id;")
    notebook.select(cell).locator(".cm-content").click()
    notebook.page.keyboard.press("ControlOrMeta+v")
    notebook.run(cell)
    pasted = notebook.cell(cell)
    assert pasted["source"].strip() == code.inner_text().strip()
    assert 'inputs("loss_scales", "two tensors in fp16")\n' in pasted["source"]
    [output] = pasted["outputs"]
    yours = values.inner_text().partition("yours")[2]
    assert literal_eval(output["data"]["text/plain"]) == literal_eval(yours.strip())


def test_hints_open_by_click_and_by_keyboard(notebook: Notebook) -> None:
    shown = notebook.select("check_tensor_bytes").locator("section[role=status]")
    first, second, *_ = shown.locator("details").all()
    assert "Two factors" not in shown.inner_text()
    first.locator("summary").first.click()
    assert "Two factors" in shown.inner_text()
    notebook.page.keyboard.press("Tab")
    notebook.page.keyboard.press("Enter")
    assert second.evaluate("element => element.open")
    assert notebook.cell("check_tensor_bytes")["outputs"], "the notebook took the key for itself"


def test_the_right_answer_turns_the_report_green(notebook: Notebook) -> None:
    shown = notebook.select("check_tensor_bytes").locator("section[role=status]")
    before = border(shown)
    notebook.write("tensor_bytes", solution_of("tensor_bytes"))
    notebook.run("tensor_bytes")
    notebook.run("check_tensor_bytes")
    shown = notebook.select("check_tensor_bytes").locator("section[role=status]")
    assert "all passed" in shown.inner_text()
    assert report(notebook, "tensor_bytes")["points"] == report(notebook, "tensor_bytes")["max_points"]
    red, green, _ = border(shown)
    assert green > red
    assert before != border(shown)


def border(shown: Locator) -> tuple[int, ...]:
    """Return the colour of the bar next to a report."""
    colour = shown.evaluate("element => getComputedStyle(element).borderLeftColor")
    return tuple(int(part) for part in re.findall(r"\d+", colour)[:3])


def test_the_welcome_page_updates_itself_and_leads_to_the_next_exercise(notebook: Notebook) -> None:
    """The answers are not saved yet, and the page was written when the server started."""
    from playwright.sync_api import expect

    notebook.switch("welcome.ipynb")
    shown = notebook.panel.locator(".lmcourse-progress")
    solved = shown.locator("li", has_text="tensor_bytes ✓ 2/2")
    solved.wait_for(state="attached")
    assert not notebook.run_script("return panel.context.model.dirty;")
    assert not solved.is_visible()
    shown.locator("summary").first.press("Enter")
    solved.wait_for()
    link = shown.locator("a", has_text=re.compile(r"^exercise \d+ of notebook 01$"))
    number = link.inner_text().split()[1]
    link.press("Enter")
    notebook.wait_until_ready(PATH)
    heading = notebook.panel.get_by_role("heading", name=f"Exercise {number} ·")
    expect(heading).to_be_in_viewport(timeout=LONG)


def test_validate_names_open_exercises_until_all_are_solved(notebook: Notebook) -> None:
    text = validate(notebook)
    assert "check(stable_softmax)\nNot started" in text
    assert "check(tensor_bytes)" not in text
    for cell in notebook.cells():
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            notebook.write(cell["id"], solution_of(cell["id"]))
    assert "Success" in validate(notebook)


def test_the_terminal_shows_no_warning(notebook: Notebook, lab: Lab) -> None:
    """Kernels and Validate write there, too."""
    [line] = (lab.course.parent / "lab.log").read_text().splitlines()
    assert line.startswith("Starting JupyterLab.")


def validate(notebook: Notebook) -> str:
    """Press nbgrader's Validate button, return its message, and close it."""
    notebook.save()
    notebook.page.get_by_role("button", name="Validate").click()
    notebook.page.get_by_text("checks run in a new kernel").first.wait_for()
    dialog = notebook.page.locator(".jp-Dialog")
    dialog.wait_for(timeout=90_000)
    text = dialog.inner_text()
    dialog.locator("button.jp-mod-accept").click()
    dialog.wait_for(state="detached")
    return text
