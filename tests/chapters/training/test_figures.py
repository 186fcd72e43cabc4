"""The figures of notebook 13: what they show, read from the artists and the alt text, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from typing import Any

import pytest
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.chapters.training import figures
from lmcourse.chapters.training.exercises import delayed_scale, sweep_steps
from lmcourse.chapters.training.figures import machines, stored
from lmcourse.chapters.training.figures.schedules import KINDS
from lmcourse.chapters.training.figures.stored_runs import LADDER, REGULARIZED, RUNGS, SIDE_STEPS, TWO_TEXTS
from lmcourse.training.metrics import Record
from tests.plots.figures import check_figure

RECORDS: list[Record] = [
    {"step": n, "loss": 6 / n, **({"validation_loss": 6.5 / n} if n % 5 == 0 else {})} for n in range(1, 21)
]
DRAWINGS: list[Callable[..., Figure]] = [
    partial(figures.spread_by_layer, {"a": [1.0, 22.0, 5e20], "b": [1.0, 0.9, 1.1]}),
    partial(figures.run_with_yardsticks, RECORDS, {"guessing": 6.24, "pairs": 0.3}),
    partial(figures.resumed_runs, {"all": [0.0, 0.0], "moments": [0.0, 0.1], "place": [0.2, 0.1]}),
    *(partial(figures.schedule, kind, *choice) for kind in KINDS for choice in ((0.0, 0.0, 0.0), (0.5, 0.5, 1.0))),
    *(partial(figures.trunk_and_branches, *choice) for choice in product((2, 6), (0.05, 0.5))),
    *(partial(figures.ladder, show) for show in stored.CHOICES),
    partial(figures.ladder, "all", {"yours": [3.1, 3.2]}),
    figures.two_texts,
    *(partial(figures.delayed_scaling, *choice) for choice in ((1, 0, 100.0), (64, 3, 1.0), (16, 0, 8.0))),
    *(partial(figures.memory_and_work, layers) for layers in (4, 96, 128)),
    partial(figures.race, {"AdamW": [(0.1, 6.2), (0.2, 5.1)], "Muon": [(0.2, 6.2), (0.4, 4.1)]}),
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=range(len(DRAWINGS)))
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


def test_alt_texts_are_computed_from_what_is_shown() -> None:
    assert "a 5e+20; b 1e+00" in plots.alt_text(DRAWINGS[0]())
    assert plots.alt_text(DRAWINGS[1]()).endswith("below: guessing")
    assert "all: equal to the last bit; moments: wrong from step 2 on; place: wrong from step 1 on" in plots.alt_text(
        DRAWINGS[2]()
    )
    assert plots.alt_text(DRAWINGS[-1]()).endswith("Muon ends lowest")
    assert "0.020 at step 0, 1.000 at step 100, 0.123 at step 199" in plots.alt_text(figures.schedule())


@pytest.mark.parametrize(("lengths", "decay"), [(2, 0.05), (4, 0.2), (6, 0.5)])
def test_the_tree_of_runs_costs_what_the_exercise_says(lengths: int, decay: float) -> None:
    ends = [100 * 2**n for n in range(lengths)]
    cosines, trunk = sweep_steps.reference(ends, [round(decay * end) for end in ends])
    assert f"{cosines} steps as cosines, {trunk} with one trunk" in plots.alt_text(
        figures.trunk_and_branches(lengths, decay)
    )


@pytest.mark.parametrize(("history", "margin"), [(1, 0), (16, 0), (16, 2)])
def test_overflows_are_those_of_the_exercises_scales(history: int, margin: int) -> None:
    shares = machines.scaled_maxima(history, margin, 8.0)
    maxima = [share * 2**margin for share in machines.scaled_maxima(1, 0, 8.0)]
    sizes = [1.0]
    for ratio in maxima[1:]:  # with a history of one, each share is the ratio to the maximum before it
        sizes.append(sizes[-1] * ratio / 2**margin)
    for step in range(1, machines.STEPS):
        scale = delayed_scale.reference(sizes[max(0, step - history) : step], 1.0, machines.E4M3_MAX, margin)
        assert shares[step] == pytest.approx(sizes[step] * scale / machines.E4M3_MAX)
    over = sum(share > 1 for share in shares)
    assert f"{over} of {machines.STEPS} overflow" in plots.alt_text(figures.delayed_scaling(history, margin, 8.0))


def test_stored_runs_have_a_result_for_each_recipe_and_the_text_reads_them_right() -> None:
    assert list(LADDER) == [*RUNGS, *SIDE_STEPS]
    assert list(TWO_TEXTS) == [(text, name) for text in ("once", "fifteen times") for name in REGULARIZED]
    assert all(len(ends) == 3 for ends in LADDER.values())
    names = list(RUNGS)
    for before, after in pairwise(names):
        settings: list[dict[str, Any]] = [vars(RUNGS[name]) for name in (before, after)]
        assert sum(settings[0][key] != settings[1][key] for key in settings[0]) == 1, "one choice at a time"
    with pytest.raises(ValueError, match="no 'ladder'"):
        figures.ladder("ladder")
    assert "yours" not in plots.alt_text(figures.ladder("all", {"yours": [3.0]}))
