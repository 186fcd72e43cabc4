"""Controls change the picture, errors are shown, and the static figure never changes."""

import base64
import math
import re
from typing import Any

import ipywidgets
import pytest
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.plots import display
from lmcourse.widgets import Explorer, Log, explore
from lmcourse.widgets.controls import make_control, read


def png_of(image: str) -> bytes:
    """Return the PNG inside an <img> tag."""
    return base64.b64decode(re.findall(r'base64,([^"]+)"', image)[0])


def draw_line(slope: float = 2.0, kind: str = "solid", *, grid: bool = False) -> Figure:
    if slope < 0:
        raise ValueError("only <rising> lines\nare drawn")
    figure = plots.new_figure(3.0, 2.0)
    axes = plots.new_axes(figure, f"slope {slope}")
    axes.plot([0, 1], [0, slope], linestyle=kind)
    axes.grid(visible=grid)
    return plots.describe(figure, caption="A line.", alt=f'a "{kind}" line of slope {slope:g}')


@pytest.fixture
def line() -> Explorer:
    return explore(draw_line, slope=(-4.0, 4.0), kind=["dashed", "solid"], grid=False)


def test_controls_start_at_the_defaults_of_the_function(line: Explorer) -> None:
    assert line.arguments == {"slope": 2.0, "kind": "solid", "grid": False}
    row, picture = line.children
    assert (row.children, picture) == ((*line.controls.values(),), line.picture)


def test_the_first_picture_is_the_figure_of_the_defaults(line: Explorer) -> None:
    assert png_of(line.picture.value) == plots.png(draw_line())
    data, _ = line._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]) == plots.png(draw_line())


def test_moving_a_control_does_not_change_the_static_picture(line: Explorer) -> None:
    before, _ = line._repr_mimebundle_()
    line.controls["slope"].value = 3.0
    assert png_of(line.picture.value) == plots.png(draw_line(3.0))
    line.controls["kind"].value = "dashed"
    assert png_of(line.picture.value) == plots.png(draw_line(3.0, "dashed"))
    assert line._repr_mimebundle_()[0] == before


def test_an_error_is_shown_in_one_red_line_and_raised(line: Explorer) -> None:
    with pytest.raises(ValueError, match="rising"):
        line.controls["slope"].value = -1.0
    shown = line.picture.value
    assert "ValueError: only &lt;rising&gt; lines" in shown
    assert 'role="alert"' in shown
    assert "color: #B3261E" in shown
    assert "<img" not in shown
    assert "\n" not in shown
    line.controls["slope"].value = 1.0
    assert png_of(line.picture.value) == plots.png(draw_line(1.0))


def test_an_error_in_the_first_drawing_stops_the_cell() -> None:
    with pytest.raises(ValueError, match="rising"):
        explore(draw_line, slope=-1.0)


def test_one_output_has_the_widget_the_picture_and_the_text(line: Explorer) -> None:
    data, metadata = InteractiveShell().display_formatter.format(line)
    assert set(data) == {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"}
    view = data["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == line._box.model_id
    assert data["text/plain"] == 'a "solid" line of slope 2'
    assert metadata["image/png"]["alt"] == 'a "solid" line of slope 2'


def test_the_alt_text_is_safe_inside_the_image(line: Explorer) -> None:
    assert re.match(r'<img alt="a &quot;solid&quot; line of slope 2" width="288"', line.picture.value)


def test_parameters_that_do_not_exist_are_named() -> None:
    with pytest.raises(TypeError, match="draw_line has no parameter colour; it has slope, kind, grid"):
        explore(draw_line, colour=["red"])


def test_a_number_fixes_an_argument_without_a_control() -> None:
    explorer = explore(draw_line, slope=3, kind=["solid", "dashed"])
    assert explorer.arguments["slope"] == 3
    assert explorer.children[0].children == (explorer.controls["kind"],)


@pytest.mark.parametrize(
    ("control", "default", "kind", "start"),
    [
        ((0, 10), 4, ipywidgets.IntSlider, 4),
        ((0, 10), 40, ipywidgets.IntSlider, 0),
        ((0.0, 1.0), 0.5, ipywidgets.FloatSlider, 0.5),
        ((0, 1, 0.25), None, ipywidgets.FloatSlider, 0),
        (Log(8, 1000), 64, ipywidgets.SelectionSlider, 64),
        (Log(8, 1000), 65, ipywidgets.SelectionSlider, 8),
        (Log(0.1, 10.0), 1.0, ipywidgets.FloatLogSlider, 1.0),
        (["a", "b"], "b", ipywidgets.ToggleButtons, "b"),
        (list("abcdefg"), "z", ipywidgets.Dropdown, "a"),
        (True, False, ipywidgets.Checkbox, True),
        ("text", None, ipywidgets.Text, "text"),
    ],
)
def test_every_abbreviation_makes_its_control(control: Any, default: Any, kind: type, start: Any) -> None:
    widget = make_control("heads_per_layer", control, default)
    assert type(widget) is kind
    assert widget.value == start
    assert widget.description == "heads per layer"


def test_sliders_take_the_given_numbers() -> None:
    assert make_control("x", (0, 10, 5), None).step == 5
    assert make_control("x", (0.0, 5.0), None).step == pytest.approx(0.05)
    options = make_control("x", Log(8, 1000), None).options
    assert options == (8, 16, 32, 64, 128, 256, 512)
    assert make_control("x", Log(1, 1000, base=10), None).options == (1, 10, 100, 1000)


@pytest.mark.parametrize(("control", "default"), [((-8.0, 8.0), 0.3), ((0.0, 1.0), 0.0)], ids=str)
def test_a_float_slider_starts_on_one_of_its_steps(control: tuple[float, float], default: float) -> None:
    slider = make_control("x", control, default)
    assert slider.value == default
    steps = (default - control[0]) / slider.step
    assert steps == pytest.approx(round(steps), abs=1e-9)
    assert 40 < (control[1] - control[0]) / slider.step < 200


def test_a_log_slider_starts_on_one_of_its_steps() -> None:
    slider = make_control("x", Log(0.5, 64.0), 8.0)
    steps = (math.log10(slider.value) - slider.min) / slider.step
    assert steps == pytest.approx(round(steps), abs=1e-9)


def test_rounding_noise_of_a_browsers_slider_is_removed() -> None:
    slider = make_control("x", (-8.0, 8.0), 1.0)
    slider.value = -8.881784197001252e-16
    assert str(read(slider)) == "0.0"
    slider = make_control("x", Log(0.5, 64.0), 1.0)
    slider.value = 7.999999999999999
    assert read(slider) == 8.0


@pytest.mark.parametrize("control", [(2, 1), (0, 1, 2, 3), []])
def test_impossible_controls_are_rejected(control: Any) -> None:
    with pytest.raises(ValueError, match="x="):
        make_control("x", control, None)


def test_unknown_abbreviations_are_rejected() -> None:
    with pytest.raises(TypeError, match="x=None is not a control"):
        make_control("x", None, None)
    with pytest.raises(ValueError, match="0 < low < high"):
        Log(0, 1)


def test_a_new_explorer_draws_its_figure_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture takes a tenth of a second, and a notebook has about a dozen."""
    drawn: list[Figure] = []
    once = display.png
    monkeypatch.setattr(display, "png", lambda figure: drawn.append(figure) or once(figure))
    explorer = explore(draw_line, slope=(1.0, 3.0))
    explorer._repr_mimebundle_()
    assert len(drawn) == 1
