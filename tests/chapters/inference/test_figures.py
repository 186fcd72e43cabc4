"""The figures of notebook 17: what they show, read from the artists and the alt text, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from matplotlib.figure import Figure

from lmcourse import plots
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.parameters import count_parameters
from lmcourse.chapters.inference import figures
from lmcourse.chapters.inference.exercises import batch_use, pass_seconds
from lmcourse.chapters.inference.figures.drafts import speed_up
from lmcourse.chapters.inference.figures.serving import REQUESTS, schedule
from lmcourse.models.zoo import find_model
from tests.plots.figures import check_figure

SURE, UNSURE = figures.BEGINNINGS
RULES = {"greedy": (1.0, 2.0), "T = 1": (2.0, 2.0), "T = 2, top-p 0.9": (4.8, 2.1)}
DRAWINGS: list[Callable[..., Figure]] = [
    partial(figures.text_tree, {"a": 0.6, "b": 0.4}, {"a": {"c": 0.7, "d": 0.3}, "b": {"c": 1.0}}),
    figures.next_token,
    partial(figures.next_token, SURE, 4.0, 1, 0.05, 0.5),
    partial(figures.next_token, UNSURE, 4.0),
    partial(figures.next_token, UNSURE, 0.1, 20, 0.5, 0.01),
    partial(figures.calibration, RULES),
    figures.two_phases,
    partial(figures.two_phases, "a100-sxm-80gb", 16, 256),
    partial(figures.two_phases, "h200", 8192, 1),
    figures.decode_step,
    partial(figures.decode_step, "falcon-40b", "mi300x", 1024, 131072),
    partial(figures.decode_step, "llama-3-70b", "a100-sxm-80gb", 1, 512),
    *(partial(figures.batch_timeline, continuous, slots) for continuous in (False, True) for slots in (1, 4, 8)),
    figures.speculation,
    partial(figures.speculation, 0.1, 0.5),
    partial(figures.speculation, 0.95, 0.0),
]


@pytest.mark.parametrize("draw", DRAWINGS, ids=range(len(DRAWINGS)))
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[..., Figure]) -> None:
    check_figure(draw)


def test_a_tree_names_the_greedy_text_and_the_likeliest() -> None:
    text = plots.alt_text(figures.text_tree({"a": 0.6, "b": 0.4}, {"a": {"c": 0.5, "d": 0.5}, "b": {"c": 1.0}}))
    assert "greedy is ac, the likeliest bc" in text
    for first, then in (({}, {}), ({"a": 1.0}, {})):
        with pytest.raises(ValueError, match="followed by one"):
            figures.text_tree(first, then)


def test_no_fixed_k_fits_a_sure_place_and_an_unsure_one() -> None:
    kept = {
        (place, rule): int(plots.alt_text(figures.next_token(place, **{rule: number})).split(":")[1].split()[0])
        for place in (SURE, UNSURE)
        for rule, number in (("top_p", 0.9), ("min_p", 0.1), ("top_k", 5))
    }
    assert kept[SURE, "top_k"] == kept[UNSURE, "top_k"] == 5
    assert kept[SURE, "top_p"] <= 4 < 20 < kept[UNSURE, "top_p"]
    assert kept[SURE, "min_p"] < kept[UNSURE, "min_p"]


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("slots", [1, 3, 12, 20])
def test_a_timeline_uses_the_share_of_the_exercise_and_no_slot_twice_at_once(continuous: bool, slots: int) -> None:
    placed = schedule(REQUESTS, slots, continuous)
    taken = [(slot, at) for slot, step, length in placed for at in range(step, step + length)]
    assert len(set(taken)) == len(taken) == sum(REQUESTS)
    steps = max(at for _, at in taken) + 1
    assert len(taken) / (slots * steps) == pytest.approx(batch_use.reference(list(REQUESTS), slots, continuous))
    with pytest.raises(ValueError, match="at least one slot"):
        schedule(REQUESTS, 0, continuous)


@pytest.mark.parametrize(("batch", "context"), [(1, 512), (64, 4096), (1024, 512)])
def test_a_decoding_step_takes_what_the_exercise_says(batch: int, context: int) -> None:
    chip, config = find_accelerator("h100-sxm"), find_model("llama-3-8b").decoder
    given = count_parameters(config).total, cache_bytes(config, 1, context).total, batch, 1
    seconds, limit = pass_seconds.reference(*given, chip.peak("bf16"), chip.bandwidth)
    figure = figures.decode_step("llama-3-8b", "h100-sxm", batch, context)
    assert f"{batch / seconds:.4g} tokens per second" in plots.alt_text(figure)
    caption = figure._supxlabel.get_text().replace("\n", " ")  # type: ignore[attr-defined]
    assert f"limited by {limit}" in caption


def test_two_phases_lie_on_both_sides_of_the_ridge() -> None:
    text = plots.alt_text(figures.two_phases())
    assert "prefill, 2,048 tokens: 2.05e+03 FLOPs per byte" in text
    assert "decoding, 1 text: 0.984 FLOPs per byte, 4.87e+03 µs a token, 99.7% idle" in text


def test_the_best_draft_and_one_that_costs_more_than_it_gains() -> None:
    assert "best 3.09 with 8 guesses" in plots.alt_text(figures.speculation(0.8, 0.05))
    assert max(speed_up(0.5, 0.2, n) for n in range(13)) == pytest.approx(1.25)
    assert speed_up(0.5, 0.2, 5) < 1 == speed_up(0.3, 0.1, 0)
    assert speed_up(0.6, 0.0, 4) == pytest.approx((1 - 0.6**5) / (1 - 0.6))
    for wrong in ((1.1, 0.1, 1), (0.5, -0.1, 1), (0.5, 0.1, -1)):
        with pytest.raises(ValueError, match="probability"):
            speed_up(*wrong)


def test_a_rule_whose_surprise_is_its_entropy_is_green() -> None:
    figure = figures.calibration(RULES)
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [dot.get_color() == plots.PALETTE["green"] for dot in dots] == [False, True, False]
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.calibration({})
