"""The figures of notebook 05: what they show, read from the artists, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.chapters.language_models import figures
from lmcourse.chapters.language_models.figures.distributions import place
from lmcourse.chapters.language_models.figures.prices import TRUTH
from lmcourse.chapters.language_models.figures.stories import losses_by_order, stories
from lmcourse.data.grammar import story_grammar
from tests.plots.figures import check_figure

WORDS = ("books", "laptops", "windows")
VECTORS = [[-1.0, 0.01, 0.51, 0.04], [1.0, 0.02, 0.47, 0.01], [0.97, 0.95, 0.69, 0.01]]


def coin(past: tuple[int, ...]) -> list[float]:
    return [0.25, 0.75] if sum(past) % 2 else [1.0, 0.0]


DRAWINGS: list[Callable[..., Figure]] = [
    partial(figures.simplex, WORDS, {"middle": [1 / 3] * 3, "corner": [0.0, 1.0, 0.0]}),
    partial(figures.probability_tree, ("a", "b"), coin, 3),
    partial(figures.probability_tree, ("a", "b", "c"), lambda past: [0.2, 0.3, 0.5], 3),
    figures.cross_entropy_bars,
    partial(figures.cross_entropy_bars, 0.98, 0.98, "bits"),
    partial(figures.ngram_loss, 10, 5),
    figures.token_surprise,
    partial(figures.token_surprise, "é"),
    partial(figures.token_surprise, "W" * 100),
    partial(figures.similarity, ("man", "woman", "queen"), VECTORS),
    figures.contexts_seen,
    *(partial(figures.work_grid, *sizes, reuse) for sizes in ((1, 1), (10, 12)) for reuse in (True, False)),
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=range(len(DRAWINGS)))
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


def test_points_of_the_triangle() -> None:
    assert place([0.0, 0.0, 1.0]) == pytest.approx((0.5, math.sqrt(3) / 2))
    assert place([0.5, 0.5, 0.0]) == pytest.approx((0.5, 0.0))
    for wrong in ([0.5, 0.6, -0.1], [0.5, 0.5], [0.3, 0.3, 0.3]):
        with pytest.raises(ValueError, match="no distribution"):
            figures.simplex(WORDS, {"wrong": wrong})
    with pytest.raises(ValueError, match="three words"):
        figures.simplex(("a", "b"), {})


def test_leaves_have_the_product_of_their_path() -> None:
    figure = figures.probability_tree(("a", "b"), coin, 2)
    leaves = {text.get_text() for text in figure.axes[0].texts if "  " in text.get_text()}
    assert leaves == {"a a   1.000", "a b   0.000", "b a   0.000", "b b   0.000"}
    assert "sum to 1.000" in plots.alt_text(figure)
    with pytest.raises(ValueError, match="27 leaves"):
        figures.probability_tree("abcd", coin, 3)


@pytest.mark.parametrize(("unit", "base"), [("nats", math.e), ("bits", 2.0)])
def test_the_bill_is_entropy_and_difference(unit: str, base: float) -> None:
    bill = figures.cross_entropy_bars(0.2, 0.5, unit).axes[1]
    entropy, difference = (bar.get_width() for bar in bill.patches)  # type: ignore[attr-defined]
    assert entropy == pytest.approx(-sum(p * math.log(p, base) for p in TRUTH))
    q = (0.2, 0.5, 0.3)
    assert difference == pytest.approx(sum(p * math.log(p / model, base) for p, model in zip(TRUTH, q, strict=True)))
    assert "0.000 difference" in plots.alt_text(figures.cross_entropy_bars(*TRUTH[:2], unit))
    dearest = figures.cross_entropy_bars(0.01, 0.01, unit).axes[1]
    assert sum(bar.get_width() for bar in dearest.patches) < dearest.get_xlim()[1]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="positive"):
        figures.cross_entropy_bars(0.0)


def test_the_desk_shows_memory_below_the_floor_and_no_model_below_it_on_new_text() -> None:
    floor = story_grammar().entropy_per_byte
    for count in (5, 20):
        seen, new, impossible = losses_by_order(count)
        assert (seen.diff() < 0).all()
        assert seen[9] < floor < new.min()
        assert (impossible.diff() >= 0).all()
    line = figures.ngram_loss(3, 5).axes[0].lines[2]
    np.testing.assert_allclose(np.asarray(line.get_ydata()), losses_by_order(5)[1].numpy())
    with pytest.raises(ValueError, match="n = 1 to 10"):
        figures.ngram_loss(11)


def test_letters_cost_what_the_text_costs() -> None:
    heights = [bar.get_height() for bar in figures.token_surprise("Ben is ö").axes[0].patches]  # type: ignore[attr-defined]
    assert len(heights) == 8
    assert heights[7] == max(heights), "a letter that no story has"
    assert stories(2, 0) == stories(3, 0)[: len(stories(2, 0))]
    for wrong in ("", "x" * 101):
        with pytest.raises(ValueError, match="between 1 and 100"):
            figures.token_surprise(wrong)


def test_cosines() -> None:
    alt = plots.alt_text(figures.similarity(("man", "woman", "queen"), VECTORS))
    assert "lowest woman and man -0.612" in alt
    assert "highest queen and woman 0.780" in alt
    with pytest.raises(ValueError, match="not zero"):
        figures.similarity(("a", "b"), [[0.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize(("prompt", "new"), [(1, 1), (4, 8), (3, 12)])
def test_the_work_is_counted_cell_by_cell(prompt: int, new: int) -> None:
    kept, again = (figures.work_grid(prompt, new, reuse) for reuse in (True, False))
    few, many = prompt + new - 1, sum(range(prompt, prompt + new))
    assert plots.alt_text(kept).endswith(f": {few} {'token' if few == 1 else 'tokens'} computed")
    assert plots.alt_text(again).endswith(f": {many} {'token' if many == 1 else 'tokens'} computed")
    with pytest.raises(ValueError, match="to begin with"):
        figures.work_grid(0, new)


def test_a_letter_that_not_every_font_has_is_a_box() -> None:
    [axes] = figures.token_surprise("a 日").axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "␣", "▯"]
