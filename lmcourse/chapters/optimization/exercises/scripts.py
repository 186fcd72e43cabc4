"""Scripts that run an optimizer on a parameter with given gradients, and return the path of the parameter."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script

SECONDS = 30.0
"""The time limit of a case: the first optimizer of a process, or its first `torch.func`, makes torch import its
compiler, which takes seconds."""

STEPS = """\
for g in gradients:
    w.grad = g.clone()
    o.step()
    path.append(w.detach().clone())"""


def tensor(*numbers: float | list[float]) -> Tensor:
    """Numbers in double precision, which all of these exercises use."""
    return torch.tensor(numbers, dtype=torch.float64)


def path(name: str, optimizer: str, start: Tensor, gradients: Tensor) -> Case:
    """A case that returns the path of `w` from `start`, one step per gradient, with the optimizer of this
    expression."""
    return script(
        name,
        f"w = start.clone().requires_grad_()\npath = []\no = {optimizer}\n{STEPS}\npath",
        start=start,
        gradients=gradients,
    )


def late(name: str, optimizer: str) -> Case:
    """A case with two parameters, v and w; w has a gradient in the steps 2, 3 and 5 only."""
    lines = f"""\
v, w = a.clone().requires_grad_(), b.clone().requires_grad_()
o = {optimizer}
v.grad = g.clone()
o.step()
w
w.grad = h.clone()
o.step()
o.step()
w.grad = None
o.step()
w.grad = h.clone()
o.step()
v
w"""
    return script(name, lines, a=tensor(1.0, -2.0), b=tensor([3.0], [0.5]), g=tensor(1.0, 3.0), h=tensor([2.0], [-1.0]))


def groups(name: str, optimizer: str, **inputs: Tensor) -> Case:
    """A case with two parameters, v and w, in separate groups; w's gradient is twice v's."""
    lines = f"""\
v, w = a.clone().requires_grad_(), b.clone().requires_grad_()
o = {optimizer}
for g in gradients:
    v.grad, w.grad = g.clone(), 2 * g
    o.step()
v
w"""
    return script(name, lines, **inputs)


def scheduled(name: str, optimizer: str, start: Tensor, gradients: Tensor) -> Case:
    """A case that returns the path while the rate is halved after every step, as a schedule does."""
    steps = f"{STEPS}\n    o.param_groups[0]['lr'] /= 2"
    return script(
        name,
        f"w = start.clone().requires_grad_()\npath = []\no = {optimizer}\n{steps}\npath",
        start=start,
        gradients=gradients,
    )


def zeroed(name: str, optimizer: str, start: Tensor, gradients: Tensor) -> Case:
    """A case that reads the gradient after a step and sets it to 0 in place. A step without a new gradient follows,
    then a step with the first gradient again."""
    lines = f"""\
w = start.clone().requires_grad_()
o = {optimizer}
w.grad = gradients[0].clone()
o.step()
w.grad
w.grad.zero_()
o.step()
w
w.grad = gradients[0].clone()
o.step()
w
w.requires_grad"""
    return script(name, lines, start=start, gradients=gradients)


def saved(name: str, optimizer: str, start: Tensor, gradients: Tensor) -> Case:
    """A case that takes two steps, loads the state into a new optimizer, and takes two more."""
    lines = f"""\
w = start.clone().requires_grad_()
path = []
o = {optimizer}
{STEPS}
state = o.state_dict()
o = {optimizer}
o.load_state_dict(state)
{STEPS}
path"""
    return script(name, lines, start=start, gradients=gradients)


def two_at_once(name: str, first: str, second: str, **inputs: Tensor) -> Case:
    """A case with two optimizers of one class side by side, each with its own parameter."""
    lines = f"""\
v, w = a.clone().requires_grad_(), b.clone().requires_grad_()
one, other = {first}, {second}
for g in gradients:
    v.grad, w.grad = g.clone(), -g
    one.step()
    other.step()
v
w"""
    return script(name, lines, **inputs)
