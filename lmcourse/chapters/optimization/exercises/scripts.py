"""Scripts that run an optimizer on a parameter with given gradients, and return the path of the parameter."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.inputs import normal64

SECONDS = 30.0
"""The time limit of a case: the first optimizer of a process, or its first `torch.func`, makes torch import its
compiler, which takes seconds."""

NOT_THE_GROUPS = (
    "You use one setting for all groups. Each may have its own, and a schedule changes them: read `group[...]`."
)
CONTRACT = {
    "if p.grad is None: → group = self.param_groups[0]\n                if p.grad is None:": "You use the settings of "
    "the first group for all. Each group has its own.",
    "if p.grad is None: → group = self.defaults\n                if p.grad is None:": NOT_THE_GROUPS,
    "p.grad is None → False": "Your step fails on a parameter without a gradient. Skip it: it was not used.",
    "for group in self.param_groups → for group in self.param_groups[:1]": "You change the parameters of the first "
    "group only. Loop over all groups.",
    "continue → break": "You leave the loop at the first parameter without a gradient. Skip only this one: `continue`.",
    "p -= → p +=": "Your parameter climbs. Descent goes against the gradient: subtract.",
    "p -= → p = p -": "You give the name p to a new tensor, and the parameter keeps its numbers. Change it in place: "
    "`p -= ...`.",
    'p -= group["lr"] → p -= group.setdefault("first", group["lr"])': "You use the initial rate. A schedule changes "
    "`group['lr']`: read it at every step.",
    "    @torch.no_grad()\n → ": "Autograd tries to record the update and raises an error: put `@torch.no_grad()` "
    "above `step`.",
}
"""Mistakes that every optimizer may have, as edits of the variants `LineByLine`."""

MEMORY = CONTRACT | {
    "self.state[p] → self.state[id(p)]": "A checkpoint loses what you remember. Keep it in `self.state[p]`: "
    "elsewhere it is not saved, and an `id` is another one after a restart.",
    "p.grad is None → p.grad is None or not p.grad.any()": "You skip a gradient that is 0. In that step the "
    "optimizer's memory should still decay, and still move the parameter. Skip only None.",
}
"""The same of optimizers that remember something about each parameter."""

STEPS = """\
for g in gradients:
    w.grad = g.clone()
    o.step()
    path.append(w.detach().clone())"""


def tensor(*numbers: float | list[float]) -> Tensor:
    """Numbers in double precision, which all of these exercises use."""
    return torch.tensor(numbers, dtype=torch.float64)


def path(name: str, optimizer: str, start: Tensor, gradients: Tensor, *after: str) -> Case:
    """A case that returns the path of `w` from `start`, a step per gradient; each step ends with the lines `after`."""
    steps = "\n    ".join((STEPS, *after))
    return script(
        name,
        f"w = start.clone().requires_grad_()\npath = []\no = {optimizer}\n{steps}\npath",
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
    return path(name, optimizer, start, gradients, "o.param_groups[0]['lr'] /= 2")


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
    """A case that takes two steps, loads the state into an optimizer of a new parameter, and takes two more."""
    lines = f"""\
w = start.clone().requires_grad_()
path = []
o = {optimizer}
{STEPS}
state = o.state_dict()
w = w.detach().clone().requires_grad_()
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


def hidden_runs(name: str, optimizer: str) -> list[Case]:
    """Return cases that every optimizer has; `optimizer` is such as "Descent({}, lr=0.1)"."""
    start, gradients = normal64(Random(7), 3), normal64(Random(8), 5, 3)
    alone, once = optimizer.format("[w]"), {"start": start, "gradients": gradients}
    return [
        path(name, alone, **once),
        path(name, alone, normal64(Random(10), 2, 3), normal64(Random(11), 4, 2, 3)),
        path(name, alone, start[0], gradients[:, 0]),
        saved(f"{name}, a checkpoint", alone, **once),
        zeroed(f"{name}, a gradient set to 0", alone, **once),
        scheduled(f"{name}, a falling rate", alone, **once),
        late(f"{name}, a late gradient", optimizer.format("[v, w]")),
        two_at_once(name, optimizer.format("[v]"), alone, a=start, b=2 * start, gradients=gradients),
    ]
