"""The exercise on serial and parallel blocks."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal


def _by_equations(x: Tensor, attention: Any, feed_forward: Any, norm_1: Any, norm_2: Any, parallel: bool) -> Tensor:
    """Compute the equations of a pre-norm block, one per line."""
    normed = norm_1(x)
    middle = x + attention(normed)
    return middle + feed_forward(normed if parallel else norm_2(middle))


CENTRED = "norm_1 = lambda v: v - v.mean(-1, keepdim=True)\n"
LARGEST = "norm_2 = lambda v: v / v.abs().amax(-1, keepdim=True)\n"
SMALL = """\
attention = lambda v: v.cumsum(1) / torch.arange(1, v.shape[1] + 1)[:, None]
feed_forward = lambda v: v * v
"""
MEAN = "attention = lambda v: v.cumsum(1)\nfeed_forward = lambda v: v * v\n" + CENTRED + LARGEST
ZERO = "attention = lambda v: 0 * v\nfeed_forward = lambda v: v * v + 1\n" + CENTRED + LARGEST
SILENT = "attention = lambda v: 3 * v\nfeed_forward = lambda v: 0 * v\n" + CENTRED + LARGEST
MATRICES = """\
attention = lambda v: a @ v
feed_forward = lambda v: (v @ m).relu() @ m.T
norm_1 = lambda v: 2 * v / v.square().mean(-1, keepdim=True).add(1).sqrt()
norm_2 = lambda v: v / v.square().mean(-1, keepdim=True).add(2).sqrt() - 1
"""
COUNTED = """\
calls = []
attention = lambda v: calls.append("attention") or v.cumsum(1)
feed_forward = lambda v: calls.append("feed_forward") or v * v
norm_1 = lambda v: calls.append("norm_1") or v - 1
norm_2 = lambda v: calls.append("norm_2") or v / 2
"""
X = torch.tensor([[[1.0, 3.0], [2.0, -4.0], [0.5, 2.0]]])


def _ask(name: str, parallel: bool, lines: str = MEAN, norm_2: str = "norm_2", **inputs: Tensor) -> Case:
    return script(name, f"{lines}block(x, attention, feed_forward, norm_1, {norm_2}, {parallel})", **inputs)


def _counted(name: str, parallel: bool, x: Tensor) -> Case:
    lines = f"{COUNTED}y = block(x, attention, feed_forward, norm_1, norm_2, {parallel})\nsorted(calls)\nx\ny"
    return script(name, lines, x=x)


def _drawn(name: str, random: Random, parallel: bool, b: int, s: int, d: int) -> Case:
    x, a, m = normal(random, b, s, d), normal(random, s, s).tril(), normal(random, d, 2 * d)
    return _ask(name, parallel, MATRICES, x=x, a=a, m=m)


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    gradient = "x = x.clone().requires_grad_()\n" + MEAN
    run = "block(x, attention, feed_forward, norm_1, norm_2, {}).sum().backward()\nx.grad"
    return [
        *(_drawn("other layers", fixed, parallel, 2, 3, 4) for parallel in (True, False)),
        *(_drawn("one feature", fixed, parallel, 1, 3, 1) for parallel in (True, False)),
        *(_drawn("one token", fixed, parallel, 2, 1, 3) for parallel in (True, False)),
        _ask("layers that add nothing", False, ZERO, x=-X),
        _ask("layers that add nothing", True, SILENT, x=-X),
        _ask("layers that add nothing", False, SILENT, x=-X),
        _ask("parallel without a second norm", True, norm_2="None", x=X + 1),
        _counted("how often each is called", True, X + 2),
        _counted("how often each is called", False, X + 2),
        *(script("the gradient", gradient + run.format(parallel), x=X) for parallel in (True, False)),
        *(
            _drawn("other shapes", random, parallel, random.randint(1, 3), random.randint(2, 5), random.randint(2, 6))
            for parallel in (True, False)
        ),
    ]


block = Exercise(
    "block",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_by_equations,
    differentiable=True,
    cases=[
        _ask("serial", False, x=X),
        _ask("parallel", True, x=X),
        _ask("serial, attention adds nothing", False, ZERO, x=X),
        _ask("serial, feed-forward adds nothing", False, SILENT, x=X),
        edge(_ask("parallel needs no second norm", True, norm_2="None", x=X - 2)),
        edge(_counted("serial: each is called once, and x stays", False, X)),
        edge(_counted("parallel: norm_1 is called once", True, X)),
    ],
    hidden_cases=_hidden,
    hints=[
        "Serial: give the stream after attention its own name.",
        "Serial: a = attention(norm_1(x)), then the stream is h = x + a, and the second branch starts from h: it reads "
        "norm_2(h), and is added to h.",
        "Parallel: n = norm_1(x) once, and both branches read n. x + attention(n) + feed_forward(n).",
    ],
)


@block.variant
def in_two_lines(x: Tensor, attention: Any, feed_forward: Any, norm_1: Any, norm_2: Any, parallel: bool) -> Tensor:
    n = norm_1(x)
    a = attention(n)
    return x + a + (feed_forward(n) if parallel else feed_forward(norm_2(x + a)))


@block.variant
def with_a_helper(x: Tensor, attention: Any, feed_forward: Any, norm_1: Any, norm_2: Any, parallel: bool) -> Tensor:
    def add(stream: Tensor, branch: Any, norm: Any) -> Tensor:
        return stream + branch(norm(stream))

    if not parallel:
        return add(add(x, attention, norm_1), feed_forward, norm_2)
    return add(x, lambda n: attention(n) + feed_forward(n), norm_1)


@block.variant
def stream_by_stream(x: Tensor, attention: Any, feed_forward: Any, norm_1: Any, norm_2: Any, parallel: bool) -> Tensor:
    n = norm_1(x)
    a = attention(n)
    if parallel:
        return x + a + feed_forward(n)
    h = x + a
    return h + feed_forward(norm_2(h))


block.slips(
    stream_by_stream,
    {
        "return h + → return x +": "The result of attention reaches only the feed-forward layer. Add it to the stream "
        "as well: x plus attention, plus feed-forward.",
        "norm_2(h) → norm_2(x)": "In a serial block the second branch reads x *plus* what attention added. Yours reads "
        "x alone.",
        "norm_2(h) → norm_2(a)": "In your serial block the second branch reads only the result of attention. It should "
        "read the stream: x plus that result.",
        "norm_2(h) → norm_1(h)": "You use norm_1 for both branches of a serial block. Each has its own norm.",
        "norm_1(x) → norm_1(x) if parallel else norm_2(x) ;; norm_2(h) → norm_1(h)": "norm_1 and norm_2 are swapped: "
        "the first belongs to attention.",
        "norm_2(h) → h": "The second branch of your serial block reads features that are not normalised.",
        "if parallel → if False": "You ignore `parallel`: your block is always serial.",
        "if parallel → if True": "You ignore `parallel`: your block is always parallel.",
        "feed_forward(n) → feed_forward(norm_2(x))": "Your parallel block has two norms, as GPT-NeoX has. Here both "
        "branches read the same norm_1(x).",
        "feed_forward(n) → feed_forward(norm_1(x))": "You normalise x twice for the parallel branches. Call norm_1 "
        "once, and keep what it returns.",
        "if parallel → if not parallel": "You swapped the two blocks: with parallel=True yours is serial, with "
        "parallel=False parallel.",
        "return x + a → return a": "In your parallel block x is missing from the sum: only the two branches are added.",
        "feed_forward(n) → feed_forward(x)": "The feed-forward layer of your parallel block reads x. It reads "
        "norm_1(x), as attention does.",
        "return x + a → return n + a ;; h = x + a → h = n + a": "You add to the normalised x. Branches add to the "
        "stream itself, x.",
        "return x + a → return n + a": "Your parallel block adds to norm_1(x). Branches add to the stream itself, x.",
        "a + feed_forward(n) → feed_forward(a)": "The feed-forward layer of your parallel block reads what attention "
        "returned. It reads norm_1(x), beside attention.",
        "norm_1(x) → norm_1(x) if parallel else x ;; h = x + a → h = norm_1(x + a) ;; "
        "h + feed_forward(norm_2(h)) → norm_2(h + feed_forward(h))": "Your serial block is post-norm: it normalises "
        "sums. Here each branch reads normalised features: x + f(N(x)).",
        "return h + → return x + h +": "In your serial block x is added twice: x + attention contains it already.",
        "return x + a → return x + x + a": "In your parallel block x is added twice.",
        "return x + a → return x + x + a ;; return h + → return x + h +": "You add x twice.",
        "return x + a → return n + a ;; h = x + a → h = norm_2(n + a) ;; norm_2(h) → h": "Your branches add to the "
        "normalised features that they read. They add to the stream, which no norm has changed.",
        "n = norm_1(x) → n = x ;; x + a + feed_forward(n) → norm_1(x + a + feed_forward(n)) ;; "
        "h = x + a → h = norm_1(x + a) ;; h + feed_forward(norm_2(h)) → norm_2(h + feed_forward(h))": "Both of your "
        "blocks are post-norm: they normalise sums. Here each branch reads normalised features: x + f(N(x)).",
    },
)
