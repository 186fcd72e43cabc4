"""The exercise on the norm of a gradient that goes back through many steps."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import normal64


def _by_autograd(W_h: Tensor, hidden: Tensor, v: Tensor) -> Tensor:
    """Run autograd backwards through steps with the given states and the slopes of tanh there."""
    states = hidden.double()
    leaves = [state.clone().requires_grad_() for state in states]
    chain = [leaves[0]]
    for state, leaf in zip(states[1:], leaves[1:], strict=True):
        before = chain[-1]
        linear = W_h.double() @ (before - before.detach())
        chain.append(leaf + (1 - state**2) * linear)
    gradients = torch.autograd.grad(chain[-1] @ v.double(), leaves)
    return torch.stack([gradient.norm() for gradient in reversed(gradients)]).to(v.dtype)


def _chain(random: Random, t: int, d: int, *, radius: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """A matrix, states between -0.9 and 0.9, and a vector to multiply from the left."""
    W_h = normal64(random, d, d, scale=radius / d**0.5)
    states = [random.choice((-1, 1)) * random.uniform(0.2, 0.9) for _ in range(t * d)]
    return W_h, torch.tensor(states, dtype=torch.float64).reshape(t, d), normal64(random, d)


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    saturated = torch.tensor([[0.3, -0.2], [1.0, 0.5], [-0.4, -1.0], [0.1, 0.6]], dtype=torch.float64)
    cases = [
        *(case("other sizes", *_chain(seen, *sizes, radius=2.0)) for sizes in ((4, 3), (3, 6), (2, 2))),
        case("one number", *_chain(seen, 5, 1, radius=2.0)),
        case("one step", *_chain(seen, 1, 3)),
        case("saturated states", 2 * torch.eye(2, dtype=torch.float64), saturated, _V),
        case("all saturated", *_chain(seen, 1, 2)[:1], torch.ones(3, 2, dtype=torch.float64), _V),
        case("single precision", *(each.float() for each in _chain(seen, 4, 3, radius=2.0))),
        case("a gradient that explodes", *_chain(seen, 40, 4, radius=6.0)),
        case("a vector of zeros", *_chain(seen, 3, 2)[:2], torch.zeros(2, dtype=torch.float64)),
        case("longer rows", *_chain(seen, 30, 4, radius=2.0)),
    ]
    for _ in range(3):
        t, d = random.sample(range(3, 9), 2)
        cases.append(case("other sizes", *_chain(random, t, d, radius=2.0)))
    return cases


_FIXED = Random(5)
_V = torch.tensor([3.0, 4.0], dtype=torch.float64)
_SHEAR = torch.tensor([[1.0, 2.0], [0.0, 1.0]], dtype=torch.float64)
_HALF = torch.tensor([[0.0, 0.5]] * 3, dtype=torch.float64)

gradient_at_lag = Exercise(
    "gradient_at_lag",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_by_autograd,
    cases=[
        case("a shear, states of zero", _SHEAR, torch.zeros(3, 2, dtype=torch.float64), _V),
        case("a shear, and slopes of 1 and ¾", _SHEAR, _HALF, _V),
        case("one number", *(torch.tensor(each).double() for each in ([[2.0]], [[0.1], [0.5], [-0.8]], [1.0]))),
        case("three steps", *_chain(_FIXED, 3, 2, radius=2.0)),
        case("five steps", *_chain(_FIXED, 5, 3, radius=2.0)),
        case("one step", *_chain(_FIXED, 1, 2)),
        case("single precision", *(each.float() for each in _chain(_FIXED, 4, 2, radius=2.0))),
    ],
    hidden_cases=_hidden,
    hints=[
        "Keep a vector g, which starts as v: that is lag 0. What does each step back do to it? First the tanh, then "
        "W_h.",
        "Go through the tanh of the state you come from: g * (1 - h**2), entry by entry. Then go back through W_h @ h.",
        "g = W_h.T @ ((1 - h**2) * g) for h = hidden[-1], hidden[-2], ... Keep g.norm() before each step back.",
    ],
    forbid=[*NO_AUTOGRAD],
)


@gradient_at_lag.variant
def state_by_state(W_h: Tensor, hidden: Tensor, v: Tensor) -> Tensor:
    gradient, norms = v, []
    for h in hidden.flip(0):
        norms.append(gradient.norm())
        slope = 1 - h**2
        gradient = W_h.T @ (slope * gradient)
    return torch.stack(norms)


gradient_at_lag.slips(
    state_by_state,
    {
        "gradient.norm() → gradient.norm() / v.norm()": "You divide by ‖v‖. The length itself is asked for, not the "
        "share that is left.",
        "W_h.T → W_h": "Going back, use the transpose: W_h.T @ g.",
        "slope * gradient → gradient": "The slope of the tanh is missing: every step back multiplies by 1 − h².",
        "hidden.flip(0) → hidden.roll(1, dims=0).flip(0)": "You use the slope at the state you go back to. Use the "
        "slope at the state you come from.",
        "W_h.T @ (slope * gradient) → slope * (W_h.T @ gradient)": "You go through W_h first and through the tanh "
        "after it. Going back, the tanh comes first: it acted last.",
        "W_h.T @ (slope * gradient) → slope * (W_h @ gradient)": "You use W_h for its transpose, and go through it "
        "before the tanh. Going back, the tanh comes first: it acted last.",
        "W_h.T @ (slope * gradient) → torch.linalg.eigvals(W_h).abs().max() * gradient": "You use powers of the "
        "spectral radius. They ignore the tanh, and show only the growth over many steps.",
        "hidden.flip(0) → hidden": "You go through the states from the first to the last. The gradient arrives at the "
        "last one: go back from there.",
        "gradient.norm() → gradient.abs().sum()": "You add up the sizes of the entries. A length is the root of the "
        "sum of their squares.",
        "h**2 → (h**2).sum()": "You take one slope for a whole state. Each of its numbers has its own slope, 1 − h².",
        "h**2 → h.tanh() ** 2": "You apply tanh again. `hidden` holds its results, so its slope there is 1 − h².",
        "stack(norms) → stack(norms[::-1])": "Your entries come in the order of time. Entry 0 is lag 0: the last state "
        "itself.",
        "        norms.append(gradient.norm())\n →  ;; (slope * gradient) → (slope * gradient)\n        "
        "norms.append(gradient.norm())": "Lag 0 is missing: the first entry is ‖v‖, before any step back.",
        "h**2 → h": "The slope of tanh is 1 − h², not 1 − h.",
        "W_h.T @ (slope * gradient) → torch.linalg.matrix_norm(slope[:, None] * W_h, ord=2) * gradient": "A product of "
        "norms is only a bound. Propagate the vector, and take its norm at each lag.",
        "gradient.norm() → gradient.norm() ** 2": "You return squared lengths. The norm is the root of the sum of "
        "squares.",
    },
)


gradient_at_lag.equivalent_mutant(
    "gradient = W_h.T @ ((1 - h ** 2) * gradient) → gradient = W_h.T @ ((h ** 2 - 1) * gradient)",
    "The vector changes its sign with every step, and its length does not.",
)


@gradient_at_lag.variant
def with_whole_jacobians(W_h: Tensor, hidden: Tensor, v: Tensor) -> Tensor:
    norms, product = [], torch.eye(len(v), dtype=v.dtype)
    for h in hidden.flip(0):
        norms.append(torch.linalg.vector_norm(v @ product))
        product = product @ torch.diag(1 - h.square()) @ W_h
    return torch.stack(norms)


gradient_at_lag.slips(
    with_whole_jacobians,
    {
        "product @ torch.diag(1 - h.square()) @ W_h → torch.diag(1 - h.square()) @ W_h @ product": "You multiply with "
        "the next Jacobian on the left. v meets the last step's first: that of an earlier step comes on the right.",
    },
)
