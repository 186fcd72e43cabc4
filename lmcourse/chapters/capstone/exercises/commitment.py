"""The commitment: a design and a recipe within the limits of the order, and forecasts made before the training."""

from __future__ import annotations

import math

import numpy as np

from lmcourse.chapters.capstone.recipe import BATCH, LENGTH, ORDER, Design
from lmcourse.chapters.capstone.sealed import COUNTED, Numbers, design_of, plan_of, problem_of
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain

RIGHT = {"parameters": "counted", "flops": "counted", "states": "counted", "the order": "kept, and used"}


def _counted(answer: Numbers, name: str) -> str:
    """Return "counted", or the quantity that the forecast counts instead."""
    design, steps, batch = design_of(answer), int(answer["steps"]), int(answer["batch"])
    n, step = design.parameters, design.flops_of_step(batch)
    d_model, d_ff = design.d_model, design.d_ff
    blocks = design.layers * d_model * (4 * d_model + 3 * d_ff)
    right = {"parameters": n, "flops": steps * step, "states": 16 * n}[name]
    every: dict[str, dict[float, str]] = {
        "parameters": {n - 128 * d_model: "it lacks one of the two tables"},
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
            16 * n - 4 * blocks: "Muon keeps one moment per matrix; count two, as in Exercise 1",
            12 * n: "12 bytes per parameter; Exercise 1 counts 16, for Muon too",
            4 * n: "it is the weights alone",
            design.memory(batch): "activations are no states",
        },
    }
    for other in (8 * d_model // 3, -(-8 * d_model // 3), 8 * d_model // 3 // 8 * 8, 4 * d_model):
        extra = 3 * design.layers * d_model * (other - d_ff)
        why = f"it has a d_ff of {other}, and the order says {d_ff}"
        every["parameters"].setdefault(n + extra, why)
        every["flops"].setdefault(steps * (step + 6 * batch * LENGTH * extra), why)
        every["states"].setdefault(16 * (n + extra), why)
    given = float(answer[name])
    unlike = f"it is too {'small' if given < right else 'large'}"
    return RIGHT[name] if given == right else f"{given:,.12g}: {every[name].get(given, unlike)}"


def _view(asked: Case, value: Plain) -> str:
    """Describe one property of a commitment."""
    answer = plan_of(value)
    if isinstance(answer, str):
        return answer
    return problem_of(answer) or (RIGHT[asked.name] if asked.name == "the order" else _counted(answer, asked.name))


def _right() -> Numbers:
    design = Design(2, 24)
    steps = design.steps(ORDER["flops"], BATCH)
    answer: Numbers = {"layers": 2, "d_model": 24, "steps": steps, "parameters": design.parameters}
    answer |= {"optimizer": "muon", "batch": BATCH, "rate": 1.0, "warm_up": 30, "loss": 0.33}
    return answer | {"flops": steps * design.flops_of_step(BATCH), "states": 16 * design.parameters}


commitment = Exercise(
    "commitment",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_right,
    cases=[case(name) for name in ("the order", *COUNTED)],
    hints=[
        "Go through the designs: `account_of` and the table of memory show which of them the order allows.",
        "Your law forecasts the loss of each with the given recipe. Is another optimizer, rate or batch better? Buy "
        "pairs. Fewer than six never have p below 0.05, and a run must be long against its warm-up: 3.3·10¹⁰ FLOPs.",
        "flops = steps · FLOPs of one step at your batch size; states = 16 bytes per parameter, in fp32.",
    ],
    uses=["account_of"],
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
        "16 * parameters → 16 * parameters - 4 * (matrices - 128 * width)": "You count one moment for matrices, as "
        "Muon keeps it. Count two, as in Exercise 1.",
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
STEPS = "steps = int(200000000000.0 // costs['flops'])"
RETURNED = (
    "return {'layers': 2, 'd_model': 24, 'steps': steps, 'batch': batch, 'optimizer': 'muon', 'rate': 1, 'warm_up': 30,"
    " 'parameters': costs['parameters'], 'flops': steps * costs['flops'], 'states': costs['states'], 'loss': 0.325}"
)
FREE = {
    "which batch is free, and all is counted for it": ("batch = 16", "16", ("15", "17")),
    "the cost of heads does not depend on how many divide the width": (COSTS, "24, 2", ("24, 1", "24, 3")),
    "one FLOP is less than a step": (STEPS, "200000000000.0", ("200000000001.0", "199999999999.0")),
    "a whole number may be a float": (STEPS, STEPS[8:], (STEPS[12:-1],)),
    "int() drops what // drops": (STEPS, "//", ("/",)),
    "the rate is free": (RETURNED, "'rate': 1", ("'rate': 2",)),
    "the warm-up is free": (RETURNED, "'warm_up': 30", ("'warm_up': 29", "'warm_up': 31")),
    "the loss is judged with the weights": (RETURNED, "0.325", ("0.65",)),
}
for reason, (line, old, others) in FREE.items():
    for other in others:
        commitment.equivalent_mutant(f"{line} → {line.replace(old, other)}", reason)


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
