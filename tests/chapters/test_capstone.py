"""Notebook 20: references against independent sources, and what its figures show."""

from __future__ import annotations

import numpy as np
import pytest

from lmcourse import plots
from lmcourse.accounting.kv_cache import bytes_per_token
from lmcourse.chapters.capstone import exercises, figures
from lmcourse.chapters.capstone.claims import ROWS, drawn, show_claims
from lmcourse.chapters.capstone.exercises.commitment import BAND, SLACK
from lmcourse.chapters.capstone.exercises.hunt import COUNT, PRINTED, RIGHT, TRUTHS, fits
from lmcourse.chapters.capstone.figures.law import fitted_law, small_runs
from lmcourse.chapters.capstone.measured import measured_loss, measured_runs
from lmcourse.chapters.capstone.recipe import DEPTHS, ORDER, WIDTHS, Design, train
from lmcourse.collect.package.model import Config
from lmcourse.collect.package.model import Transformer as OwnTransformer
from lmcourse.collect.weights import package_config, package_weights
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from tests.plots.figures import check_figure, said

DESIGNS = [Design(layers, width) for layers in DEPTHS for width in WIDTHS]
ALLOWED = [d for d in DESIGNS if d.parameters <= ORDER["parameters"] and d.memory <= ORDER["memory"]]


def test_the_account_matches_the_package() -> None:
    for design in DESIGNS[::5]:
        found = exercises.account_of.reference(design.layers, design.d_model, design.heads, design.d_ff, 128, 16, 64)
        assert found["parameters"] == design.parameters
        assert found["flops"] == design.step_flops
        assert found["cache"] == bytes_per_token(design.config, precision="fp32")


def test_the_law_is_recovered_and_the_fit_is_a_minimum() -> None:
    """The package's fit, the exercise's reference and a walk around the minimum agree on the measured runs."""
    law, runs = fitted_law(), small_runs()
    exponents = [law.a, law.b]
    found = exercises.fit_law.reference(runs, law.floor, exponents)
    assert [found[name] for name in "ABab"] == pytest.approx([law.A, law.B, law.a, law.b], rel=1e-6)

    def error(big_a: float, big_b: float) -> float:
        return sum(((law.floor + big_a / n**law.a + big_b / d**law.b) / loss - 1) ** 2 for n, d, loss in runs)

    least = error(law.A, law.B)
    for step in (0.99, 1.01):
        assert error(law.A * step, law.B) > least < error(law.A, law.B * step)


def test_no_other_split_of_the_budget_is_better() -> None:
    A, B, a, b, flops = law = (406.4, 410.7, 0.34, 0.28, 5.76e23)
    size, text = exercises.best_split.reference(*law)
    assert 6 * size * text == pytest.approx(flops)
    sizes = size * np.geomspace(0.1, 10, 1001)
    losses = A / sizes**a + B / (flops / 6 / sizes) ** b
    assert losses.argmin() == 500


def test_every_allowed_design_is_measured_and_several_are_good() -> None:
    good = [d for d in ALLOWED if (measured_loss(d.layers, d.d_model) or 9.0) <= (measured_loss() or 0.0) + SLACK]
    assert {run[:2] for run in measured_runs(6e11)} >= {(d.layers, d.d_model) for d in ALLOWED}
    assert 4 <= len(good) < len(ALLOWED)


@pytest.mark.parametrize("seed", sorted({run[3] for run in measured_runs(6e10)}))
def test_a_law_of_ten_runs_of_any_seed_forecasts_within_the_band(seed: int) -> None:
    """What a law recommends is a good design, with a forecast inside the band; without a floor the forecast is not."""
    law, best = fitted_law(seed=seed), measured_loss() or 0.0
    lowest = min(law.forecast(design, 6e11) for design in ALLOWED)
    for design in ALLOWED:
        forecast, loss = law.forecast(design, 6e11), measured_loss(design.layers, design.d_model) or 0.0
        if forecast <= lowest + SLACK:
            assert abs(forecast - loss) < 0.04 < BAND
            assert loss <= best + SLACK
    assert fitted_law(0.0, seed).forecast(Design(2, 48), 6e11) < (measured_loss(2, 48) or 0.0) - BAND
    assert law.a < law.b


@pytest.mark.prove
def test_a_run_of_the_table_is_reproduced_by_training() -> None:
    design = Design(2, 48)
    _, loss = train(design, design.steps(2e10))
    assert abs(loss - (measured_loss(2, 48, 2e10) or 0.0)) < 0.1


def test_every_draw_has_nine_claims_of_which_three_are_right() -> None:
    assert [len(row) for row in ROWS] == [3] * COUNT
    for seed in (-20, 0, 7, 10**12):
        places = drawn(seed)
        assert [TRUTHS[row][column] == RIGHT for row, column in places].count(True) == 3
        assert {row for row, _ in places} == set(range(COUNT))
        assert show_claims(seed).count("If it is wrong") == COUNT
    assert len({tuple(drawn(seed)) for seed in range(200)}) > 190


def test_no_claim_equals_its_correction() -> None:
    for row, column in ((row, column) for row in range(COUNT) for column in range(3)):
        truth, printed = TRUTHS[row][column], PRINTED[row][column]
        assert fits(truth, truth)
        assert (truth == printed == RIGHT) or not fits(truth, printed)


def test_claims_on_models_match_the_zoo() -> None:
    llama, gemma = find_model("llama-3-8b").decoder, find_model("gemma-2-9b").decoder
    assert 3 * 2 * llama.d_model * llama.layers[0].feed_forward.width * len(llama.layers) == TRUTHS[4][0]
    assert gemma.layers[0].feed_forward.width / gemma.d_model == TRUTHS[6][1]
    lamda = find_model("lamda-137b").decoder
    assert lamda.layers[0].attention.heads * 128 / lamda.d_model == TRUTHS[4][2]
    windows = [layer.attention.pattern.size for layer in find_model("gemma-3-1b").decoder.layers]
    assert [window is None for window in windows[:6]].count(False) == TRUTHS[7][0]
    assert 2 * 2 * 2048 * 8192 * 60 == 3.75 * 2**30
    assert f"{6 * 174.6e9 * 300e9:.3g}" == "3.14e+23"
    assert f"{6 * 70e9 * 15e12 / (1024 * 989.5e12 / 2) / 86_400:.1f}" == "143.9"
    assert f"{329_772_957_696 / 405_845_000_192:.2f}" == "0.81"
    assert f"{1 / (2048 / 4096 + 1 / 32):.2f}" == "1.88"
    assert f"{1024 / (12 * 1600):.3f}" == "0.053"


def test_every_design_fits_into_the_readers_model() -> None:
    for design in DESIGNS[::5]:
        own = OwnTransformer(Config(**package_config(design.config)), {})
        own.load_state_dict(package_weights(Transformer(design.config)))
        assert sum(parameter.numel() for parameter in own.parameters()) == design.parameters


def test_figures_have_the_numbers_of_the_order() -> None:
    assert "memory 12.34 MiB 102.9%" in plots.alt_text(figures.budget_card(32, 4))
    forecast, measured = {"parameters": 5.0, "loss": 0.37}, {"parameters": 0.0, "loss": 0.1}
    told = said(figures.predicted_and_measured({"parameters": 5.0, "loss": 0.3}, forecast, measured))
    assert "parameters inside, loss outside" in told
    assert said(figures.slips_by_source()).startswith("blog notes: 17 wrong")
    check_figure(figures.rate_by_width({16: 8e9, 96: 3e10}))
