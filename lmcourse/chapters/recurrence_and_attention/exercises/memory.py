"""The exercise on the number of steps that a recurrent cell remembers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64
from lmcourse.exercises.values import Plain

KEEP = "step = lambda s, x: {keep} * s + x"
DIAGONAL = "import torch\nstep = lambda s, x: torch.tensor([{}]).double() * s + x"
ROTATION = "import torch\nstep = lambda s, x: torch.stack([-s[1], s[0]]) + x"
TANH = "import torch\nstep = lambda s, x: torch.tanh(W @ s + U @ x)"
LSTM = """\
import torch


def step(s, x):
    h, c = s.chunk(2)
    i, f, g, o = (W @ x + U @ h + b).chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return torch.cat([o.sigmoid() * c.tanh(), c])

"""


def by_jacobians(
    step: Callable[[Tensor, Tensor], Tensor], state: Tensor, inputs: Tensor, v: Tensor, share: float = 0.5
) -> int | None:
    jacobians = []
    for x in inputs:
        jacobian, state = torch.func.jacrev(lambda s, x=x: (step(s, x),) * 2, has_aux=True)(state)  # calls it once
        jacobians.append(jacobian)
    gradient = v
    for lag, jacobian in enumerate(reversed(jacobians), start=1):
        gradient = gradient @ jacobian
        if gradient.norm() < share * v.norm():
            return lag
    return None


def _ask(name: str, step: str, state: Tensor, inputs: Tensor, v: Tensor, share: float | None = None) -> Case:
    settings = "" if share is None else f", share={share}"
    return script(name, f"{step}\nmemory_span(step, state, inputs, v{settings})", state=state, inputs=inputs, v=v)


def _numbers(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def _gains(name: str, *gains: float, share: float | None = None, v: float = 1.0) -> Case:
    """A case whose cell multiplies its state by each input; the last gain is the newest."""
    return _ask(name, "step = lambda s, x: x * s", _numbers(1.0), _numbers(*gains)[:, None], _numbers(v), share)


def _kept(name: str, keep: float, steps: int, share: float | None = None, v: float = 1.0) -> Case:
    inputs = torch.zeros(steps, 1, dtype=torch.float64)
    return _ask(name, KEEP.format(keep=keep), _numbers(0.0), inputs, _numbers(v), share)


def _tanh(name: str, random: Random, steps: int, d: int, *, gain: float = 1.0, start: float = 0.3) -> Case:
    tensors: dict[str, Plain] = {
        "W": normal64(random, d, d, scale=gain / d**0.5),
        "U": normal64(random, d, 2, scale=0.4),
        "state": normal64(random, d, scale=start),
        "inputs": normal64(random, steps, 2),
        "v": normal64(random, d),
    }
    return script(name, f"{TANH}\nmemory_span(step, state, inputs, v)", **tensors)


def _lstm(name: str, random: Random, steps: int, d: int, forget_bias: float) -> Case:
    """A case in which the gradient arrives at the cell, the second half of the state."""
    bias = torch.zeros(4 * d, dtype=torch.float64)
    bias[d : 2 * d] = forget_bias
    tensors: dict[str, Plain] = {
        "W": normal64(random, 4 * d, 2, scale=0.3),
        "U": normal64(random, 4 * d, d, scale=0.3),
        "b": bias,
        "state": normal64(random, 2 * d, scale=0.3),
        "inputs": normal64(random, steps, 2),
        "v": torch.cat([torch.zeros(d), torch.ones(d)]).double(),
    }
    return script(name, f"{LSTM}memory_span(step, state, inputs, v)", **tensors)


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    two = torch.zeros(30, 2, dtype=torch.float64)
    cases = [
        _gains("a gradient that comes back", 0.2, 3.0, 5.0, 0.1, 1.5, 2.0),
        _gains("a gradient that grows first", 0.3, 0.25, 2.0, 4.0, share=0.2, v=-3.0),
        _gains("negative gains", 0.9, -0.9, -0.4, 0.9, -1.0),
        _kept("another share", 0.97, 90, share=0.25, v=5.0),
        _kept("not within the inputs", 0.95, 13),
        _kept("just within the inputs", 0.95, 14),
        _ask("two speeds", DIAGONAL.format("0.6, 0.93"), _numbers(0, 0), two, _numbers(2, 1)),
        edge(_kept("one step", 0.3, 1)),
        edge(_kept("exactly the share", 0.25, 5, share=0.0625, v=2.0)),
        edge(_kept("a share above 1", 0.5, 4, share=2.0)),
        _ask("three numbers", DIAGONAL.format("0.8, -0.8, 0.7"), _numbers(0, 1, 2), _LONG[:9, :1], _numbers(1, 2, -2)),
        _tanh("a tanh cell", seen, 25, 3, gain=1.5),
        _tanh("a large first state", seen, 3, 2, gain=3.0, start=2.0),
        _lstm("an LSTM", seen, 30, 2, 1.0),
    ]
    keeps = random.sample((0.7, 0.75, 0.85, 0.88, 0.92), 3)
    cases += [_kept("other cells", keep, 30, v=random.choice((-2.0, 0.5, 3.0))) for keep in keeps]
    return cases


_FIXED = Random(6)
_LONG = torch.zeros(30, 2, dtype=torch.float64)

memory_span = Exercise(
    "memory_span",
    points=3,
    minutes=10,
    difficulty=3,
    reference=by_jacobians,
    cases=[
        _kept("0.9 of the state stays", 0.9, 30),
        _kept("a longer gradient", 0.9, 30, v=4.0),
        _kept("a tenth", 0.9, 30, share=0.1),
        _ask("a rotation", ROTATION, _numbers(1, 0), _LONG, _numbers(3, 4)),
        _ask("one number slow, one fast", DIAGONAL.format("0.5, 0.95"), _numbers(1, 1), _LONG, _numbers(2, 3)),
        _ask("four numbers", KEEP.format(keep=0.9), _LONG.new_zeros(4), _LONG.new_zeros(30, 4), _LONG.new_ones(4)),
        _gains("the gradient grows, then fades", 0.2, 0.5, 0.25, 0.4, 4.0),
        _gains("the gradient fades, and comes back", 4.0, 0.5, 0.3, 1.0, 3.0, 0.2, 2.0),
        _tanh("a tanh cell", _FIXED, 25, 4, gain=2.2),
        _lstm("an LSTM", _FIXED, 30, 3, 2.0),
        edge(_kept("exactly half", 0.5, 5)),
        edge(_kept("one step, which forgets", 0.3, 1)),
        edge(_kept("one step, which keeps", 0.7, 1)),
        edge(_kept("a share above 1", 0.9, 5, share=1.5)),
        edge(script(
            "step is called once for each input",
            "calls = []\nstep = lambda s, x: calls.append(x) or 0.9 * s + x\n"
            "memory_span(step, state, inputs, v)\nlen(calls)",
            state=_numbers(0.0), inputs=torch.zeros(9, 1, dtype=torch.float64), v=_numbers(1.0),
        )),
    ],
    hidden_cases=_hidden,
    hints=[
        "Autograd can give the gradient of one number with respect to many tensors at once. Which number, and which "
        "tensors?",
        "Let the first state require a gradient (work on `state.detach()`), keep all T + 1 states in a list, and ask "
        "`torch.autograd.grad` for the gradients of v · s_T with respect to the list.",
        "Entry −1 − k of those gradients belongs to lag k. Return the first k from 1 to T whose length is below share "
        "times the length of v.",
    ],
)  # fmt: skip


@memory_span.variant
def all_gradients_at_once(
    step: Callable[[Tensor, Tensor], Tensor], state: Tensor, inputs: Tensor, v: Tensor, share: float = 0.5
) -> int | None:
    states = [state.detach().requires_grad_()]
    for x in inputs:
        states.append(step(states[-1], x))
    gradients = torch.autograd.grad(states[-1] @ v, states)
    lengths = [gradient.norm().item() for gradient in reversed(gradients)]
    bound = share * v.norm().item()
    for lag in range(1, len(lengths)):
        if lengths[lag] < bound:
            return lag
    return None


memory_span.slips(
    all_gradients_at_once,
    {
        "range(1, len(lengths)) → range(len(lengths))": "You begin with lag 0, which is v itself. Begin with lag 1.",
        "state.detach().requires_grad_() → state.detach()": "No state has `requires_grad`, so autograd records "
        "nothing. Ask for it at the first state, before the steps.",
        "return lag → return lag - 1": "You count lags from 0. The step from s_T to s_{T−1} is lag 1.",
        "for x in inputs: → inputs = [x.clone().requires_grad_() for x in inputs]\n    for x in inputs: ;; v, states) "
        "→ v, inputs) ;; reversed(gradients) → [v, *reversed(gradients)]": "You take gradients with respect to the "
        "inputs. Take them with respect to the *states*.",
        "gradient.norm() → gradient.abs().max()": "You compare single numbers with the bound. Take the length of the "
        "whole gradient vector.",
        "gradient.norm() → gradient.abs().max() ;; v.norm() → v.abs().max()": "You measure a gradient by its largest "
        "entry. Its length is the root of the sum of the squares.",
        "gradient.norm() → gradient.abs().sum() ;; v.norm() → v.abs().sum()": "You add up the sizes of the entries. A "
        "length is the root of the sum of their squares.",
        "states[-1] @ v → sum(state @ v for state in states)": "You add up the gradients of several states. v arrives "
        "only at the last state.",
        "v.norm().item() → max(lengths)": "You compare with the largest gradient on the way. The measure is the length "
        "of v.",
        "< bound → < share * lengths[lag - 1]": "You compare each gradient with the one a lag before. The measure is "
        "the length of v, at every lag.",
        "v.norm().item() → lengths[1]": "You compare with the gradient at lag 1. Compare with v, which arrives at lag "
        "0.",
        "share * v.norm().item() → share": "You compare with `share` itself. The bound is share times the length of v.",
        "lengths[lag] < → max(lengths[lag:]) <": "You return the lag from which the gradient stays below the bound. "
        "Return the first lag below it.",
        "share * v.norm().item() → 0.5 * v.norm().item()": "You compare with half of the length of v. The bound is "
        "`share` times it.",
        "for x in inputs: → for x in inputs.flip(0):": "Your cell reads the inputs backwards. It reads forwards, and "
        "only the gradient goes back.",
        "range(1, len(lengths)) → [len(inputs)]": "You look at the gradient at the first state alone. Return the first "
        "lag at which it is below the bound.",
        "return None → return 0": "If the gradient never falls below the bound, return None, not 0.",
        "return None → return len(inputs)": "If the gradient never falls below the bound, return None, not T.",
        "torch.autograd.grad(states[-1] @ v, states) → [torch.autograd.grad(s @ v, states[0], retain_graph=True)[0] "
        "for s in states] ;; reversed(gradients) → gradients": "You start from the first state and go forward. Lags "
        "count back from the last state.",
        "lengths[lag] → lengths[-lag]": "You count lags from the first gradient. They come in the order of the states, "
        "the oldest first, so lag 1 is at the end: go through them backwards.",
        "lengths[lag] → lengths[lag - 1]": "Your lag k looks at the gradient of lag k − 1. That of lag 0 is v itself, "
        "at the last state.",
        "torch.autograd.grad(states[-1] @ v, states) → [(states[-1] @ v).backward(), *(s.grad for s in states)][1:]": ""
        "A backward pass fills `.grad` of the first state only, which is a leaf. Call `retain_grad()` on each state, "
        "or ask `torch.autograd.grad`.",
        "reversed(gradients) → gradients": "You take the number of a state for its lag. State t lies T − t steps "
        "before the last one: lag k belongs to state T − k.",
        "gradient.norm() → gradient.norm().square()": "You compare the squared length. Take its root.",
        "states[-1] @ v → states[-1].sum()": "You backpropagate the sum of s_T. The gradient that arrives is v.",
        "states = [state → v = torch.ones_like(v)\n    states = [state": "You let a vector of ones arrive at the last "
        "state, and compare with its length. The gradient that arrives is v.",
        "< bound → <= bound": "A gradient exactly at the bound is not below it: use <, not ≤.",
        "len(lengths) → len(inputs)": "You leave out the first state. The largest lag is T.",
        "return lag → return lag\n        for x in inputs:\n            state = step(state, x)": "You run the cell "
        "again for each lag. One run of T steps gives every lag.",
    },
)


memory_span.variant(by_jacobians)
memory_span.slips(
    by_jacobians,
    {
        "gradient @ jacobian → jacobian @ gradient": "You multiply by the Jacobians. A gradient goes back through "
        "their transposes: v @ J.",
        "gradient @ jacobian → torch.linalg.matrix_norm(jacobian, 2) * gradient": "A product of norms is only a bound. "
        "Send v itself back, and take its length at each lag.",
        "reversed(jacobians) → jacobians": "You begin with the Jacobian of the first step. A gradient goes back: begin "
        "with that of the last.",
    },
)


memory_span.equivalent_mutant(
    "gradients = torch.autograd.grad(states[-1] @ v, states) → gradients = torch.autograd.grad(v @ states[-1], states)",
    "The dot product of two vectors is the same from both sides.",
)
