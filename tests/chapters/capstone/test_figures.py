"""The figures of notebook 20: described, with room for their text, and with the numbers of the tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.chapters.capstone import figures
from lmcourse.chapters.capstone.figures.defence import CHOICES
from lmcourse.chapters.capstone.recipe import DEPTHS, WIDTHS
from tests.plots.figures import check_figure

DONE = {"parameters": 5.0, "loss": 0.3}
DRAWINGS: list[Callable[..., Figure]] = [
    *(partial(figures.budget_card, width, layers) for width, layers in product(WIDTHS[::2], DEPTHS)),
    *(partial(figures.iso_flop, floor, runs) for floor, runs in product(("known", "zero"), ("small", "all"))),
    *(partial(figures.law_check, floor) for floor in ("known", "zero")),
    *(partial(figures.consensus, choice) for choice in CHOICES[:2]),
    partial(figures.predicted_and_measured, DONE, {"parameters": 5.0, "loss": 0.37}, {"parameters": 0.0, "loss": 0.1}),
    partial(figures.rate_by_width, {16: 8e9, 96: 3e10}),
    figures.slips_by_source,
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=range(len(DRAWINGS)))
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


def test_alt_texts_have_the_numbers_of_the_order() -> None:
    assert "memory 12.34 MiB 102.9%" in plots.alt_text(figures.budget_card(32, 4))
    assert "parameters inside, loss outside" in plots.alt_text(DRAWINGS[-3]())
    assert plots.alt_text(figures.slips_by_source()).startswith("blog notes: 17 wrong")
