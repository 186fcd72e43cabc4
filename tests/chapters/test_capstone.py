"""Notebook 20: references against independent sources, numbers hidden before the commitment, and its figures."""

from __future__ import annotations

import json
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

from lmcourse.accounting.kv_cache import bytes_per_token
from lmcourse.base.errors import CourseError
from lmcourse.chapters.capstone import exercises
from lmcourse.chapters.capstone.after import (
    HELD_OUT,
    LARGE,
    after,
    bought,
    check_text,
    held_out,
    large_runs,
    recipe_model,
)
from lmcourse.chapters.capstone.claims import CLAIMS, RIGHT, show_claims
from lmcourse.chapters.capstone.exercises.hunt import fits
from lmcourse.chapters.capstone.exercises.trained import (
    BEST_GIVEN,
    BEST_GIVEN_KNOWN,
    BYTES,
    NEAR,
    REPRODUCED,
    SEED,
    measured,
)
from lmcourse.chapters.capstone.law import EXPONENTS, by_law, fit, hold_out, nearest_times_trend, trend
from lmcourse.chapters.capstone.measured import ENTROPY, small_runs
from lmcourse.chapters.capstone.purse import Purse
from lmcourse.chapters.capstone.recipe import (
    DEPTHS,
    FRESH_BYTES,
    ORDER,
    SMALL_RECIPE,
    WIDTHS,
    Design,
    loss_on,
    stories,
    train,
)
from lmcourse.chapters.capstone.sealed import Sealed, digest_of, hand_over, seal
from lmcourse.course.root import find_root
from lmcourse.exercises.checking import check_exercise
from lmcourse.grading.notebooks import METADATA_KEY, SEALED, read_submission
from lmcourse.grading.restore import restored
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.own_package.package.model import Config
from lmcourse.own_package.package.model import Transformer as OwnTransformer
from lmcourse.own_package.weights import package_config, package_weights
from lmcourse.report import handed_in
from tests.grading.test_restore import COURSE, answer, check

DESIGNS = [Design(layers, width) for layers in DEPTHS for width in WIDTHS]
ALLOWED = [d for d in DESIGNS if d.parameters <= ORDER["parameters"] and d.memory() <= ORDER["memory"]]


def test_the_account_matches_the_package() -> None:
    for design in DESIGNS[::5]:
        found = exercises.account_of.reference(design.layers, design.d_model, design.heads, design.d_ff, 128, 16, 64)
        assert found["parameters"] == design.parameters
        assert found["flops"] == design.flops_of_step()
        assert found["cache"] == bytes_per_token(design.config, precision="fp32")


SMALL = [(run.parameters, run.text, run.loss) for run in small_runs()]
LAW = fit(SMALL, ENTROPY, EXPONENTS)


def test_a_walk_around_the_fit_finds_no_better_law() -> None:
    def error(big_a: float, big_b: float) -> float:
        law = LAW | {"A": big_a, "B": big_b}
        return sum((by_law(law, n, d) / loss - 1) ** 2 for n, d, loss in SMALL)

    least = error(LAW["A"], LAW["B"])
    for step in (0.99, 1.01):
        assert error(LAW["A"] * step, LAW["B"]) > least < error(LAW["A"], LAW["B"] * step)


def test_no_other_split_of_the_budget_is_better() -> None:
    A, B, a, b, flops = law = (406.4, 410.7, 0.34, 0.28, 5.76e23)
    size, text = exercises.best_split.reference(*law)
    assert 6 * size * text == pytest.approx(flops)
    sizes = size * np.geomspace(0.1, 10, 1001)
    losses = A / sizes**a + B / (flops / 6 / sizes) ** b
    assert losses.argmin() == 500


def commitment() -> dict[str, Any]:
    right: dict[str, Any] = exercises.commitment.reference()
    return right


def the_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> Sealed:
    monkeypatch.chdir(tmp_path)
    found = seal(commitment, seed)
    assert found is not None
    return found


def test_allowed_designs_were_trained_with_both_optimizers() -> None:
    trained = {(run.layers, run.d_model, run.recipe.optimizer) for run in large_runs()}
    assert trained == {(d.layers, d.d_model, name) for d in ALLOWED for name in ("adamw", "muon")}
    check_text()


def test_the_designs_of_the_grade_stay_hidden() -> None:
    shown = {(run.layers, run.d_model, run.flops) for run in [*large_runs(), *bought()]}
    assert shown.isdisjoint((run.layers, run.d_model, run.flops) for run in held_out())


def test_a_held_out_run_cannot_be_changed_after_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmcourse.chapters.capstone.law._chosen", [])
    skill = exercises.skill.reference
    assert "two different runs" in hold_out([(2, 32, 6e10)], fit, skill)
    first = hold_out([(2, 32, 6e10), (4, 16, 6e10)], fit, skill)
    assert "skill against the nearest run: -3.36" in first
    assert hold_out([(2, 32, 6e10), (4, 24, 6e10)], fit, skill).startswith("You have seen the result")
    assert hold_out([(2, 32, 6e10), (4, 16, 6e10)], fit, skill) == first


def test_runs_are_shown_only_after_a_seal() -> None:
    for nothing in (None, {}, {"loss": 0.3}):
        with pytest.raises(CourseError, match="Seal your commitment first"):
            after(nothing)


def test_a_seal_counts_changed_plans_and_names_what_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = the_seal(tmp_path, monkeypatch)
    assert the_seal(tmp_path, monkeypatch) == first
    again = the_seal(tmp_path, monkeypatch, seed=1)
    assert (first.sealings, again.sealings) == (1, 2)
    with pytest.raises(CourseError, match=f"Sealed {again.digest}, this plan is {first.digest}"):
        hand_over(first, Transformer(first.design.config), 0.3)
    for changes, why in (
        ({"loss": 0.1}, "can have a smaller loss"),
        ({"steps": 3}, "breaks the order"),
        ({"x": 1}, "x is not"),
    ):
        capsys.readouterr()
        assert seal(lambda changes=changes: commitment() | changes) is None
        assert why in capsys.readouterr().out

    def unwritten() -> None:
        raise NotImplementedError

    assert seal(unwritten) is None


def test_no_output_before_the_commitment_has_a_loss_of_the_order() -> None:
    notebook = nbformat.read(find_root() / "solutions/20-capstone/capstone.ipynb", as_version=4)
    before = [*takewhile(lambda cell: not cell.source.startswith("## 6 · Train"), notebook.cells)]
    assert len(before) < len(notebook.cells)
    text = "\n".join(str(cell.get("outputs", "")) for cell in before)
    text += "\n".join(cell.source for cell in before if cell.cell_type == "markdown")
    losses = {f"{loss:.4f}" for _, _, *row in LARGE for loss in row} | {f"{run[3]:.4f}" for run in HELD_OUT}
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
    purse, design = Purse(LAW, exercises.skill.reference, 1e9), Design(1, 24)
    cost = design.steps(5e8) * design.flops_of_step()
    loss = purse.small(1, 24, 5e8)
    assert purse.left == 1e9 - cost
    assert purse.rows == [(*design.asked(5e8), loss)]
    with pytest.raises(ValueError, match="are left in the purse"):
        purse.small(1, 24, 1e9)
    with pytest.raises(ValueError, match="too few for one step"):
        purse.small(4, 96, 1e6)
    assert purse.left == 1e9 - cost


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
    return str(exercises.trained.compared(cases[case], exercises.trained.reference() | changes))


def sealed_plan(**changes: Any) -> dict[str, torch.Tensor]:
    """Return the parts of a handed-in file for the right commitment with some changes."""
    text = json.dumps(commitment() | {"loss": 0.325, "seed": 0} | changes, sort_keys=True)
    parts = {"plan": text, "seal": digest_of(text)}
    return {name: torch.tensor([*part.encode()], dtype=torch.uint8) for name, part in parts.items()}


@pytest.mark.prove
def test_the_best_of_the_given_recipe_earns_four_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = recipe_model(the_seal(tmp_path, monkeypatch))
    (tmp_path / "sealed.json").unlink()
    assert loss_on(model, stories(SEED, BYTES)) == pytest.approx(BEST_GIVEN, abs=1e-4)
    assert loss_on(model, stories(1, FRESH_BYTES)) == pytest.approx(BEST_GIVEN_KNOWN, abs=1e-4)
    design = Design(4, 24)
    steps = design.steps(ORDER["flops"])
    plan = sealed_plan(layers=4, d_model=24, steps=steps, optimizer="adamw", loss=0.339)
    file = {**plan, **model.state_dict(), "reported": BEST_GIVEN_KNOWN, "sealings": 2}
    report = check_exercise(exercises.trained, lambda: file, hidden=True)
    assert report.points == 4
    assert "2 plans were sealed in this folder." in report.notes


@pytest.mark.prove
def test_report_and_forecast_are_judged_by_the_weights() -> None:
    right = exercises.trained.reference()
    known, other = measured(right, known=True), measured(right, known=False)
    assert abs(known - other) < 0.005
    for off in (0.99 * REPRODUCED, 1.01 * REPRODUCED, -1.01 * REPRODUCED):
        assert (seen(0, reported=known + off) == "they do") is (abs(off) < REPRODUCED)
    assert seen(0, reported=known / math.log(2)).endswith("(yours is in bits)")
    for off in (0.99 * NEAR, 1.01 * NEAR, -1.01 * NEAR):
        assert (seen(2, **sealed_plan(loss=other + off)) == seen(2)) is (abs(off) < NEAR)


@pytest.mark.prove
def test_a_forecast_counts_as_it_was_sealed() -> None:
    """Not with the old digest, and not with a new one that the saved outputs of the notebook do not show."""
    right = exercises.trained.reference()
    own = sealed_plan(loss=0.33)
    token = handed_in.SEAL.set("".join(map(chr, own["seal"].tolist())))
    assert check_exercise(exercises.trained, lambda: right | own, hidden=True).passed
    handed_in.SEAL.reset(token)
    changed = sealed_plan(loss=0.32)
    assert seen(2, plan=changed["plan"]).startswith("sealed 553b41c2a563, this plan is ")
    for saved, file, good in (
        ("553b41c2a563", right, True),
        ("553b41c2a563", right | changed, False),
        ("", right, False),
    ):
        token = handed_in.SEAL.set(saved)
        assert (seen(2, **file) == f"within {NEAR}") is good
        handed_in.SEAL.reset(token)
    public = check_exercise(exercises.trained, lambda: right | {"plan": changed["plan"]})
    assert public.points == 5
    assert "Your forecast does not count (sealed" in " ".join(str(public).split())
    assert "final only after grading" in " ".join(str(public).split())


def test_the_digest_in_saved_outputs_reaches_grading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(
        "IPython.display.display",
        lambda data, raw: shown.append(nbformat.v4.new_output("display_data", data)),
    )
    digest = the_seal(tmp_path, monkeypatch).digest
    cells = [nbformat.v4.new_code_cell("seal(commitment)", outputs=shown), answer(), check()]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "a.ipynb")
    notebook = restored(read_submission(tmp_path / "a.ipynb"), COURSE, "01-tiny")
    assert notebook.metadata[METADATA_KEY][SEALED] == digest
    assert handed_in.seal_in([{"data": {handed_in.SEAL_MIME: "no digest"}}, 3]) == ""


def test_weights_that_fit_no_design_get_a_sentence() -> None:
    name = "head.linear.weight"
    wide = {name: torch.zeros(128, 32)}
    assert seen(0, **wide) == f"{name} has shape (128, 32), not (128, 24)"
    assert seen(0, **{name: torch.full((128, 24), torch.nan)}) == f"{name} holds numbers that are not finite"
    assert seen(0, **{name: "a text"}) == f"{name} is no tensor of real numbers"
    assert seen(0, more=torch.zeros(1)) == "more is unknown in 2 × 24"
    assert seen(0, plan=torch.zeros(3)) == "plan is no commitment as `hand_over` writes it"
    assert seen(0, **sealed_plan(layers=3)) == "it breaks the order: layers must be one of 1, 2, 4"
    assert seen(0, **sealed_plan(layers=4, d_model=96)) == "it breaks the order: 467,808 parameters"
    for value in (None, 3, [], {}, "trained.safetensors"):
        assert exercises.trained.compared(exercises.trained.cases[0], value).startswith(
            "no dict with the weights by name"
        )


def test_the_answer_returns_the_file_that_was_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = the_seal(tmp_path, monkeypatch)
    model = Transformer(sealed.design.config)
    hand_over(sealed, model, 4.85)
    value = load_file("trained.safetensors")
    plan, digest = (bytes(value.pop(name).tolist()).decode() for name in ("plan", "seal"))
    assert json.loads(plan) == sealed.plan == commitment() | {"seed": 0}
    assert (digest, value.pop("reported"), value.pop("sealings")) == (sealed.digest, 4.85, 1)
    for name, weights in model.state_dict().items():
        assert torch.equal(value.pop(name), weights.half())
    assert value == {}


def test_every_design_fits_into_the_readers_model() -> None:
    for design in DESIGNS[::5]:
        own = OwnTransformer(Config(**package_config(design.config)), {})
        own.load_state_dict(package_weights(Transformer(design.config)))
        assert sum(parameter.numel() for parameter in own.parameters()) == design.parameters
