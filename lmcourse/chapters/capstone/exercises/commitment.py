"""The commitment: a design and a recipe within the limits of the order, and forecasts made before the training."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from lmcourse.chapters.capstone.measured import ENTROPY
from lmcourse.chapters.capstone.recipe import BATCH, DEPTHS, LENGTH, ORDER, WIDTHS, Design
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain

Numbers = dict[str, float | str]

VOCABULARY = 128
LEAST_SHARE = 0.9
RATES = (0.1, 10.0)
CHOICES = {"layers": DEPTHS, "d_model": WIDTHS, "optimizer": ("adamw", "muon"), "batch": range(4, 33)}
COUNTED = ("parameters", "flops", "states")
KEYS = (*CHOICES, "rate", "warm_up", "steps", *COUNTED, "loss")

RIGHT = {"parameters": "counted", "flops": "counted", "states": "counted", "the order": "kept, and used"}


def _numbers(value: Plain) -> Numbers | None:
    """Return the answer if it is a dict of ten finite numbers and a name, otherwise None."""
    if not isinstance(value, dict) or set(value) != set(KEYS):
        return None
    answer = {
        key: each.item() if isinstance(each, Tensor) and each.numel() == 1 else each for key, each in value.items()
    }
    numbers = [answer[key] for key in KEYS if key != "optimizer"]
    real = all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers)
    return answer if real and all(map(math.isfinite, numbers)) else None


def _unusable(value: Plain) -> str:
    """Describe why an answer is not a commitment."""
    if not isinstance(value, dict):
        return "no dict with your choice and your forecasts"
    missing, unknown = [key for key in KEYS if key not in value], [key for key in value if key not in KEYS]
    if missing or unknown:
        return f"the dict has no {missing[0]}" if missing else f"{unknown[0]} is not asked for"
    return "every value but the optimizer must be one finite number"


def _broken(answer: Numbers) -> str:
    """Return the limits of the order that the answer breaks, or an empty text."""
    for name, choices in CHOICES.items():
        if answer[name] not in choices:
            allowed = ", ".join(map(str, choices)) if name != "batch" else "the whole numbers from 4 to 32"
            return f"{name} must be one of {allowed}"
    design, steps, warm_up = _design(answer), float(answer["steps"]), float(answer["warm_up"])
    batch = int(answer["batch"])
    if steps < 1 or steps != int(steps):
        return "steps must be a whole number, at least 1"
    if not 0 <= warm_up <= steps / 2 or warm_up != int(warm_up):
        return "warm_up must be a whole number from 0 to half of steps"
    if not RATES[0] <= float(answer["rate"]) <= RATES[1]:
        return f"rate must be from {RATES[0]} to {RATES[1]:g}"
    if design.parameters > ORDER["parameters"]:
        return f"{design.parameters:,} parameters"
    if design.memory(batch) > ORDER["memory"]:
        return f"{design.memory(batch) / 2**20:.2f} MiB of memory"
    share = steps * design.flops_of_step(batch) / ORDER["flops"]
    if share > 1:
        pairs = int(ORDER["flops"] / (6 * design.parameters * batch * LENGTH)) == steps
        return f"{share:.1%} of the FLOPs" + ("; 6ND leaves out the scores" * pairs)
    return f"only {share:.1%} of the FLOPs are used" if share < LEAST_SHARE else ""


def _design(answer: Numbers) -> Design:
    return Design(int(answer["layers"]), int(answer["d_model"]))


def _counted(answer: Numbers, name: str) -> str:
    """Return "counted", or the quantity that the forecast counts instead."""
    design, steps, batch = _design(answer), int(answer["steps"]), int(answer["batch"])
    n, step = design.parameters, design.flops_of_step(batch)
    right = {"parameters": n, "flops": steps * step, "states": 16 * n}[name]
    every: dict[str, dict[float, str]] = {
        "parameters": {n - 128 * design.d_model: "it lacks one of the two tables"},
        "flops": {
            step: "it is one step; the order counts all of them",
            steps * step // 3: "it lacks the backward pass",
            steps * step * 2 // 3: "a backward pass costs two forward passes, not one",
            ORDER["flops"]: "it is the whole budget, not what your whole steps cost",
            steps * design.flops_of_step(): f"it is for batches of {BATCH}, and yours have {batch}",
            6 * n * batch * LENGTH * steps: "it is 6ND, without the scores and with the table",
        },
        "states": {
            18 * n: "18 bytes per parameter are mixed precision, not fp32",
            12 * n: "12 bytes per parameter; Exercise 1 counts 16, for Muon too",
            4 * n: "it is the weights alone",
            design.memory(batch): "activations are no states",
        },
    }
    d_model, d_ff = design.d_model, design.d_ff
    for other in (8 * d_model // 3, -(-8 * d_model // 3), 8 * d_model // 3 // 8 * 8, 4 * d_model):
        extra = 3 * design.layers * d_model * (other - d_ff)
        why = f"it has a d_ff of {other}, and the order says {d_ff}"
        every["parameters"].setdefault(n + extra, why)
        every["flops"].setdefault(steps * (step + 6 * batch * LENGTH * extra), why)
        every["states"].setdefault(16 * (n + extra), why)
    known = every[name]
    given = float(answer[name])
    return (
        RIGHT[name]
        if given == right
        else f"{given:,.12g}: " + known.get(given, f"it is too {'small' if given < right else 'large'}")
    )


def _view(asked: Case, value: Plain) -> str:
    """Describe one property of a commitment."""
    answer = _numbers(value)
    if answer is None:
        return _unusable(value)
    loss = float(answer["loss"])
    if loss < ENTROPY:
        return f"a loss of {loss:.4g}: no model can be below the text's entropy, {ENTROPY}"
    if loss > math.log(VOCABULARY):
        return f"a loss of {loss:.4g}: a model that has learned nothing has ln {VOCABULARY}"
    if broken := _broken(answer):
        return f"it breaks the order: {broken}"
    if asked.name == "the order":
        return RIGHT[asked.name]
    return _counted(answer, asked.name)


def _right() -> Numbers:
    design = Design(2, 24)
    steps = design.steps(ORDER["flops"], BATCH)
    answer: Numbers = {"layers": 2, "d_model": 24, "steps": steps, "parameters": design.parameters}
    answer |= {"optimizer": "muon", "batch": BATCH, "rate": 1.0, "warm_up": 30, "loss": 0.33}
    return answer | {"flops": steps * design.flops_of_step(BATCH), "states": 16 * design.parameters}


commitment = Exercise(
    "commitment",
    points=4,
    minutes=25,
    difficulty=3,
    reference=_right,
    cases=[case(name) for name in ("the order", *COUNTED)],
    hints=[
        "Go through the designs: `account_of` and the table of memory show which of them the order allows.",
        "Your law forecasts the loss of each with the given recipe. What do small runs say about another optimizer, "
        "rate or batch: how large is the difference, and does it stay with a second seed?",
        "flops = steps · FLOPs of one step at your batch size; states = 16 bytes per parameter, in fp32.",
    ],
    uses=["account_of", "steps_within"],
    view=_view,
)


@commitment.variant
def two_blocks() -> dict[str, object]:
    layers, width, d_ff, batch = 2, 24, 64, 16
    matrices = layers * (4 * width**2 + 3 * width * d_ff) + 128 * width
    parameters = matrices + 128 * width + (2 * layers + 1) * width
    step = 6 * batch * 64 * (matrices + 2 * layers * 64 * width)
    steps = 2e11 // step
    recipe = {"layers": layers, "d_model": width, "steps": steps, "optimizer": "muon", "batch": batch, "rate": 1.0}
    counted = {"parameters": parameters, "flops": steps * step, "states": 16 * parameters}
    return {**recipe, "warm_up": 30, **counted, "loss": 0.33}


commitment.slips(
    two_blocks,
    {
        "2, 24, 64, 16 → 1, 96, 256, 16": "Your model has more parameters than the order allows.",
        "2, 24, 64, 16 → 2, 48, 128, 16 ;; 2e11 // step → 2e11 // (6 * parameters * batch * 64)": "You counted the "
        "steps with 6ND. When the scores are counted, you are over the budget.",
        "2, 24, 64, 16 → 4, 32, 88, 16": "The parameters fit, but the activations do not: every block keeps its own. "
        "A smaller batch needs less memory.",
        "2, 24, 64, 16 → 2, 32, 88, 16 ;; 2e11 // step → 435": "You spend half of the budget. The order asks for at "
        "least 90 %.",
        "2, 24, 64, 16 → 2, 24, 64, 8 ;; 2e11 // step → 1412": "You counted the steps for batches of 16. Smaller "
        "batches cost less, so you can run more steps.",
        "16 * parameters → 18 * parameters": "You forecast the memory of the states for mixed precision. The order "
        "says fp32.",
        "steps * step → step": "You give the FLOPs of one step. The order counts the whole training run.",
        "steps * step → 2e11": "You give the whole budget as FLOPs. Forecast the FLOPs of your steps; whole steps "
        "rarely use all of the budget.",
        "steps * step → 6 * parameters * batch * 64 * steps": "You forecast 6ND FLOPs. This leaves out the scores and "
        "counts the table.",
        '"loss": 0.33 → "loss": 0.1': "Your forecast is below the entropy of the text. No model of these bytes can "
        "have a smaller loss.",
        '"loss": 0.33 → "loss": 33.0': "You forecast a larger loss than that of a model which has learned nothing.",
        "16 * parameters → 12 * parameters": "You forecast 12 bytes per parameter. Weights, gradients and two moments "
        "are 16, as in Exercise 1, for Muon too.",
        "16 * parameters → 4 * parameters": "You forecast the bytes of the weights alone. The states are gradients and "
        "two moments as well.",
        '"parameters": parameters → "parameters": matrices': "You count only the matrices that multiply. The table and "
        "the norms have parameters, too.",
        '"parameters": parameters → "parameters": parameters - 128 * width': "You count one of the two tables. The "
        "embedding and the head are separate.",
        "steps * step → steps * step // 3": "You forecast the FLOPs of the forward passes. A training step costs three "
        "times that.",
        '"optimizer": "muon" → "optimizer": "sgd"': "Your optimizer is none of those that the order allows.",
    },
)


COSTS = "costs = account_of(2, 24, 2, 64, 128, batch, 64)"
STEPS = "steps = steps_within(200000000000.0, costs['flops'])"
RETURNED = (
    "return {'layers': 2, 'd_model': 24, 'steps': steps, 'batch': batch, 'optimizer': 'muon', 'rate': 1, 'warm_up': 30,"
    " 'parameters': costs['parameters'], 'flops': steps * costs['flops'], 'states': costs['states'], 'loss': 0.325}"
)

for batch in (15, 17):
    commitment.equivalent_mutant(f"batch = 16 → batch = {batch}", "which batch is free, and all is counted for it")
for heads in (1, 3):
    commitment.equivalent_mutant(
        f"{COSTS} → {COSTS.replace('24, 2', f'24, {heads}')}",
        "heads divide the width among them: what they cost together does not depend on how many they are",
    )
for budget in ("200000000001.0", "199999999999.0"):
    commitment.equivalent_mutant(
        f"{STEPS} → {STEPS.replace('200000000000.0', budget)}",
        "one FLOP is less than what is left of the budget after its last step",
    )
for key, old, *others in (("rate", 1, 2), ("warm_up", 30, 29, 31), ("loss", 0.325, 0.65)):
    for other in others:
        changed = RETURNED.replace(f"'{key}': {old}", f"'{key}': {other}")
        commitment.equivalent_mutant(
            f"{RETURNED} → {changed}", "the rate and the warm-up are free; the loss is judged with the weights"
        )


@commitment.variant
def narrower_and_longer() -> dict[str, float | str]:
    return {
        "layers": 1,
        "d_model": 24,
        "steps": 2400,
        "optimizer": "adamw",
        "batch": 16,
        "rate": 0.5,
        "warm_up": 100,
        "parameters": 13_128,
        "flops": 2400 * 80_216_064,
        "states": 16 * 13_128,
        "loss": 0.37,
    }


@commitment.variant
def with_floats() -> dict[str, object]:
    answer: dict[str, object] = dict(zip(("layers", "d_model", "steps"), (2.0, 24.0, 1400.0), strict=True))
    answer |= {"parameters": 20_088.0, "flops": 1400.0 * 141_557_760, "states": 16 * 20_088.0, "batch": 16.0}
    return answer | {"loss": np.float64(0.331), "optimizer": "muon", "rate": np.float64(1.5), "warm_up": 0.0}


@commitment.variant
def four_blocks_in_small_batches() -> dict[str, object]:
    n, batch, width, layers = np.int64(58_656), 8, 32, 4
    flops_per_token = 6 * (layers * (4 * width**2 + 3 * width * 88) + 128 * width) + 12 * layers * 64 * width
    steps = math.floor(2e11 / (flops_per_token * 64 * batch))
    order = {"layers": layers, "d_model": width, "optimizer": "muon", "batch": batch, "rate": 1, "warm_up": 30}
    flops = steps * flops_per_token * 64 * batch
    return {"loss": 0.33, **order, "steps": steps, "parameters": n, "states": 16 * n, "flops": flops}
