"""Test the figure style: captions do not overlap, alt text is kept, PNGs are reproducible."""

import ast
import inspect
from itertools import pairwise
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.plots import display, style
from tests.plots.figures import check_figure, contrast


def labelled_figure() -> Figure:
    figure = plots.new_figure(6.0, 3.0)
    axes = plots.new_axes(figure, "title", "time (s)", "loss")
    axes.plot([0, 1], [1, 0])
    return plots.describe(figure, caption="What to see. " * 20, alt="a falling line")


def test_the_caption_is_below_the_axes_and_inside_the_figure() -> None:
    figure = labelled_figure()
    figure.draw_without_rendering()
    caption = figure._supxlabel.get_window_extent()
    assert caption.y1 <= figure.axes[0].get_tightbbox().y0
    assert caption.y0 >= 0
    assert figure.bbox.x0 <= caption.x0 < caption.x1 <= figure.bbox.x1
    assert figure._supxlabel.get_text().count("\n") >= 2


@pytest.mark.parametrize(("top", "labels"), [(4.5, ["1", "2", "3", "4"]), (45.0, ["$\\mathdefault{10^{0}}$"])])
def test_only_log_axes_shorter_than_a_decade_have_plain_numbers(top: float, labels: list[str]) -> None:
    figure = plots.new_figure(4.0, 3.0)
    axes = plots.new_axes(figure, "title", "step", "norm (log axis)")
    axes.semilogy([1, 2], [0.9, top])
    plots.describe(figure, caption="What to see.", alt="a rising line")
    figure.draw_without_rendering()
    ticks = [*axes.yaxis.get_major_ticks(), *axes.yaxis.get_minor_ticks()]
    shown = [tick.label1.get_text() for tick in ticks if 0.9 <= tick.get_loc() <= min(top, 5.0)]
    assert sorted(filter(None, shown)) == labels


def test_alt_text_is_kept_as_given() -> None:
    assert plots.alt_text(labelled_figure()) == "a falling line"
    assert plots.alt_text(Figure()) == "Figure without a description"


def test_the_same_figure_gives_the_same_png_without_naming_software() -> None:
    picture = plots.png(labelled_figure())
    assert picture == plots.png(labelled_figure())
    assert picture.startswith(b"\x89PNG")
    assert b"Matplotlib" not in picture


def test_a_figure_that_ends_a_cell_is_a_picture_with_alt_text() -> None:
    shell = InteractiveShell()
    display.install(shell)
    display.install(shell)
    data, metadata = shell.display_formatter.format(labelled_figure())
    assert data["text/plain"] == "a falling line"
    said = metadata["image/png"]
    assert (said["alt"], said["width"], said["caption"]) == ("a falling line", 576, " ".join(["What to see."] * 20))
    assert {"image/png": data["image/png"], "text/plain": data["text/plain"]} == {
        key: value if key == "text/plain" else data["image/png"]
        for key, value in plots.mimebundle(labelled_figure())[0].items()
    }


def test_names_of_four_lines_are_written_beside_them() -> None:
    def drawn(count: int) -> Figure:
        figure = plots.new_figure()
        axes = plots.new_axes(figure, "title")
        for height, (name, colour) in enumerate([*plots.PALETTE.items()][:count]):
            axes.plot([0, 1], [height, 1 + height / 100], color=colour, label=name)
        axes.legend()
        return plots.describe(figure, caption="What to see. " * 20, alt="Four lines that meet at the right.")

    (axes,) = check_figure(drawn(4)).axes
    assert axes.get_legend() is None
    assert [text.get_text() for text in axes.texts] == ["blue", "orange", "green", "vermilion"]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert all(below.y1 < above.y0 + 2 for below, above in pairwise(boxes)), "no name lies on another"
    (axes,) = drawn(3).axes
    assert axes.get_legend() is not None
    assert not axes.texts


def test_a_name_of_the_legend_alone_is_written_beside_its_colour() -> None:
    figure = plots.new_figure(6.0, 3.0)
    axes = plots.new_axes(figure, "title", "step", "loss")
    for end, colour in enumerate(("C0", "C1", "C2", "C3")):
        axes.plot([0, 1], [0, end], color=colour)
        axes.plot([], [], color=colour, label=f"run {end}")
    axes.legend()
    plots.describe(figure, caption="Four runs, from one start to four different ends.", alt="four rising lines")
    assert [(name.get_text(), *name.xy) for name in axes.texts] == [(f"run {end}", 1, end) for end in range(4)]
    assert axes.get_legend() is None


def test_code_is_drawn_without_backticks() -> None:
    figure = plots.new_figure(6.0, 3.0)
    axes = plots.new_axes(figure, "`fit`", "step", "loss")
    axes.plot([0, 1], [0, 1], label="`recipe`")
    axes.set_yticks([0, 1], ["given", "`recipe`"])
    axes.legend()
    plots.describe(figure, caption="The line of `recipe` rises from the given one.", alt="`recipe` rises")
    names = [
        axes.get_title(loc="left"),
        axes.get_legend().get_texts()[0].get_text(),
        axes.get_yticklabels()[1].get_text(),
    ]
    assert names == ["fit", "recipe", "recipe"]
    assert figure._supxlabel.get_text() == "The line of “recipe” rises from the given one."


@pytest.mark.parametrize("name", plots.PALETTE)
def test_text_on_a_colour_is_readable_in_both_themes(name: str) -> None:
    def between(*colours: str, inverted: bool) -> float:
        shown = [inverse(to_rgb(colour)) if inverted else to_rgb(colour) for colour in colours]
        bright, dark = sorted((1.05 / contrast(colour) for colour in shown), reverse=True)
        return bright / dark

    colour = plots.PALETTE[name]
    assert all(between(colour, style.ink_on(colour), inverted=inverted) > 3 for inverted in (False, True))


def test_no_colour_of_the_palette_vanishes_on_a_dark_page() -> None:
    page = contrast(inverse((1, 1, 1)))
    assert all(page / contrast(inverse(to_rgb(colour))) > 3 for colour in plots.PALETTE.values())


def inverse(colour: tuple[float, float, float]) -> tuple[float, ...]:
    """Return a colour as `invert(0.93) hue-rotate(180deg)` shows it, the filter of figures on dark pages."""
    red, green, blue = (0.93 - 0.86 * part for part in colour)
    grey = 0.213 * red + 0.715 * green + 0.072 * blue
    return tuple(min(1.0, max(0.0, 2 * grey - part)) for part in (red, green, blue))


def test_a_shell_without_display_is_rejected() -> None:
    shell = InteractiveShell()
    shell.display_formatter = None
    with pytest.raises(ValueError, match="no display formatter"):
        display.install(shell)


def test_no_plot_uses_pyplot() -> None:
    for path in Path(inspect.getfile(style)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert "pyplot" not in " ".join([module, *names]), path.name
