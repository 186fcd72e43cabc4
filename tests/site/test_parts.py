"""Test the parts of the site that need no page: calls, stops, frames, cards."""

from __future__ import annotations

import base64
import io
from itertools import combinations as combinations_of
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

from lmcourse import plots
from lmcourse.base.errors import CourseError
from lmcourse.chapters.floating_point import figures
from lmcourse.course.chapters import CHAPTERS, Chapter, find_chapter
from lmcourse.site.blocks import still
from lmcourse.site.builder import MISSING, build_site
from lmcourse.site.code_lines import table_rows
from lmcourse.site.explorables import MAX_ALL, Explorable, combinations, stops_of
from lmcourse.site.figure_calls import find_figure
from lmcourse.site.formulas import NODE, render_formulas
from lmcourse.site.frames import Frame, Picture
from lmcourse.site.pages import above_caption
from lmcourse.site.papers import link_sources
from lmcourse.widgets.controls import make_control
from tests.course.chapters import prose
from tests.site.asked import ASKED, OTHER, told_to_move

IMPORTS = "from lmcourse.chapters.floating_point import figures\nfrom lmcourse.widgets import Log"


def explored(call: str, imports: str = IMPORTS) -> Explorable:
    found = find_figure(f"explore(figures.{call})", imports)
    assert found is not None
    return Explorable(found)


def test_a_call_is_understood_without_running_the_notebook() -> None:
    found = find_figure('kinds = ["e4m3", "e5m2"]\nexplore(figures.code_grid, format=kinds, code=(0, 255))', IMPORTS)
    assert found is not None
    assert found.draw is figures.code_grid
    assert list(found.controls) == ["format", "code"]


def test_figures_of_computed_values_are_static() -> None:
    assert find_figure("explore(figures.code_grid, code=(0, largest))", IMPORTS) is None
    assert find_figure("figures.code_grid()", IMPORTS) is None


def test_a_slider_has_stops_at_both_ends_and_its_start() -> None:
    shown = explored("quantisation_error, scale=Log(0.001, 10000.0, 10)")
    (scale,) = shown.stops
    assert next(iter(shown.frames)) == (scale.start,)
    assert [scale.values[at] for at in (0, scale.start, -1)] == [0.001, 1.0, 10000.0], "1 is the function's default"


def test_figures_with_few_settings_draw_all() -> None:
    shown = explored('code_grid, format=["e4m3", "e5m2"], code=(0, 9)')
    assert len(shown.frames) == 2 * 10 <= MAX_ALL


def test_an_element_is_chosen_in_every_view() -> None:
    call = 'stride_map, view=["x", "x.t()"], row=(0, 3), column=(0, 3)'
    assert len(explored(call, "from lmcourse.chapters.tensors import figures").frames) == 2 * 4 * 4


FIVE = {name: make_control(name, ["a", "b", "c", "d"], "b") for name in ("v", "w", "x", "y")}
FIVE["z"] = make_control("z", (0, 90), 45)


@pytest.mark.parametrize(
    ("decorator", "message"),
    [
        (plots.stops(zz=(0, 45)), "five has no parameter zz; it has v, w, x, y, z"),
        (plots.stops(z=(0, 46, 90)), "five: z is never 45, only 0, 46, 90"),
        (plots.stops(z=(0, 45, 900)), "five: z goes from 0 to 90, and its stops are .0, 45, 900."),
        (plots.drawn_together("v", w=("e",)), "five: w is never 'e', only a, b, c, d"),
    ],
)
def test_a_misspelt_parameter_or_stop_is_refused(decorator: Any, message: str) -> None:
    def five(v: str, w: str, x: str, y: str, z: int) -> Figure:
        return Figure()

    with pytest.raises((TypeError, ValueError), match=message):
        combinations(five, *stops_of(decorator(five), FIVE))


def test_with_too_many_settings_each_value_and_pair_of_ends_is_drawn() -> None:
    controls, all_drawn = stops_of(figures.spacing, FIVE)
    assert not all_drawn
    settings = combinations(figures.spacing, controls, all_drawn)
    start = settings[0]
    assert {sum(a != b for a, b in zip(start, one, strict=True)) for one in settings} == {0, 1, 2}
    ends = [{0, len(c.values) - 1} for c in controls]
    for (i, some), (j, others) in combinations_of(enumerate(ends), 2):
        assert {(a, b) for a in some for b in others} <= {(one[i], one[j]) for one in settings}
    assert all({one[i] for one in settings} == set(range(len(c.values))) for i, c in enumerate(controls))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.id)
def test_each_sentence_about_controls_is_tried_on_the_page(chapter: Chapter) -> None:
    known = (*OTHER, *(sentence for _, sentence, _ in ASKED.get(chapter.number, ())))
    sentences = told_to_move(prose(chapter))
    assert [s for s in sentences if not any(one in s for one in known)] == []


def test_only_a_function_of_the_package_has_frames() -> None:
    def own() -> Figure:
        return Figure()

    with pytest.raises(ValueError, match="not a function of the package"):
        Frame.of(own, {})


def test_stored_picture_is_cut_above_its_caption() -> None:
    figure = plots.new_figure(6.0, 3.0)
    plots.new_axes(figure, "title", "time (s)", "loss")
    data, metadata = plots.mimebundle(plots.describe(figure, caption="What to see. " * 20, alt="axes"))
    said = metadata["image/png"]
    figure._supxlabel.set_color("white")  # type: ignore[attr-defined]
    pictures = [Image.open(io.BytesIO(body)) for body in (base64.b64decode(data["image/png"]), plots.png(figure))]
    shown, blank = pictures
    cut = above_caption(shown, said)
    assert cut.tobytes() == above_caption(blank, said).tobytes(), "nothing of the caption is left"
    below = blank.crop((0, cut.height, blank.width, blank.height)).convert("L")
    assert below.getextrema() == (255, 255), "nothing else is cut off"
    assert shown.crop((0, cut.height, shown.width, shown.height)).convert("L").getextrema() != (255, 255)
    assert above_caption(shown, {"width": 576}) is shown
    assert f"<figcaption>{said['caption']}" in still(Picture("a.webp", "axes", 576, 200, said["caption"]), "figure-1")


@pytest.mark.skipif(not NODE, reason="without Node.js a script renders the formulas")
def test_formulas_are_rendered_in_order() -> None:
    half, block = render_formulas([("½ x", False), ("y", True)])
    assert "mfrac" in half, "KaTeX has no such sign"
    assert "katex-display" in block
    assert "katex-display" not in half


def test_names_of_the_package_link_to_files_that_exist() -> None:
    text = "`lmcourse/nn/`, `lmcourse.accounting.live`, `lmcourse.nn.attend` and `lmcourse.unknown.name`"
    place = "https://example.org/blob/main/lmcourse"
    assert link_sources(text, "") == text
    assert link_sources(text, "https://example.org") == (
        f"[`lmcourse/nn/`]({place}/nn), [`lmcourse.accounting.live`]({place}/accounting/live.py), "
        f"[`lmcourse.nn.attend`]({place}/nn/attend.py) and `lmcourse.unknown.name`"
    )


def test_without_sphinx_the_command_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmcourse.site.builder.find_spec", lambda name: None if name == "myst_nb" else object())
    with pytest.raises(CourseError) as caught:
        build_site(tmp_path, tmp_path / "out", [])
    assert str(caught.value) == MISSING


def test_a_foreign_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(CourseError, match="contains files that are not from a site"):
        build_site(tmp_path, tmp_path, [find_chapter("01")])
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_rows_of_a_printed_table_may_have_full_columns() -> None:
    table = ["10 words, tanh       (1.0, 1.0)", "20 words, a long LSTM (0.5, 0.9)", "20 words, bias 1     (0.4, 0.3)"]
    shifted = [table[0], table[1].replace("long ", "lng "), table[2], "All in (at most) 3 s"]
    assert table_rows(shifted) == {0, 1, 2}
    assert table_rows(table) == {0, 2}
    assert table_rows(shifted[:2]) == set()
