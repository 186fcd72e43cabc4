"""The exercise on whether tensors share memory."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _overlapping_memories(a: Tensor, b: Tensor) -> bool:
    """Return True if the bytes of the two memories intersect, from the first byte of each to its last."""
    ranges = [range(m.data_ptr(), m.data_ptr() + m.nbytes()) for m in (a.untyped_storage(), b.untyped_storage())]
    return max(r.start for r in ranges) < min(r.stop for r in ranges)


def _asked(name: str, *pairs: str, x: Tensor) -> Case:
    """A case that asks for each pair of expressions whether they share memory."""
    return script(name, "\n".join(f"shares_storage({pair})" for pair in pairs), x=x)


def _hidden(random: Random) -> list[Case]:
    x = torch.arange(24.0).view(4, 6)
    rows, columns = random.randint(2, 5), random.randint(4, 9)
    drawn, row, column = normal(random, rows, columns), random.randrange(rows), random.randrange(columns - 1)
    return [
        _asked("stretched and turned", "x, x.expand(3, 4, 6)", "x[0], x.T", x=x),
        _asked("reshaped", "x, x.reshape(24)", "x.view(2, 12)[1], x[0]", x=x),
        _asked("reshaped", "x.t(), x.t().contiguous()", x=x),
        _asked("other types", "x, x.float()", x=x),
        _asked("other types", "x, x.double()", "x, x.half()", x=x),
        _asked("for autograd", "x, x.detach()", "x[1:].detach(), x[:1]", "x.detach().requires_grad_(), x", x=x),
        _asked("one number", "x[0, 0], x[3, 5]", "x.sum(), x.sum()", x=x),
        edge(_asked("nothing in it", "x[:0], x", "x, x[4:]", "x[:0], x[1:1]", x=x)),
        edge(_asked("nothing in it", "x.new_empty(0), x", "x, x.new_empty(0)", x=x)),
        _asked("parts", f"x[{row}], x", f"x[:, {column}:], x[{row}]", x=drawn),
        _asked("parts", f"x[:, :{column + 1}], x[:, {column + 1}:]", x=drawn),
        _asked("copies", f"x[[{row}]], x", f"x[{row}], x[{row}].clone()", x=drawn),
    ]


_NUMBERS = torch.arange(12.0).view(3, 4)

shares_storage = Exercise(
    "shares_storage",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_overlapping_memories,
    cases=[
        _asked("parts of it", "x, x", "x, x[0]", "x, x[1:]", "x[1:], x", x=_NUMBERS),
        _asked("other views", "x, x.t()", "x, x.view(x.int().dtype)", "x, x.clone().t()", x=_NUMBERS),
        _asked("copies", "x, x + 0", "x, x[[0, 1]]", "x[0], x[0].clone()", x=_NUMBERS),
        _asked("two views", "x[:2], x[1:]", "x[:1], x[2:]", "x[:, ::2], x[:, 1::2]", x=_NUMBERS),
        edge(_asked("two empty tensors made apart", "x.new_empty(0), x.new_empty(0)", x=_NUMBERS)),
        edge(_asked("a part without elements", "x[:0], x", "x[:0], x.clone()", x=_NUMBERS)),
    ],
    hidden_cases=_hidden,
    hints=[
        "x.data_ptr() is where a tensor starts. Where does its memory start? Ask x.untyped_storage().",
        "Compare the addresses of the two memories, not those of the tensors.",
        "An empty memory has no address: its data_ptr() is 0. So two addresses of 0 prove nothing.",
    ],
    forbid=["numpy", "torch._C"],
)


@shares_storage.variant
def the_same_address(a: Tensor, b: Tensor) -> bool:
    one, other = a.untyped_storage(), b.untyped_storage()
    shared = one.nbytes() > 0 and one.data_ptr() == other.data_ptr()
    return shared


shares_storage.slips(
    the_same_address,
    {
        "return shared → return a.data_ptr() == b.data_ptr() != 0": "You compare where the tensors start. `x[1:]` "
        "starts later but is in the same memory.",
        "return shared → return a.shape == b.shape and bool((a == b).all())": "You compare values. Equal values may be "
        "stored in two places.",
        "return shared → return a is b": "You check for the same Python object. Every view is a separate object.",
        "return shared → return a.storage() is b.storage()": "Your answer is always False. `a.storage() is "
        "b.storage()` is one such test: each call makes a new object for the same memory. Compare addresses with `==`.",
        "return shared → return int(shared)": "Return True or False. 1 and 0 are numbers.",
        "return shared → return a._base is b or b._base is a": "You check whether one is the other's base. Both may be "
        "views of a third tensor, and a tensor is not its own base.",
        "return shared → places = [torch.arange(one.nbytes() + other.nbytes()).as_strided(x.shape, "
        "x.stride(), x.storage_offset()).flatten() for x in (a, b)]\n    return shared and "
        "bool(torch.isin(*places).any())": "You check for common elements. Two halves of a tensor share memory but "
        "have no element in common.",
        "one.nbytes() > 0 and  → ": "Two empty memories both have the address 0. They share nothing.",
        "return shared → return shared and a.numel() > 0 and b.numel() > 0": "You return False for a tensor without "
        "elements. `x[:0]` is still in the memory of x: ask its storage.",
    },
)
