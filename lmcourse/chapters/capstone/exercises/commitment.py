"""The order itself: a design within its limits, and what is forecast of it before it is trained."""

from __future__ import annotations

import math

from torch import Tensor

from lmcourse.chapters.capstone.measured import ENTROPY, measured_loss
from lmcourse.chapters.capstone.recipe import DEPTHS, ORDER, VOCABULARY, WIDTHS, Design
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain

Numbers = dict[str, float]

BAND = 0.05
"""Nats a byte that a forecast may be off: a law of ten small runs misses the designs that it recommends by less."""

SLACK = 0.025
"""Nats a byte that a design may lose against the best one that we measured."""

LEAST_SHARE = 0.9
KEYS = ("layers", "d_model", "steps", "parameters", "flops", "states", "loss")
COUNTED = ("parameters", "flops", "states")


def _numbers(value: Plain) -> Numbers | None:
    """The answer, if it is a dict of the seven finite numbers."""
    if not isinstance(value, dict) or set(value) != set(KEYS):
        return None
    answer = {
        key: each.item() if isinstance(each, Tensor) and each.numel() == 1 else each for key, each in value.items()
    }
    numbers = [each for each in answer.values() if isinstance(each, int | float) and not isinstance(each, bool)]
    return answer if len(numbers) == len(KEYS) and all(map(math.isfinite, numbers)) else None


def _design(answer: Numbers) -> Design | None:
    if answer["layers"] not in DEPTHS or answer["d_model"] not in WIDTHS:
        return None
    return Design(int(answer["layers"]), int(answer["d_model"]))


def _flops(answer: Numbers, design: Design) -> int:
    return int(answer["steps"]) * design.step_flops


def _counted(answer: Numbers, design: Design) -> str:
    counts = {"parameters": design.parameters, "flops": _flops(answer, design), "states": 16 * design.parameters}
    off = [name for name in COUNTED if answer[name] != counts[name]]
    return f"{off[0]}: {answer[off[0]]:,} forecast, {counts[off[0]]:,} counted" if off else "counted to the last digit"


def _possible(answer: Numbers, design: Design) -> str:
    return "between perfect and clueless" if ENTROPY < answer["loss"] < math.log(VOCABULARY) else f"{answer['loss']:g}"


def _limit(name: str, limit: float, count: float, unit: str) -> str:
    return f"at most {limit:,.12g} {unit}" if count <= limit else f"{count:,.12g} {unit}"


def _forecast(answer: Numbers, design: Design) -> str:
    loss = measured_loss(design.layers, design.d_model)
    if loss is None or not _is_spent(answer, design):
        return "nothing was measured for it"
    return f"within {BAND}" if abs(answer["loss"] - loss) <= BAND else f"{answer['loss'] - loss:+.3f}"


def _good(answer: Numbers, design: Design) -> str:
    loss, best = measured_loss(design.layers, design.d_model), measured_loss()
    if loss is None or best is None or not _is_spent(answer, design):
        return "nothing was measured for it"
    return f"at most {SLACK} above the best" if loss <= best + SLACK else f"{loss - best:.3f} above the best"


def _is_spent(answer: Numbers, design: Design) -> bool:
    """Return True if the design keeps to the order and uses its budget, so that there is something to compare."""
    if design.parameters > ORDER["parameters"] or design.memory > ORDER["memory"]:
        return False
    return LEAST_SHARE * ORDER["flops"] <= _flops(answer, design) <= ORDER["flops"]


def _spent(answer: Numbers, design: Design) -> str:
    return "spent on what was ordered" if _is_spent(answer, design) else "not spent on what was ordered"


LOOKS = {
    "a design of the order": lambda answer, design: "of the order",
    "parameters": lambda answer, design: _limit("parameters", ORDER["parameters"], design.parameters, "parameters"),
    "memory": lambda answer, design: _limit("memory", ORDER["memory"] / 2**20, round(design.memory / 2**20, 2), "MiB"),
    "FLOPs": lambda answer, design: _limit(
        "flops", ORDER["flops"] / 1e9, round(_flops(answer, design) / 1e9, 3), "GFLOPs"
    ),
    "forecasts that can be counted": _counted,
    "a loss that can be": _possible,
    "the loss that was measured": _forecast,
    "a good design": _good,
    "the budget is used": _spent,
}


def _view(asked: Case, value: Plain) -> str:
    """One property of a design and its forecasts. The measured losses stay where the judge is."""
    answer = _numbers(value)
    if answer is None:
        return f"a dict of seven numbers is asked for: {', '.join(KEYS)}"
    design = _design(answer)
    if design is None:
        return f"d_model is one of {WIDTHS} and layers one of {DEPTHS}"
    if answer["steps"] < 1 or answer["steps"] != int(answer["steps"]):
        return "steps are whole, and at least 1"
    return LOOKS[asked.name](answer, design)


def _committed(layers: int, d_model: int, loss: float, steps: int | None = None, **changes: float) -> Numbers:
    design = Design(layers, d_model)
    done = design.steps(ORDER["flops"]) if steps is None else steps
    answer: Numbers = {"layers": layers, "d_model": d_model, "steps": done, "parameters": design.parameters}
    answer |= {"flops": done * design.step_flops, "states": 16 * design.parameters, "loss": loss}
    return answer | changes


commitment = Exercise(
    "commitment",
    points=8,
    minutes=40,
    difficulty=3,
    reference=lambda: _committed(2, 32, 0.32),
    cases=[case(name) for name in [*list(LOOKS)[:6], "the budget is used"]],
    hidden_cases=lambda random: [case(name) for name in [*LOOKS][6:]],
    hints=[
        "Go through the eighteen designs: `account_of` and the table of memory say which may be ordered at all.",
        "For each of those: N, the steps that 6·10¹¹ FLOPs pay for, 1,024 bytes a step; your law "
        "says what loss to expect.",
        "The valley is flat: take one near its bottom. flops = steps · FLOPs of a step; states = 16 bytes a parameter.",
    ],
    uses=["account_of", "steps_within"],
    view=_view,
)


for heads in (3, 5):
    commitment.equivalent_mutant(
        f"costs = account_of(1, 64, 4, 176, 128, 16, 64) → costs = account_of(1, 64, {heads}, 176, 128, 16, 64)",
        "heads divide the width among them: what they cost together does not depend on how many they are",
    )
for budget in ("600000000001.0", "599999999999.0"):
    commitment.equivalent_mutant(
        f"steps = steps_within(600000000000.0, costs['flops']) → steps = steps_within({budget}, costs['flops'])",
        "one FLOP is less than what is left of the budget after its last step",
    )


@commitment.misconception("Your model has more parameters than were ordered.")
def too_large() -> Numbers:
    return _committed(1, 96, 0.33)


@commitment.misconception(
    "You counted the steps with 6ND: with the scores, which cost FLOPs too, you are 8 % over the budget."
)
def steps_of_six_nd() -> Numbers:
    return _committed(2, 48, 0.32, steps=int(6e11 / (6 * 67_824 * 1024)))


@commitment.misconception("The parameters fit, and the activations do not: every block keeps its own.")
def too_deep_for_memory() -> Numbers:
    return _committed(4, 32, 0.32)


@commitment.misconception("You trained the smallest model longest. It is full: more text no longer helps it.")
def tiny_and_long() -> Numbers:
    return _committed(1, 16, 0.36)


@commitment.misconception(
    "Your forecast is the text's entropy: what a perfect model would reach, after endless training."
)
def entropy_as_forecast() -> Numbers:
    return _committed(2, 48, 0.2221)


@commitment.misconception("Your forecast is the loss of the small runs. The order has ten times their FLOPs.")
def loss_of_the_small_runs() -> Numbers:
    return _committed(2, 32, 0.434)


@commitment.misconception("A budget that is not spent buys nothing: half of the steps are left.")
def thrifty() -> Numbers:
    return _committed(2, 48, 0.32, steps=662)


@commitment.misconception("Your forecast of the states is that of mixed precision. The order says fp32.")
def states_of_mixed_precision() -> Numbers:
    return _committed(2, 48, 0.32, states=18.0 * 67_824)


@commitment.misconception("Your FLOPs are those of one step. The order counts the whole training.")
def flops_of_a_step() -> Numbers:
    return _committed(2, 48, 0.32, flops=452_984_832)


@commitment.misconception("Your loss is in bits. The course counts nats: times ln 2.")
def in_bits() -> Numbers:
    return _committed(2, 48, 0.32 / math.log(2))
