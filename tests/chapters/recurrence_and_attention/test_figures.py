"""The figures of notebook 06: what they show, read from the artists, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lmcourse import plots
from lmcourse.chapters.recurrence_and_attention import figures
from lmcourse.chapters.recurrence_and_attention.exercises import attend_source, teacher_inputs, waiting
from lmcourse.chapters.recurrence_and_attention.figures.drawings import ready_at
from lmcourse.chapters.recurrence_and_attention.figures.stand_ins import OURS
from tests.plots.figures import check_figure

WEIGHTS = torch.tensor([[0.1, 0.2, 0.7], [0.05, 0.9, 0.05], [1.0, 0.0, 0.0]])
SHARES = {
    "one": {2: [1.0, 1.0], 12: [0.05, 0.1], 20: [0.0, 0.0]},
    "two": {2: [1.0, 1.0], 12: [0.7, 0.8], 20: [0.3, 0.1]},
}
FORCED = torch.tensor([[True, True, False, True], [True, True, True, True]])
FREE = torch.tensor([[True, True, False, False], [True, True, True, True]])
DRAWINGS: list[Callable[..., Figure]] = [
    figures.unrolled,
    partial(figures.unrolled, 6, False),
    partial(figures.unrolled, 1),
    figures.dependency_grid,
    partial(figures.dependency_grid, 3, 1),
    figures.soft_table,
    partial(figures.soft_table, 0.01),
    partial(figures.soft_table, 100.0),
    figures.size_against_context,
    figures.gradient_lag,
    partial(figures.gradient_lag, "linear", 0.5, 0.0, 0.0),
    partial(figures.gradient_lag, "lstm", 1.0, 5.0, 1.0),
    partial(figures.compare_networks, {"a": {"kind": "linear"}, "b": {"kind": "lstm", "forget_bias": 1.0}}),
    partial(figures.right_rows, SHARES, (2, 12)),
    partial(figures.alignment, WEIGHTS, "abc", "xyz"),
    partial(figures.alignment, WEIGHTS, "abc", "xyz", 2),
    partial(figures.forced_and_free, FORCED, FREE),
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=range(len(DRAWINGS)))
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


def test_a_linear_gradient_is_a_power_of_the_matrix_and_a_bent_one_fades() -> None:
    linear = figures.gradient_norms("linear", 1.1)
    ratios = linear[1:] / linear[:-1]
    assert linear[0].item() == pytest.approx(1.0)
    assert 1.0 < ratios[30:].log().mean().exp().item() < 1.2
    assert torch.equal(linear, figures.gradient_norms("linear", 1.1, inputs=0.0))
    assert (figures.gradient_norms("tanh", 1.1) < linear + 1e-12).all()
    with pytest.raises(ValueError, match="there is no kind 'gru'"):
        figures.gradient_norms("gru")


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_what_the_text_says_of_fading_holds_for_other_seeds(seed: int) -> None:
    def left(kind: str, radius: float = 1.0, forget_bias: float | None = None) -> float:
        return figures.gradient_norms(kind, radius, forget_bias, seed=seed)[50].item()

    assert left("tanh", 1.0) < 1e-9 < left("tanh", 1.5) < 1e-3
    assert left("lstm") < 1e-9 < left("lstm", 1.0, 1.0) < 1e-3 < left("lstm", 1.0, 3.0)
    assert left("linear", 1.5) > 1e7


def test_the_numbers_in_the_grid_are_those_of_the_exercise() -> None:
    for words, layers in ((8, 3), (1, 1), (5, 2)):
        for kind in ("rnn", "attention"):
            assert ready_at(kind, words, layers)[-1][-1] == waiting.reference(kind, words, layers)[0]
    shown = [[int(text.get_text()) for text in axes.texts] for axes in figures.dependency_grid(3, 2).axes]
    assert shown == [[1, 2, 3, 2, 3, 4], [1, 1, 1, 2, 2, 2]]
    with pytest.raises(ValueError, match="rnn or attention"):
        ready_at("lstm", 2, 2)


def test_the_table_is_hard_when_cold_and_an_average_when_hot() -> None:
    titles = [figures.soft_table(temperature).axes[0].get_title(loc="left") for temperature in (0.01, 1.0, 1e6)]
    assert [title.split()[-1] for title in titles] == ["10.00", "11.49", "20.00"]
    with pytest.raises(ValueError, match="above 0"):
        figures.soft_table(0.0)


def test_alt_texts_say_what_was_found() -> None:
    assert "one: fewer than a fifth at length 12" in plots.alt_text(figures.right_rows(SHARES, (2, 12)))
    assert "two: more than half at length 12, some at 20" in plots.alt_text(figures.right_rows(SHARES, (2, 12)))
    marked = figures.alignment(WEIGHTS, "abc", "xyz", 2)
    assert plots.alt_text(marked).endswith("most at: y at b (word 2)")
    assert marked.axes[0].get_title(loc="left").endswith("step 2 says y")
    assert "behind" in plots.alt_text(figures.forced_and_free(FORCED, FREE))
    assert "alike" in plots.alt_text(figures.forced_and_free(FREE, FREE))


def missing(*_: Any) -> Tensor:
    raise NotImplementedError


def doubled(s: Tensor, h: Tensor, real: Tensor) -> Tensor:
    return 2 * torch.cat([s, s], dim=-1)


def test_the_readers_answers_are_used_when_right_and_ours_until_then() -> None:
    s, h = torch.randn(4, 3, 8), torch.randn(4, 5, 8)
    theirs, whose = figures.attention_or_ours(lambda s, h, real: torch.cat([(s @ h.T).softmax(-1) @ h, s], -1))
    ours, other = figures.attention_or_ours(missing)
    torch.testing.assert_close(theirs(s, h), ours(s, h))
    expected = torch.stack([attend_source.reference(*pair, torch.ones(5).bool()) for pair in zip(s, h, strict=True)])
    torch.testing.assert_close(ours(s, h), expected)
    assert (whose, other, figures.attention_or_ours(doubled)[1]) == ("yours", OURS, OURS)
    torch.testing.assert_close(figures.looks(s, h) @ h, expected[..., :8])


def test_teacher_inputs_are_used_when_right_and_ours_until_then() -> None:
    rows = torch.randint(1, 9, (3, 5))
    theirs, whose = figures.teacher_or_ours(
        lambda target, start: target.roll(1, 1).index_fill(1, torch.tensor(0), start)
    )
    ours, other = figures.teacher_or_ours(missing)
    assert torch.equal(theirs(rows, 0), ours(rows, 0))
    assert torch.equal(ours(rows, 0), teacher_inputs.reference(rows, 0))
    assert (whose, other, figures.teacher_or_ours(lambda target, start: target)[1]) == ("yours", OURS, OURS)
