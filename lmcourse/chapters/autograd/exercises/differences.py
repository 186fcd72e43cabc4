"""The exercise on derivatives by central differences."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import normal, normal64

Function = Callable[[Tensor], Tensor]

CUBES = "f = lambda x: (x ** 3).sum()"
ROWS = "f = lambda x: (x @ x.T)[0, 1] ** 3 / 100"
MIXED = "f = lambda x: (x.flatten()[0] * x.flatten().tanh()).sum() + (x ** 4).mean()"


def _central(f: Function, x: Tensor, step: float = 1e-5) -> Tensor:
    """Move every element up and down, in float64."""
    nudges = step * torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)
    differences = [f(x.double() + nudge) - f(x.double() - nudge) for nudge in nudges]
    return (torch.stack(differences) / (2 * step)).reshape(x.shape).to(x.dtype)


def _ask(name: str, function: str, x: Tensor, step: float = 1e-5) -> Case:
    return script(name, f"{function}\nnumeric_gradient(f, x, step)", x=x, step=step)


def _functions(random: Random) -> list[Case]:
    fine = 10.0 ** random.randint(-5, -4)
    return [
        _ask("other shapes", ROWS, normal64(Random(7), 2, 3), 0.02),
        _ask("other shapes", "f = lambda x: x[0, 0, 1] * x[1, 0, 0] ** 2", normal64(Random(7), 2, 1, 2), 0.1),
        _ask("axes that changed places", ROWS, normal64(Random(8), 3, 2).T, 0.02),
        _ask("one of one", "f = lambda x: x[0] ** 3", torch.tensor([-2.0], dtype=torch.float64), 0.25),
        _ask("other functions", MIXED, normal64(random, 4), 1e-3),
        _ask("other functions", "f = lambda x: x.exp().sum() * x.sum()", normal64(random, 3), 0.05),
        _ask("other shapes", CUBES, normal64(random, 2, 3), 0.01),
        _ask("other shapes", MIXED, normal64(random, 2, 1, 2), 0.02),
        _ask("a single number", "f = lambda x: x ** 3", torch.tensor(random.uniform(1, 2), dtype=torch.float64), 0.1),
        _ask("single precision", CUBES, normal(random, 5, dtype=torch.float32), fine),
        _ask("single precision", MIXED, normal(random, 2, 2, dtype=torch.float32), fine),
    ]


numeric_gradient = Exercise(
    "numeric_gradient",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_central,
    # One unit in the last place of a float32, plus float64's rounding of f divided by a step of 1e-5.
    tolerance=Tolerance(2.0**-23, 1e-8),
    cases=[
        _ask("x³ at 2, a large step", CUBES, torch.tensor([2.0], dtype=torch.float64), 0.1),
        _ask("three numbers", CUBES, torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64), 0.01),
        _ask("elements that act together", MIXED, torch.tensor([0.5, 1.0, -1.0], dtype=torch.float64), 1e-3),
        _ask("a matrix", ROWS, torch.tensor([[1.0, 2.0, 0.0], [3.0, -1.0, 0.5]], dtype=torch.float64), 0.1),
        edge(
            script(
                "the step by default: 4e-6 from a kink",
                "f = lambda x: x.abs().sum()\nnumeric_gradient(f, x)",
                x=torch.tensor([4e-6, -3.0], dtype=torch.float64),
            )
        ),
        _ask("a steep function", "f = lambda x: (1e60 * x ** 2).sum()", torch.tensor([1.5, -2.0]).double(), 0.1),
        _ask("float32 in, float32 out", CUBES, torch.tensor([0.7, 1.3]), 1e-5),
    ],
    hidden_cases=_functions,
    hints=[
        "One element at a time: nudge it up, call f, nudge it down, call f. Leave all other elements as they are.",
        "Work on a copy in float64: x.double().flatten(), then .clone() for each nudge. A difference of two nearly "
        "equal float32 numbers is mostly rounding error.",
        "(f(above) - f(below)) / (2 * step) for each element; at the end back to x's shape and dtype.",
    ],
    forbid=NO_AUTOGRAD,
)


@numeric_gradient.variant
def nudged_and_put_back(f: Any, x: torch.Tensor, step: float = 1e-5) -> torch.Tensor:
    wide = x.detach().to(torch.float64).clone(memory_format=torch.contiguous_format)
    flat, result = wide.view(-1), torch.empty(x.shape, dtype=x.dtype)
    for number, before in enumerate(flat.tolist()):
        values = []
        for sign in (1, -1):
            flat[number] = before + sign * step
            values.append(f(wide).item())
        flat[number] = before
        result.view(-1)[number] = (values[0] - values[1]) / (2 * step)
    return result


@numeric_gradient.variant
def by_index_in_numpy(f: Any, x: torch.Tensor, step: float = 1e-5) -> torch.Tensor:
    point = x.numpy().astype(np.float64)
    slopes = np.zeros_like(point)
    for place in np.ndindex(*point.shape):
        nudge = np.zeros_like(point)
        nudge[place] = step
        slopes[place] = 0.5 / step * (float(f(torch.tensor(point + nudge))) - float(f(torch.tensor(point - nudge))))
    return torch.from_numpy(slopes.astype(x.numpy().dtype))


@numeric_gradient.variant
def one_element_at_a_time(f: Any, x: torch.Tensor, step: float = 1e-5) -> torch.Tensor:
    wide = x.double().flatten()
    slopes = []
    for i in range(len(wide)):
        above, below = wide.clone(), wide.clone()
        above[i] += step
        below[i] -= step
        slopes.append((f(above.reshape(x.shape)) - f(below.reshape(x.shape))) / (2 * step))
    return torch.stack(slopes).reshape(x.shape).to(x.dtype)


numeric_gradient.slips(
    one_element_at_a_time,
    {
        "below[i] -= step → below[i] -= 0 ;; (2 * step) → step": "You take f(x + h) − f(x). The error of that "
        "one-sided difference is a multiple of h; the error of the central difference is only a multiple of h².",
        "(2 * step) → step": "The distance from x − h to x + h is two steps: divide by 2h.",
        "above[i] → above ;; below[i] → below": "You nudge all elements at once, so every entry is the sum of all "
        "derivatives. Nudge one element at a time.",
        "below[i] -= step → below[i] -= step; wide = below": "You do not put a nudged element back before the next "
        "one, so later derivatives are taken at another point.",
        "x.double() → x": "You compute in float32. f(x + h) and f(x − h) agree in nearly all of their seven digits, so "
        "their difference is mostly noise: convert to float64 first.",
        "torch.stack(slopes).reshape(x.shape) → torch.stack(slopes)": "The gradient has the shape of x; yours is flat.",
        "torch.stack(slopes) → torch.stack(slopes).float()": "You keep the derivatives in float32, where 1e60 is "
        "infinite, and convert too late. `torch.zeros(shape)` is float32; `torch.zeros_like(x)` has the dtype of x.",
        ".to(x.dtype) → ": "You always return float64. Compute in float64, but return the dtype of x.",
        "x.double() → x ;; f(above.reshape → f(above.double().reshape ;; "
        "f(below.reshape → f(below.double().reshape": "You nudge x in its own dtype, where x + h is rounded to "
        "float32. Convert x to float64 first, then nudge.",
        "wide = x → step = 1e-5; wide = x": "You ignore `step`. The caller chooses how far to nudge.",
        "above[i] += step → above[i] += 0 ;; (2 * step) → step": "You take f(x) − f(x − h), which is one-sided, too. "
        "The central difference starts at x + h.",
        "(2 * step) → 2 * step": "`/ 2 * step` divides by 2 and then multiplies by the step. Put `2 * step` in "
        "parentheses.",
        "above[i] += step → above[i] += step / 2 ;; below[i] -= step → below[i] -= step / 2": "You nudge by h/2 to "
        "each side and divide by 2h. Divide by the distance between both points.",
        "wide.clone(), wide.clone() → [wide.clone()] * 2": "Every difference is 0: x + h and x − h are one tensor. "
        "Make a copy for each.",
        "f(above.reshape(x.shape)) - f(below.reshape(x.shape)) → f(above.reshape(x.shape)).float() - "
        "f(below.reshape(x.shape)).float()": "You round the values of f to float32 before you subtract them, and "
        "nothing but rounding is left. Keep float64 until the end.",
        "(len(wide)) → (len(x)) ;; wide.clone(), wide.clone() → wide.reshape(x.shape).clone(), "
        "wide.reshape(x.shape).clone() ;; torch.stack(slopes).reshape(x.shape) → "
        "torch.stack(slopes).reshape(-1, *[1] * (x.ndim - 1)).expand(x.shape)": "You nudge a whole row of x at a time. "
        "Nudge one element at a time, of all axes.",
    },
)
