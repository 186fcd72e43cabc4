"""The exercise on backpropagation through time, with one number for a state."""

from __future__ import annotations

import cmath
import math
from random import Random

import torch

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _by_autograd(w: float, inputs: list[float], h0: float) -> float:
    weight = torch.tensor(w, dtype=torch.float64, requires_grad=True)
    h = torch.tensor(h0, dtype=torch.float64) + 0 * weight
    for x in inputs:
        h = torch.tanh(weight * h + x)
    (slope,) = torch.autograd.grad(h, weight)
    return slope.item()


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    cases = [
        case("two steps", -0.6, [0.3, 0.8], 0.9),
        case("one step", -1.5, [0.4], -0.6),
        case("a weight of zero", 0.0, [0.5, -0.2, 0.3], 0.4),
        case("a negative weight", -0.8, [0.5, -0.2, 0.3, 0.1], 0.4),
        case("a first state of zero", 1.2, [0.1, 0.0, -0.4], 0.0),
        case("a first state beyond one", 0.3, [0.2, -0.1], -2.5),
        case("saturated states", 2.0, [3.0, -4.0, 2.5], 1.0),
        *(case("saturated states", 1.0, inputs, 0.5) for inputs in ([1000.0, 0.1, -0.2], [0.2, -1000.0])),
        case("a weight above one", 2.0, [0.05, -0.02, 0.04, 0.01], 0.01),
        case("many steps", 0.9, [round(seen.uniform(-0.5, 0.5), 2) for _ in range(60)], 0.2),
    ]
    for steps in (2, 3, 4, 5):  # with more steps, the start has no influence within the precision
        inputs = [round(random.uniform(-0.8, 0.8), 3) for _ in range(steps)]
        cases.append(case("other rows", round(random.uniform(0.3, 1.2), 3), inputs, round(random.uniform(0.2, 0.9), 3)))
    return cases


through_time = Exercise(
    "through_time",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_by_autograd,
    tolerance=Tolerance(0.0, 1e-13),  # finite differences are right only to 1e-10, sometimes to 1e-12
    cases=[
        case("one step", 0.5, [0.0], 1.0),
        case("two steps", 0.5, [1.0, 0.0], 0.0),
        case("three steps", 0.7, [0.5, -0.2, 0.1], 0.3),
        case("no step", 0.5, [], 0.4),
        case("ten equal inputs", 0.8, [0.1] * 10, 0.5),
        case("a large input", 1.2, [800.0, 0.2, -0.1], 0.3),
        case("five thousand inputs", 0.9, [0.1, -0.2] * 2500, 0.5),
    ],
    hidden_cases=_hidden,
    hints=[
        "Let d be the slope dh/dw of the current state. Before the first step it is 0: h0 does not depend on w.",
        "In z = w · h + x both factors depend on w. What does the product rule give for dz/dw?",
        "dz/dw is the old state plus w times the old slope. Then the tanh, whose slope is 1 − h² of the *new* state.",
    ],
    forbid=["torch"],
)


@through_time.variant
def forwards(w: float, inputs: list[float], h0: float) -> float:
    h, slope = h0, 0.0
    for x in inputs:
        new = math.tanh(w * h + x)
        slope = (1 - new**2) * (h + w * slope)
        h = new
    return slope


through_time.slips(
    forwards,
    {
        "h + w * slope → h": "You stop after one step back. w was used in every step, and all of them count.",
        "(1 - new**2) * (h → (h": "The slope of the tanh is missing: 1 − h², in every step.",
        "(1 - new**2) * (h + w * slope) → (1 - new**2) * h + w * slope || (1 - new**2) * (h + w * slope) → h + (1 - "
        "new**2) * w * slope": "The slope of the tanh, 1 − h², multiplies both parts: the old state and w times the "
        "old slope.",
        "new**2 → h**2": "You take 1 − h² at the state that goes in. Use the state that comes out.",
        "w * slope → slope": "A factor w is missing: in each step the derivative from earlier steps has to be "
        "multiplied by w.",
        "(h + → (new +": "Step t multiplies w by the state *before* it. You take the state after it.",
        "new**2 → new": "The slope of the tanh is 1 − h², and yours is 1 − h: the square is missing.",
        "0.0 → 1.0 ;; (h + w * slope) → w * slope": "You return the derivative with respect to h0. Return the one with "
        "respect to w.",
        "new**2 → (w * h + x) ** 2": "The slope of the tanh is 1 − tanh²(z), not 1 − z²: square its result.",
        "math.tanh(w * h + x) → 1 - 2 / (math.exp(2 * (w * h + x)) + 1)": "e⁷¹⁰ is too large for a float, so exp and "
        "cosh overflow for a large input. math.tanh does not.",
        "return slope → return slope / max(1, len(inputs))": "You average over the steps. They add up: the same w was "
        "used in each.",
        "0.0 → 1.0": "Your derivative starts at 1. h0 does not depend on w, so it starts at 0.",
        "    for x in inputs:\n →     def step(inputs, h, slope):\n        if not inputs:\n            return "
        "slope\n        x, *inputs = inputs\n ;; h = new\n    return slope → return step(inputs, new, slope)\n    "
        "return step(inputs, h, slope)": "Your function calls itself once for each input, and Python stops after about "
        "1,000 nested calls. Use a loop.",
        "slope = (1 → slope += (1 ;; (h + w * slope) → h": "You add up the effects that w has in the single steps. The "
        "effect of an earlier step passes through every later one, and gets a factor w · (1 − h²) there.",
    },
)


@through_time.variant
def with_a_complex_step(w: float, inputs: list[float], h0: float) -> float:
    h, step = complex(h0), 1e-30
    for x in inputs:
        h = cmath.tanh(complex(w, step) * h + x)
    return h.imag / step


through_time.slips(
    with_a_complex_step,
    {
        "h, step = complex(h0), 1e-30 → up, down, step = h0, h0, 1e-6 ;; h = cmath.tanh(complex(w, step) * h + x) → "
        "up, down = math.tanh((w + step) * up + x), math.tanh((w - step) * down + x) ;; h.imag / step → (up - down) / "
        "(2 * step)": "You nudge w in both directions. About ten digits are right, and the task wants thirteen: "
        "differentiate each step.",
        "h, step = complex(h0), 1e-30 → up, h, step = h0, h0, 1e-6 ;; h = cmath.tanh(complex(w, step) * h + x) → up, h "
        "= math.tanh((w + step) * up + x), math.tanh(w * h + x) ;; h.imag / step → (up - h) / step": "You nudge w in "
        "one direction. About six digits are right, and the task wants thirteen: differentiate each step.",
    },
)


@through_time.variant
def backwards(w: float, inputs: list[float], h0: float) -> float:
    states = [h0]
    for x in inputs:
        states.append(math.tanh(w * states[-1] + x))
    arriving, total = 1.0, 0.0
    for t in range(len(inputs), 0, -1):
        arriving *= 1 - states[t] ** 2
        total += arriving * states[t - 1]
        arriving *= w
    return total
