"""The open task: a rule that lets deep post-norm models learn."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lmcourse.chapters.normalization_and_blocks.rescued import (
    AFTER,
    CHANGED,
    FUTURE,
    MEMORY,
    NO_BRANCH,
    NO_FUNCTION,
    NO_NORM,
    NO_STREAM,
    OUTPUT,
    PRE,
    inspect_rescue,
    measure_rescue,
)
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.open_task import Band, OpenTask


def half_would_be_left(model: Any) -> Any:
    factor = (2 ** (1 / len(model.blocks)) - 1) ** 0.5

    def stream(x: Tensor, f: Any, norm: Any, branch: int) -> Tensor:
        y: Tensor = norm(x + factor * f(x))
        return y

    return stream


AT_16, AT_32 = "16 blocks", "32 blocks"

rescue = Exercise(
    "rescue",
    points=5,
    minutes=9,
    difficulty=3,
    reference=half_would_be_left,
    seconds=60.0,
    cases=[case("seed 0", seed=0)],
    hidden_cases=lambda _: [case("seed 1", seed=1)],
    hints=[
        "Where does the old stream go? Compare the table above with the losses: how much of the embedding is left in "
        "the models that do not learn?",
        "There are two places to change: what `norm` reads, and the weights before the first step. Try one number "
        "first, and look at the loss at both depths.",
        "What is left is a product over all branches. A number that leaves enough after 16 blocks may leave nothing "
        "after 32. Ask `embedding_share` which branches both models may have; `len(model.blocks)` tells them apart.",
    ],
    task=OpenTask(
        inspect=inspect_rescue,
        measure=measure_rescue,
        baseline={"post-norm as it is": {AT_16: 3.10, AT_32: 3.10}, "pre-norm": {AT_16: 2.48, AT_32: 2.56}},
        finish={AT_16: 1.9, AT_32: 1.9},
        bands=[
            Band(1, "the norm comes last in every branch, and it runs"),
            Band(1, at_most={AT_16: 2.4}),
            Band(1, at_most={AT_16: 1.9}),
            Band(2, at_most={AT_16: 1.9, AT_32: 1.9}),
        ],
    ),
)


@rescue.idea(1)
def as_it_is(model: Any) -> Any:
    return lambda x, f, norm, branch: norm(x + f(x))


@rescue.idea(2)
def half_a_branch(model: Any) -> Any:
    def stream(x: Tensor, f: Any, norm: Any, branch: int) -> Tensor:
        y: Tensor = norm(x + 0.5 * f(x))
        return y

    return stream


@rescue.idea(3)
def a_constant_for_16_blocks(model: Any) -> Any:
    return lambda x, f, norm, branch: norm(x + 0.3 * f(x))


@rescue.idea(5)
def deepnorm(model: Any) -> Any:
    blocks = len(model.blocks)
    alpha, beta = (2 * blocks) ** 0.25, (8 * blocks) ** -0.25
    for name, weight in model.named_parameters():
        if name.endswith(("out.weight", "up.weight", "down.weight")):
            weight *= beta
    return lambda x, f, norm, branch: norm(alpha * x + f(x))


rescue.idea(5)(half_would_be_left)


@rescue.idea(5)
def writers_zero(model: Any) -> Any:
    for block in model.blocks:
        block.attention.layer.out.weight.zero_()
        block.feed_forward.layer.down.weight.zero_()
    return lambda x, f, norm, branch: norm(x + f(x))


@rescue.idea(5)
def learned_factors(model: Any) -> Any:
    model.factors = nn.Parameter(torch.zeros(2 * len(model.blocks)))
    return lambda x, f, norm, branch: norm(x + model.factors[branch] * f(x))


rescue.slips(
    half_would_be_left,
    {
        "norm(x + factor * f(x)) → x + factor * f(norm(x))": PRE,
        "norm(x + factor * f(x)) → x + norm(f(norm(x)))": PRE,
        "norm(x + factor * f(x)) → x + norm(factor * f(x))": OUTPUT,
        "norm(x + factor * f(x)) → norm(x) + factor * f(x)": AFTER,
        "norm(x + factor * f(x)) → factor * norm(x + f(x))": AFTER,
        "norm(x + factor * f(x)) → x + factor * f(x)": NO_NORM,
        "x + factor * f(x) → x + factor": NO_BRANCH,
        "x + factor * f(x) → factor * f(x)": NO_STREAM,
        "    return stream → ": NO_FUNCTION,
        "def stream( → sums = {}\n\n    def stream( ;; norm(x + factor * f(x)) → "
        "norm(sums.__setitem__(branch, (sums[branch - 1] if branch else x) + factor * f(x)) or sums[branch])": MEMORY,
        "x + factor * f(x) → x + factor * f(x) + factor * x.roll(-1, dims=1)": FUTURE,
        "factor = → model.blocks = model.blocks[:2]\n    factor =": CHANGED,
        "factor = → for block in model.blocks:\n        block.attention.post_norm.eps = 100.0\n    factor =": CHANGED,
        "factor = → for block in model.blocks:\n        block.attention.scale = 0.2\n    factor =": CHANGED,
    },
)
