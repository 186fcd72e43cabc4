"""Notebook 20: references against independent sources, numbers hidden before the commitment, and its figures."""

from __future__ import annotations

import math
import re
from itertools import takewhile
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from lmcourse import plots
from lmcourse.accounting.kv_cache import bytes_per_token
from lmcourse.chapters.capstone import exercises, figures
from lmcourse.chapters.capstone.after import HELD_OUT, LARGE, after, held_out, recipe_model
from lmcourse.chapters.capstone.claims import CLAIMS, RIGHT, show_claims
from lmcourse.chapters.capstone.exercises.forecasts import STEPS_OF_SKILL, rows, skill_on_held_out
from lmcourse.chapters.capstone.exercises.hunt import KNOWN, fits
from lmcourse.chapters.capstone.exercises.trained import (
    BEST_GIVEN,
    BEST_GIVEN_KNOWN,
    BYTES,
    NEAR,
    REPRODUCED,
    SEED,
    measured,
)
from lmcourse.chapters.capstone.figures.law import fitted_law, nearest_times_trend, trend
from lmcourse.chapters.capstone.measured import BATCH_DESIGN, ENTROPY, STEPS_BY_BATCH, small_runs
from lmcourse.chapters.capstone.recipe import (
    DEPTHS,
    FRESH_BYTES,
    GIVEN,
    ORDER,
    SMALL_RECIPE,
    WIDTHS,
    Design,
    Purse,
    Recipe,
    hand_over,
    known_words,
    loss_on,
    steps_to_loss,
    stories,
    train,
    write,
)
from lmcourse.collect.package.model import Config
from lmcourse.collect.package.model import Transformer as OwnTransformer
from lmcourse.collect.weights import package_config, package_weights
from lmcourse.errors import CourseError
from lmcourse.exercises.checking import check_exercise
from lmcourse.exercises.values import MAX_VALUE_CHARS
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.root import find_root
from tests.plots.figures import check_figure

DESIGNS = [Design(layers, width) for layers in DEPTHS for width in WIDTHS]
ALLOWED = [d for d in DESIGNS if d.parameters <= ORDER["parameters"] and d.memory() <= ORDER["memory"]]


def test_the_account_matches_the_package() -> None:
    for design in DESIGNS[::5]:
        found = exercises.account_of.reference(design.layers, design.d_model, design.heads, design.d_ff, 128, 16, 64)
        assert found["parameters"] == design.parameters
        assert found["flops"] == design.flops_of_step()
        assert found["cache"] == bytes_per_token(design.config, precision="fp32")


def test_the_law_is_recovered_and_the_fit_is_a_minimum() -> None:
    """The package's fit, the exercise's reference and a walk around the minimum agree on the measured runs."""
    law = fitted_law()
    runs = [(run.parameters, run.text, run.loss) for run in small_runs()]
    found = exercises.fit_law.reference(runs, law.floor, [law.a, law.b])
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


def test_allowed_designs_were_trained_with_both_optimizers() -> None:
    trained = {(run.layers, run.d_model, run.recipe.optimizer) for run in after({"loss": 0.3})}
    assert trained == {(d.layers, d.d_model, name) for d in ALLOWED for name in ("adamw", "muon")}


def test_the_law_beats_honest_baselines_where_it_was_not_fitted() -> None:
    """The law has the skill for all points; no constant has the skill for one point, not even the best one in
    hindsight."""
    asked = [(run.layers, run.parameters, run.text) for run in held_out()]
    assert skill_on_held_out(exercises.forecasts.reference(rows(small_runs()), ENTROPY, asked)) >= max(STEPS_OF_SKILL)
    for constant in np.linspace(0.25, 0.6, 71):
        assert skill_on_held_out([float(constant)] * len(asked)) < min(STEPS_OF_SKILL)


def test_the_six_designs_of_the_grade_stay_hidden() -> None:
    shown = {(run.layers, run.d_model, run.flops) for run in after({"loss": 0.3})}
    assert shown.isdisjoint((run.layers, run.d_model, run.flops) for run in held_out())
    assert len({run.loss for run in held_out()}) == 6


def test_runs_are_shown_only_after_a_forecast() -> None:
    for incomplete in ({}, {"layers": 2}, {"loss": None}):
        with pytest.raises(CourseError, match="Make your forecast first"):
            after(incomplete)


def test_no_output_before_the_commitment_has_a_loss_of_the_order() -> None:
    notebook = nbformat.read(find_root() / "solutions/20-capstone/capstone.ipynb", as_version=4)
    before = [*takewhile(lambda cell: not cell.source.startswith("## 8 · Train"), notebook.cells)]
    assert len(before) < len(notebook.cells)
    text = "\n".join(str(cell.get("outputs", "")) for cell in before)
    text += "\n".join(cell.source for cell in before if cell.cell_type == "markdown")
    losses = {f"{loss:.4f}" for *_, loss in LARGE} | {f"{run[3]:.4f}" for run in HELD_OUT}
    losses -= {f"{run.loss:.4f}" for run in small_runs()}  # one of these is equal by coincidence
    assert [loss for loss in losses if re.search(rf"(?<![\d.]){re.escape(loss)}(?!\d)", text)] == []
    assert "after(" not in "\n".join(cell.source for cell in before if cell.cell_type == "code")


@pytest.mark.prove
def test_a_run_of_the_table_is_reproduced_by_training() -> None:
    design = Design(1, 48)
    _, loss = train(design, design.steps(2e10, SMALL_RECIPE.batch), recipe=SMALL_RECIPE)
    [stored] = [run.loss for run in small_runs(seed=0) if run[:3] == (1, 48, 2e10)]
    assert abs(loss - stored) < 0.1


@pytest.mark.prove
def test_the_purse_subtracts_costs_and_rejects_unaffordable_runs() -> None:
    purse, design = Purse(1e9), Design(1, 24)
    cost = design.steps(5e8, 4) * design.flops_of_step(4)
    loss = purse.small(1, 24, 5e8)
    assert purse.left == 1e9 - cost
    assert purse.runs == [(design, cost, SMALL_RECIPE, 0, loss)]
    with pytest.raises(ValueError, match="are left in the purse"):
        purse.small(1, 24, 1e9)
    with pytest.raises(ValueError, match="too few for one step"):
        purse.small(4, 96, 1e6)
    assert purse.left == 1e9 - cost


@pytest.mark.prove
def test_larger_batches_need_fewer_steps_and_more_texts() -> None:
    steps = {batch: float(np.mean(counts)) for batch, counts in STEPS_BY_BATCH.items()}
    texts_read = [batch * count for batch, count in steps.items()]
    assert [*steps.values()] == sorted(steps.values(), reverse=True)
    assert texts_read == sorted(texts_read)


def test_steps_are_counted_until_the_loss_is_reached_or_given_up() -> None:
    reached = steps_to_loss(3.0, BATCH_DESIGN, Recipe(32, 0.7), 40)
    assert reached in range(4, 40, 4)
    assert steps_to_loss(0.3, BATCH_DESIGN, Recipe(32, 0.7), 8) is None


def test_a_model_writes_beyond_its_context_and_words_are_counted() -> None:
    model = Transformer(Design(1, 24).config)
    text = write(model, "Ben", 70)
    assert len(text) == 70
    assert text == write(model, "Ben", 70)
    assert known_words("Ben is xyz. cut") == 2 / 3


def test_baselines_continue_the_small_runs() -> None:
    best = min(run.loss for run in small_runs() if run.flops == 6e10)
    assert trend(6e10) == pytest.approx(best)
    assert trend(2e10) == pytest.approx(min(run.loss for run in small_runs() if run.flops == 2e10))
    for run in small_runs():
        if run.flops == 6e10:
            assert nearest_times_trend(run.layers, run.parameters, 6e10) == pytest.approx(run.loss)
    assert ENTROPY < trend(2e11) < best


def test_two_claims_are_right_and_no_printed_number_is_the_truth() -> None:
    assert [claim.truth for claim in CLAIMS].count(RIGHT) == 2
    for claim in CLAIMS:
        assert fits(claim.truth, claim.truth)
        assert claim.truth == claim.printed == RIGHT or not fits(claim.truth, claim.printed)
        assert not fits(claim.truth, 10**400)  # too large for a float
    assert show_claims().count("\n| ") == len(CLAIMS) + 1


def test_claims_on_models_match_the_zoo() -> None:
    llama = find_model("llama-3-8b").decoder
    assert 3 * 2 * llama.d_model * llama.layers[0].feed_forward.width * len(llama.layers) == CLAIMS[4].truth
    assert 2 * 2 * 2048 * 8192 * 60 == 3.75 * 2**30
    assert f"{6 * 70e9 * 15e12 / (1024 * 989.5e12 / 2) / 86_400:.1f}" == "143.9"


def seen(case: int, **changes: Any) -> str:
    """Return the view of the grade on a case of `trained`, for the example with some parts changed."""
    cases = (*exercises.trained.cases, *exercises.trained.hidden)
    return str(exercises.trained.seen(cases[case], exercises.trained.reference() | changes))


@pytest.mark.prove
def test_the_model_of_the_recipe_has_the_loss_of_the_grade() -> None:
    model = recipe_model({"loss": 0.3})
    assert loss_on(model, stories(SEED, BYTES)) == pytest.approx(BEST_GIVEN, abs=1e-4)
    assert loss_on(model, stories(1, FRESH_BYTES)) == pytest.approx(BEST_GIVEN_KNOWN, abs=1e-4)
    best = min(run.loss for run in after({"loss": 0.3}) if run.recipe == GIVEN and run.seed == 0)
    assert loss_on(model, stories(1, FRESH_BYTES)) == pytest.approx(best, abs=1e-3)


@pytest.mark.prove
def test_report_and_forecast_are_judged_by_the_weights() -> None:
    right = exercises.trained.reference()
    known, other = measured(right, known=True), measured(right, known=False)
    assert abs(known - other) < 0.005
    for off in (0.99 * REPRODUCED, 1.01 * REPRODUCED, -1.01 * REPRODUCED):
        assert (seen(0, reported=known + off) == "they do") is (abs(off) < REPRODUCED)
    assert seen(0, reported=known / math.log(2)).endswith("(yours is in bits)")
    for off in (0.99 * NEAR, 1.01 * NEAR, -1.01 * NEAR):
        assert (seen(2, forecast=other + off) == seen(2)) is (abs(off) < NEAR)


@pytest.mark.prove
def test_the_check_of_the_model_forecasts_its_grade() -> None:
    right = exercises.trained.reference()
    for changes, points, words in (
        ({}, 6, "the grade would be all 6 points"),
        ({"forecast": measured(right, known=True) - 0.03}, 5, "your forecast is -0.030 from it"),
    ):
        public = check_exercise(exercises.trained, lambda changes=changes: right | changes)
        assert (
            public.points
            == check_exercise(exercises.trained, lambda c=changes: right | c, hidden=True).points
            == points
        )
        assert words in str(public).replace("\n", " ").replace("  ", " ")
        assert "final only after grading" in str(public).replace("\n", " ").replace("  ", " ")


def test_weights_that_fit_no_design_get_a_sentence() -> None:
    name = "head.linear.weight"
    wide = {name: torch.zeros(128, 32)}
    assert seen(0, **wide) == f"{name} has shape (128, 32), not (128, 24)"
    assert seen(0, **{name: torch.full((128, 24), torch.nan)}) == f"{name} holds numbers that are not finite"
    assert seen(0, **{name: "a text"}) == f"{name} is no tensor of real numbers"
    assert seen(0, more=torch.zeros(1)) == "more is unknown in 2 × 24"
    assert seen(0, layers=3, d_model="24").startswith("layers, d_model, forecast or reported is no number")
    assert seen(0, layers=4, d_model=96) == "it breaks the order: 467,808 parameters"
    for value in (None, 3, [], {}, "trained.safetensors"):
        assert exercises.trained.seen(exercises.trained.cases[0], value).startswith("no dict with the weights by name")


def test_the_answer_returns_the_file_that_was_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = Transformer(Design(1, 24).config)
    hand_over({"layers": 1, "d_model": 24, "loss": 0.4}, model, 4.85)
    value = load_file("trained.safetensors")
    assert {name: value.pop(name).item() for name in ("layers", "d_model", "forecast", "reported")} == {
        "layers": 1,
        "d_model": 24,
        "forecast": 0.4,
        "reported": 4.85,
    }
    for name, weights in model.state_dict().items():
        assert torch.equal(value.pop(name), weights.half())
    assert value == {}


def test_a_design_that_breaks_a_limit_earns_nothing() -> None:
    for start in ("Your model has more", "The parameters fit", "You counted the steps with 6ND", "You spend half"):
        [wrong] = [each.answer() for each in exercises.commitment.misconceptions if each.sentence.startswith(start)]
        for case in exercises.commitment.cases:
            assert "breaks the order" in exercises.commitment.seen(case, wrong)


def test_a_commitment_names_the_key_that_is_wrong() -> None:
    right = exercises.commitment.reference()
    asked = exercises.commitment.cases[0]
    assert exercises.commitment.seen(asked, 3) == "no dict with your choice and your forecasts"
    lacking = {name: value for name, value in right.items() if name != "warm_up"}
    assert exercises.commitment.seen(asked, lacking) == "the dict has no warm_up"
    assert exercises.commitment.seen(asked, right | {"seed": 1}) == "seed is not asked for"
    assert "one finite number" in exercises.commitment.seen(asked, right | {"loss": math.nan})


def test_forecasts_of_another_width_of_d_ff_are_named() -> None:
    right = exercises.commitment.reference()
    [asked] = [case for case in exercises.commitment.cases if case.name == "states"]
    lacking = 3 * right["layers"] * right["d_model"] * (Design(2, 24).d_ff - 4 * 24)
    said = exercises.commitment.seen(asked, right | {"states": right["states"] - 16 * lacking})
    assert said.endswith("it has a d_ff of 96, and the order says 64")


def test_the_texts_of_views_are_shown_whole() -> None:
    for exercise in (exercises.commitment, exercises.trained, exercises.hunt, exercises.forecasts):
        for wrong in exercise.misconceptions:
            for asked in exercise.cases:
                text = str(exercise.seen(asked, wrong.answer(*asked.args)))
                assert len(repr(text)) <= MAX_VALUE_CHARS, text
    for number, wrongs in KNOWN.items():
        for wrong, why in wrongs.items():
            text = exercises.hunt.seen(
                exercises.hunt.cases[number - 1], [wrong if n == number else 0 for n in range(1, 6)]
            )
            assert text.endswith(f"is not it: {why}")
            assert len(repr(text)) <= MAX_VALUE_CHARS


def test_the_hunt_names_almost_exact_numbers_and_truth_values() -> None:
    last = exercises.hunt.cases[-1]
    assert exercises.hunt.seen(last, ["right", 640, 1, "right", 11.27e9]).endswith(
        "close, but a whole number must be exact"
    )
    assert exercises.hunt.seen(last, [True, False, False, True, False]) == 'a verdict is "right" or a number'


def test_every_design_fits_into_the_readers_model() -> None:
    for design in DESIGNS[::5]:
        own = OwnTransformer(Config(**package_config(design.config)), {})
        own.load_state_dict(package_weights(Transformer(design.config)))
        assert sum(parameter.numel() for parameter in own.parameters()) == design.parameters


def test_figures_have_the_numbers_of_the_order() -> None:
    assert "memory 12.34 MiB 102.9%" in plots.alt_text(figures.budget_card(32, 4))
    check_figure(figures.rate_by_width({16: 8e9, 96: 3e10}))
    check_figure(figures.law_check(after({"loss": 0.3}), fitted_law()))
    for floor in ("known", "zero"):
        check_figure(figures.iso_flop(floor, 2))
