"""The order itself: a design and a recipe within its limits, and what is forecast before it is trained."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from lmcourse.chapters.capstone.after import best_given, best_run, reached
from lmcourse.chapters.capstone.recipe import BATCH, DEPTHS, GIVEN, LENGTH, ORDER, WIDTHS, Design, Recipe
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain

Numbers = dict[str, float | str]

NEAR = 0.02
"""Nats a byte that the forecast of the loss may be off."""

SLACK = 0.005
"""Nats a byte that a run may be worse than the best run of the given recipe: more than two seeds differ."""

MUON = Recipe(optimizer="muon")

GAINS = (0.004, 0.010)
"""Nats a byte below the best run of the given recipe."""

LEAST_SHARE = 0.9
CHOICES = {"layers": DEPTHS, "d_model": WIDTHS, "optimizer": ("adamw", "muon")}
COUNTED = ("parameters", "flops", "states")
KEYS = (*CHOICES, "steps", *COUNTED, "loss")

RIGHT = {"parameters": "counted", "flops": "counted", "states": "counted", "the order": "kept, and used"}


def _numbers(value: Plain) -> Numbers | None:
    """The answer, if it is a dict of seven finite numbers and a name."""
    if not isinstance(value, dict) or set(value) != set(KEYS):
        return None
    answer = {
        key: each.item() if isinstance(each, Tensor) and each.numel() == 1 else each for key, each in value.items()
    }
    numbers = [answer[key] for key in KEYS if key != "optimizer"]
    real = all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers)
    return answer if real and all(map(math.isfinite, numbers)) else None


def _broken(answer: Numbers) -> str:
    """Return what the order does not allow, or an empty text."""
    for name, choices in CHOICES.items():
        if answer[name] not in choices:
            return f"{name} must be one of {', '.join(map(str, choices))}"
    design, steps = _design(answer), float(answer["steps"])
    if steps < 1 or steps != int(steps):
        return "steps must be a whole number, at least 1"
    if design.parameters > ORDER["parameters"]:
        return f"{design.parameters:,} parameters"
    if design.memory > ORDER["memory"]:
        return f"{design.memory / 2**20:.2f} MiB of memory"
    share = steps * design.step_flops / ORDER["flops"]
    if share > 1:
        pairs = int(ORDER["flops"] / (6 * design.parameters * BATCH * LENGTH)) == steps
        return f"{share:.1%} of the FLOPs" + (". You counted the steps with 6ND, which leaves out the scores" * pairs)
    return f"only {share:.1%} of the FLOPs are used" if share < LEAST_SHARE else ""


def _design(answer: Numbers) -> Design:
    return Design(int(answer["layers"]), int(answer["d_model"]))


def _loss(answer: Numbers) -> float:
    recipe = Recipe(optimizer=answer["optimizer"])  # type: ignore[arg-type]
    return reached(_design(answer), recipe)


def _counted(answer: Numbers, name: str) -> str:
    """Return "counted", or what the forecast counts instead."""
    design, steps = _design(answer), int(answer["steps"])
    n, step = design.parameters, design.step_flops
    right = {"parameters": n, "flops": steps * step, "states": 16 * n}[name]
    every: dict[str, dict[float, str]] = {
        "parameters": {n - 128 * design.d_model: "it lacks one of the two tables"},
        "flops": {
            step: "it is one step; the order counts all of them",
            ORDER["flops"]: "it is the whole budget, not what your whole steps cost",
            6 * n * BATCH * LENGTH * steps: "it is 6ND, without the scores and with the table",
        },
        "states": {
            18 * n: "18 bytes a parameter are mixed precision; the order says fp32",
            12 * n: "it lacks the gradients or a moment",
            4 * n: "it is the weights alone",
            design.memory: "activations are no states",
        },
    }
    known = every[name]
    given = float(answer[name])
    return RIGHT[name] if given == right else f"{given:,.12g}: " + known.get(given, f"we count {right:,}")


def _view(asked: Case, value: Plain) -> str:
    """One property of a commitment. The measured losses stay where the judge is."""
    answer = _numbers(value)
    if answer is None:
        return f"a dict of seven numbers and an optimizer is asked for: {', '.join(KEYS)}"
    if broken := _broken(answer):
        return f"it breaks the order and earns nothing: {broken}"
    if asked.name == "the order":
        return RIGHT[asked.name]
    if asked.name in COUNTED:
        return _counted(answer, asked.name)
    if asked.name.startswith("the forecast"):
        off = float(answer["loss"]) - _loss(answer)
        return f"within {NEAR}" if abs(off) <= NEAR else f"{off:+.3f}"
    worse, limit = _loss(answer) - best_given(), _limits()[asked.name]
    return "reached" if worse <= limit + 1e-9 else f"{worse:+.3f} nats from the best run of the given recipe"


def _limits() -> dict[str, float]:
    names = (f"the run: at most {SLACK} above the best of the given recipe", *(f"the run: {g} below it" for g in GAINS))
    return dict(zip(names, (SLACK, *(-gain for gain in GAINS)), strict=True))


def _committed(
    layers: int,
    d_model: int,
    loss: float,
    steps: int | None = None,
    recipe: Recipe = MUON,
    **changes: float,
) -> Numbers:
    design = Design(layers, d_model)
    done = design.steps(ORDER["flops"]) if steps is None else steps
    answer: Numbers = {"layers": layers, "d_model": d_model, "steps": done, "parameters": design.parameters}
    answer["optimizer"] = recipe.optimizer
    answer |= {"flops": done * design.step_flops, "states": 16 * design.parameters, "loss": loss}
    return answer | changes


def _best() -> Numbers:
    run = best_run()
    return _committed(run.layers, run.d_model, run.loss, recipe=run.recipe)


commitment = Exercise(
    "commitment",
    points=8,
    minutes=35,
    difficulty=3,
    reference=_best,
    cases=[case(name) for name in ("the order", *COUNTED)],
    hidden_cases=lambda _: [case(f"the forecast of the loss, to {NEAR}"), *map(case, _limits())],
    hints=[
        "Go through the designs: `account_of` and the table of memory say which the order allows at all.",
        "Your law forecasts the loss of each with the given recipe. What do small runs say about the other "
        "optimizer: how large is the difference, and does it stay with a second seed?",
        "flops = steps · FLOPs of a step; states = 16 bytes a parameter.",
    ],
    uses=["account_of", "steps_within"],
    view=_view,
)


@commitment.misconception("Your model has more parameters than the order allows.")
def too_large() -> Numbers:
    return _committed(1, 96, 0.33)


@commitment.misconception("You counted the steps with 6ND. With the scores, you are over the budget.")
def steps_of_six_nd() -> Numbers:
    return _committed(2, 48, 0.33, steps=int(2e11 / (6 * 67_824 * 1024)))


@commitment.misconception("The parameters fit, but the activations do not: every block keeps its own.")
def too_deep_for_memory() -> Numbers:
    return _committed(4, 32, 0.33)


@commitment.misconception("You spend half of the budget. The order asks for at least 90 %.")
def thrifty() -> Numbers:
    return _committed(2, 32, 0.33, steps=435)


@commitment.misconception("You trained the smallest model longest. It is too small: more text no longer helps it.")
def tiny_and_long() -> Numbers:
    return _committed(1, 24, 0.37, recipe=GIVEN)


@commitment.misconception("Your forecast is the entropy of the text, which a perfect model would reach.")
def entropy_as_forecast() -> Numbers:
    return _best() | {"loss": 0.2221}


@commitment.misconception("Your forecast is a loss of the small runs. The order has more than three times their FLOPs.")
def loss_of_the_small_runs() -> Numbers:
    return _best() | {"loss": 0.42}


@commitment.misconception("Your loss is in bits. The course counts nats: times ln 2.")
def in_bits() -> Numbers:
    return _best() | {"loss": float(_best()["loss"]) / math.log(2)}


@commitment.misconception("Your forecast of the states is for mixed precision. The order says fp32.")
def states_of_mixed_precision() -> Numbers:
    return _best() | {"states": 18.0 * float(_best()["parameters"])}


@commitment.misconception("Your FLOPs are those of one step. The order counts the whole training.")
def flops_of_a_step() -> Numbers:
    return _best() | {"flops": float(_best()["flops"]) / float(_best()["steps"])}


@commitment.misconception("Your FLOPs are the whole budget. Forecast what your whole steps cost.")
def whole_budget() -> Numbers:
    return _best() | {"flops": 2e11}


for heads in (1, 3):
    commitment.equivalent_mutant(
        f"costs = account_of(2, 32, 2, 88, 128, 16, 64) → costs = account_of(2, 32, {heads}, 88, 128, 16, 64)",
        "heads divide the width among them: what they cost together does not depend on how many they are",
    )
for budget in ("200000000001.0", "199999999999.0"):
    commitment.equivalent_mutant(
        f"steps = steps_within(200000000000.0, costs['flops']) → steps = steps_within({budget}, costs['flops'])",
        "one FLOP is less than what is left of the budget after its last step",
    )


@commitment.variant
def narrower_and_longer() -> dict[str, float | str]:
    return {
        "layers": 2,
        "d_model": 24,
        "steps": 1412,
        "optimizer": "muon",
        "parameters": 20_088,
        "flops": 1412 * 141_557_760,
        "states": 321_408,
        "loss": 0.32,
    }


@commitment.variant
def with_floats() -> dict[str, object]:
    answer: dict[str, object] = dict(zip(("layers", "d_model", "steps"), (2.0, 24.0, 1400.0), strict=True))
    answer |= {"parameters": 20_088.0, "flops": 1400.0 * 141_557_760, "states": 16 * 20_088.0}
    return answer | {"loss": np.float64(0.331), "optimizer": "muon"}


@commitment.variant
def nine_tenths_of_it() -> dict[str, object]:
    n, steps = np.int64(33_440), math.ceil(0.9 * 2e11 / 229_638_144)
    costs = {"states": 16 * n, "parameters": n, "flops": steps * 229_638_144}
    return {"loss": 0.345, "optimizer": "muon", "steps": steps, "d_model": 32, "layers": 2, **costs}
