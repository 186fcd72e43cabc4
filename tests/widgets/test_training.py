"""The live plot of a run shows a sketch during the run and the figure at its end, in one output."""

from __future__ import annotations

import base64
import html
import inspect
import os
import re
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from lmcourse import plots
from lmcourse.widgets import LivePlot
from lmcourse.widgets.live import image_html
from lmcourse.widgets.training import ALT_TEXT, HEIGHT, MAX_POINTS, WIDTH, sketch

WIDGET = "application/vnd.jupyter.widget-view+json"
SVG = "{http://www.w3.org/2000/svg}"


class Clock:
    """A clock that tests advance."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def record(step: int) -> dict[str, Any]:
    told = {"step": step, "tokens": 512 * step, "loss": 1 + 4 / step, "learning_rate": 1e-3, "gradient_norm": 1.0}
    return told | {"tokens_per_second": 5130.4}


def curve(svg: str) -> list[tuple[float, float]]:
    (line,) = ElementTree.fromstring(svg).iter(f"{SVG}polyline")
    return [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]  # type: ignore[misc]


def test_live_plot_redraws_once_per_interval(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    shown = []
    with LivePlot(clock=clock) as plot:
        for step in range(1, 41):
            clock.seconds = step / 10
            plot(record(step))
            shown.append(plot.view.value)
    changes = [step for step in range(2, 41) if shown[step - 1] != shown[step - 2]]
    assert changes == [11, 21, 31]
    assert capsys.readouterr().out == f"{ALT_TEXT}\n"


def test_the_sketch_has_numbers_and_a_description() -> None:
    with LivePlot(entropy=0.5) as plot:
        plot(record(4))
        alt, source, numbers = re.findall(r'^<img alt="(.*?)" src="(.*?)"><div>(.*)</div>$', plot.view.value)[0]
    assert html.unescape(numbers) == "step 4 · loss 2.000 (mean of 1 step) · 5,130 tokens/s"
    assert alt == f"Sketch of the loss. {numbers}"
    svg = base64.b64decode(source.removeprefix("data:image/svg+xml;base64,")).decode()
    assert svg == sketch([2.0], 0.5)


@pytest.mark.parametrize("count", [1, MAX_POINTS + 1, 100_000])
def test_the_sketch_goes_from_the_first_value_to_the_last(count: int) -> None:
    values = [5.0 - 4 * i / count for i in range(count)]
    points = curve(sketch(values))
    assert (points[0][0], points[-1][0]) == (0, WIDTH)
    assert len(points) <= MAX_POINTS + 1
    heights = [y for _, y in points]
    assert heights == sorted(heights), "a falling loss falls on the screen: y grows downwards"
    texts = [text.text for text in ElementTree.fromstring(sketch(values)).iter(f"{SVG}text")]
    assert texts == [f"{values[0]:.3f}", f"{values[-1]:.3f}"]


def test_the_sketch_keeps_all_points_inside() -> None:
    svg = sketch([3.0, 1.0, 2.0], baseline=0.25)
    (floor,) = ElementTree.fromstring(svg).iter(f"{SVG}path")
    height = float(floor.attrib["d"].split("H")[0].split()[1])
    assert all(0 < y < height < HEIGHT for _, y in curve(svg))


def test_the_final_picture_is_the_figure_of_the_run() -> None:
    with LivePlot(entropy=0.5) as plot:
        for step in range(1, 31):
            plot(record(step))
    figure = plots.training_curves([record(step) for step in range(1, 31)], entropy=0.5)
    drawn = plots.mimebundle(figure)
    assert plot.view.value == image_html(drawn)
    data, metadata = plot._repr_mimebundle_()
    assert data["image/png"] == drawn[0]["image/png"]
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"] == plots.alt_text(figure)


def test_a_drawing_error_is_shown() -> None:
    with pytest.raises(KeyError, match="loss"), LivePlot() as plot:
        plot({"step": 1})


CELL = f"""
from typing import Any
from lmcourse.widgets import LivePlot
{inspect.getsource(record)}
with LivePlot(entropy=0.5, seconds=0.0) as plot:
    for step in range(1, 31):
        plot(record(step))
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> NotebookNode:
    """An executed notebook with a live plot, a plot without steps, and a plot whose run fails."""
    from nbclient import NotebookClient

    cells = [CELL, "with LivePlot():\n    pass", "with LivePlot() as plot:\n    plot(record(1))\n    1 / 0"]
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True)
    client.execute(env={**os.environ, "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))})
    return notebook


@pytest.mark.prove
def test_live_plot_in_a_kernel_is_one_output(executed: NotebookNode) -> None:
    nbformat.validate(executed)
    (output,) = executed.cells[0].outputs
    assert output.output_type == "display_data"
    assert set(output.data) == {WIDGET, "image/png", "text/plain"}
    figure = plots.training_curves([record(step) for step in range(1, 31)], entropy=0.5)
    assert output.metadata["image/png"]["alt"] == plots.alt_text(figure)
    state = executed.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    assert output.metadata["image/png"]["alt"] in state[output.data[WIDGET]["model_id"]]["state"]["value"]


@pytest.mark.prove
def test_the_text_is_the_same_at_the_start_and_at_the_end(executed: NotebookNode) -> None:
    """nbval compares only the text of the first output with the stored text."""
    texts = [cell.outputs[0].data["text/plain"] for cell in executed.cells]
    assert texts == [ALT_TEXT] * 3
    assert "image/png" not in executed.cells[1].outputs[0].data


@pytest.mark.prove
def test_a_run_that_fails_in_a_kernel_shows_picture_and_error(executed: NotebookNode) -> None:
    picture, error = executed.cells[2].outputs
    assert "image/png" in picture.data
    assert (error.output_type, error.ename) == ("error", "ZeroDivisionError")
