"""The exercise on one step of an LSTM."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import torch
from torch import Tensor, nn

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _by_torch(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Torch's own cell in double precision, with these weights."""
    cell = nn.LSTMCell(W.shape[1], U.shape[1], dtype=torch.float64)
    weights = {"weight_ih": W, "weight_hh": U, "bias_ih": b, "bias_hh": torch.zeros(len(b))}
    cell.load_state_dict({name: weight.double() for name, weight in weights.items()})
    with torch.no_grad():
        new_h, new_c = cell(x.double(), (h.double(), c.double()))
    return new_h.to(x.dtype), new_c.to(x.dtype)


def _step(
    random: Random, batch: int, e: int, d: int, *, scale: float = 1.0, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, ...]:
    shapes = [(batch, e), (batch, d), (batch, d), (4 * d, e), (4 * d, d), (4 * d,)]
    scales = [scale, 0.6, 3.0, 0.8, 0.8, 0.5]
    return tuple(normal(random, *shape, scale=each, dtype=dtype) for shape, each in zip(shapes, scales, strict=True))


def _gates(*biases: float, c: float = 0.8) -> tuple[Tensor, ...]:
    """One number for a state, and gates that only the biases set."""
    zero = torch.zeros(1, 1)
    return zero, zero, torch.tensor([[c]]), torch.zeros(4, 1), torch.zeros(4, 1), torch.tensor(biases)


def _extremes() -> tuple[Tensor, ...]:
    """Arguments of ±400 and ±1000: gates that are exactly open or shut in single precision."""
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    W = torch.tensor([[400.0, -1000.0], [1000.0, 400.0], [-400.0, 1000.0], [1000.0, 400.0]])
    return x, torch.zeros(2, 1), torch.tensor([[0.5], [-0.25]]), W, torch.zeros(4, 1), torch.zeros(4)


def _hidden(random: Random) -> list[Case]:
    seen = Random(7)
    sizes = [(1, 3, 2), (4, 2, 5), (2, 4, 4), (3, 1, 1), (1, 1, 3)]
    cases = [case("other sizes", *_step(seen, *each)) for each in sizes]
    cases += [
        case("double precision", *_step(seen, 2, 3, 4, dtype=torch.float64)),
        case("large inputs", *_step(seen, 2, 2, 3, scale=20.0, dtype=torch.float64)),
        case("gates wide open or shut", *_extremes()),
        case("gates wide open or shut", *_gates(-1000.0, 1000.0, 3.0, 1000.0, c=-2.0)),
        case("a large cell", *_gates(0.5, 3.0, -1.0, 1.0, c=30.0)),
        case("an empty batch", *(each[:0] if row < 3 else each for row, each in enumerate(_step(seen, 2, 2, 3)))),
    ]
    for _ in range(3):
        sizes_of_one = (random.choice((3, 5, 7)), *random.sample((6, 8, 10), 2))  # no batch that falls into quarters
        cases.append(case("other sizes", *_step(random, *sizes_of_one)))
    return cases


_FIXED = Random(9)

lstm_step = Exercise(
    "lstm_step",
    points=3,
    minutes=9,
    difficulty=2,
    reference=_by_torch,
    cases=[
        case("it keeps and writes", *_gates(1.0, 2.0, 0.5, 3.0)),
        case("it forgets", *_gates(2.0, -20.0, 0.5, 1.0)),
        case("it keeps and writes nothing", *_gates(-20.0, 20.0, 0.5, 1.0)),
        case("a batch of two", *_step(_FIXED, 2, 3, 2)),
        case("a wider state", *_step(_FIXED, 1, 2, 4)),
        case("gates wide open or shut", *_extremes()),
    ],
    hidden_cases=_hidden,
    hints=[
        "All four at once: x @ W.T + h @ U.T + b has shape (b, 4d). Then cut it into quarters along the last axis.",
        "i, f, g, o = z.chunk(4, dim=-1). Three of them become gates with .sigmoid(); g goes through .tanh().",
        "c = f * c + i * g makes the new cell. h = o * c.tanh() shows it: the new one. Return h and c.",
    ],
    forbid=[".LSTM", ".LSTMCell", ".lstm", ".lstm_cell"],
)


def _quarters(x: Tensor, h: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    return (x @ W.T + h @ U.T + b).chunk(4, dim=-1)


def _write(c: Tensor, i: Tensor, f: Tensor, g: Tensor, o: Tensor) -> tuple[Tensor, Tensor]:
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@lstm_step.misconception("Two quarters are swapped: the first is i (write), the second f (keep).")
def f_and_i_swapped(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    f, i, g, o = _quarters(x, h, W, U, b)
    return _write(c, i, f, g, o)


@lstm_step.misconception("That is another library's order of the quarters, i, f, o, g. Here it is i, f, g, o.")
def another_order(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    i, f, o, g = _quarters(x, h, W, U, b)
    return _write(c, i, f, g, o)


@lstm_step.misconception("g is no gate: it is what could be written, from −1 to 1. It goes through tanh.")
def g_is_a_gate(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = (quarter.sigmoid() for quarter in _quarters(x, h, W, U, b))
    c = f * c + i * g
    return o * c.tanh(), c


@lstm_step.misconception("What is shown is tanh(c), not c: the cell can be larger than 1, the state cannot.")
def output_not_bent(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = _quarters(x, h, W, U, b)
    _, new = _write(c, i, f, g, o)
    return o.sigmoid() * new, new


@lstm_step.misconception("The old cell is missing from the new one, and that is the memory: f ⊙ c comes first.")
def cell_not_kept(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return _write(torch.zeros_like(c), *_quarters(x, h, W, U, b))


@lstm_step.misconception("You keep 1 − f of the old cell. A gate f near 1 means *keep*, for all its name.")
def keeps_one_minus_f(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = _quarters(x, h, W, U, b)
    return _write(c, i, -f, g, o)


@lstm_step.misconception("You write 1 − f. Here i is a gate of its own, so a cell can keep and write at once.")
def coupled_gates(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    _, f, g, o = _quarters(x, h, W, U, b)
    return _write(c, -f, f, g, o)


@lstm_step.misconception("Your gates go through tanh and can be negative. Gates lie between 0 and 1: sigmoid.")
def gates_by_tanh(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = (quarter.tanh() for quarter in _quarters(x, h, W, U, b))
    c = f * c + i * g
    return o * c.tanh(), c


@lstm_step.misconception("You show the old cell. First the cell is updated, then the *new* one is shown.")
def old_cell_shown(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = _quarters(x, h, W, U, b)
    _, new = _write(c, i, f, g, o)
    return o.sigmoid() * c.tanh(), new


@lstm_step.misconception("You return the cell first. The order is h, then c.")
def cell_first(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    new_h, new_c = _write(c, *_quarters(x, h, W, U, b))
    return new_c, new_h


@lstm_step.misconception("e^z / (1 + e^z) is ∞/∞ for a large z: NaN. torch.sigmoid and 1 / (1 + e^−z) stay finite.")
def sigmoid_overflows(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    quarters = _quarters(x, h, W, U, b)
    i, f, _, o = (quarter.exp() / (1 + quarter.exp()) for quarter in quarters)
    c = f * c + i * quarters[2].tanh()
    return o * c.tanh(), c


@lstm_step.variant
def four_small_products(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    d = h.shape[1]
    rows = [slice(k * d, (k + 1) * d) for k in range(4)]
    i, f, g, o = (torch.einsum("be,de->bd", x, W[row]) + h @ U[row].mT + b[row] for row in rows)
    new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new), new


@lstm_step.variant
def sigmoid_by_tanh(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    z = nn.functional.linear(torch.cat([x, h], dim=1), torch.cat([W, U], dim=1), b)
    i, f, g, o = z.view(-1, 4, h.shape[1]).unbind(dim=1)
    i, f, o = (0.5 + 0.5 * torch.tanh(gate / 2) for gate in (i, f, o))
    cell = torch.addcmul(f * c, i, torch.tanh(g))
    return o * torch.tanh(cell), cell


@lstm_step.variant
def number_by_number(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    d = h.shape[1]
    new_h, new_c = torch.empty_like(h), torch.empty_like(c)
    for row in range(len(x)):
        z = (W.double() @ x[row].double() + U.double() @ h[row].double() + b.double()).tolist()
        for k in range(d):
            keep, write, show = (0.5 * (1 + math.tanh(z[n * d + k] / 2)) for n in (1, 0, 3))
            cell = keep * c[row, k].item() + write * math.tanh(z[2 * d + k])
            new_h[row, k], new_c[row, k] = show * math.tanh(cell), cell
    return new_h, new_c


@lstm_step.variant
def by_numpy(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> list[Tensor]:
    z = x.numpy() @ W.numpy().T + h.numpy() @ U.numpy().T + b.numpy()
    i, f, g, o = np.split(z, 4, axis=1)
    gates = [np.exp(-np.logaddexp(0, -gate)) for gate in (i, f, o)]
    cell = gates[1] * c.numpy() + gates[0] * np.tanh(g)
    return [torch.from_numpy(gates[2] * np.tanh(cell)).to(x.dtype), torch.from_numpy(cell).to(x.dtype)]
