"""Scripts that drive an optimizer: a parameter, gradients that are given, and the path that comes of them."""

from __future__ import annotations

SECONDS = 30.0
"""The time limit of a case: the first optimizer of a process, or its first `torch.func`, makes torch import its
compiler, which takes seconds."""

STEPS = """\
for g in gradients:
    w.grad = g.clone()
    o.step()
    path.append(w.detach().clone())"""


def path(optimizer: str) -> str:
    """The path of `w`, which begins at `start`, under the optimizer that this expression makes, a step per gradient."""
    return f"w = start.clone().requires_grad_()\npath = []\no = {optimizer}\n{STEPS}\npath"


def late(optimizer: str) -> str:
    """Two parameters, v and w; the second has a gradient in the steps 2, 3 and 5 only."""
    return f"""\
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


def groups(optimizer: str) -> str:
    """Two parameters, v and w, that the expression puts into groups of their own; w's gradient is twice v's."""
    return f"""\
v, w = a.clone().requires_grad_(), b.clone().requires_grad_()
o = {optimizer}
for g in gradients:
    v.grad, w.grad = g.clone(), 2 * g
    o.step()
v
w"""


def scheduled(optimizer: str) -> str:
    """The path while the rate is halved after every step, as a schedule does it."""
    steps = f"{STEPS}\n    o.param_groups[0]['lr'] /= 2"
    return f"w = start.clone().requires_grad_()\npath = []\no = {optimizer}\n{steps}\npath"


def zeroed(optimizer: str) -> str:
    """The gradient is looked at after a step, then set to 0 in place, and a step follows without a new one; then one
    with the first gradient again."""
    return f"""\
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


def saved(optimizer: str) -> str:
    """Two steps, then the state goes into a new optimizer, and it takes two more."""
    return f"""\
w = start.clone().requires_grad_()
path = []
o = {optimizer}
{STEPS}
state = o.state_dict()
o = {optimizer}
o.load_state_dict(state)
{STEPS}
path"""


def two_at_once(first: str, second: str) -> str:
    """Two optimizers of one class side by side, each with a parameter of its own."""
    return f"""\
v, w = a.clone().requires_grad_(), b.clone().requires_grad_()
one, other = {first}, {second}
for g in gradients:
    v.grad, w.grad = g.clone(), -g
    one.step()
    other.step()
v
w"""
