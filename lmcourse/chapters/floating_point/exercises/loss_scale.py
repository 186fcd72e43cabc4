"""The exercise on the loss scales that save the gradients of an fp16 run."""

from __future__ import annotations

import math
from bisect import bisect_left
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, embedding

from lmcourse.chapters.floating_point.exercises.formats import ieee, widths
from lmcourse.data.grammar import story_grammar
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise

POWERS = [2.0**power for power in range(-200, 201)]


def rounded(values: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """Round float64 values to an IEEE format, element by element."""
    format = ieee(exponent_bits, mantissa_bits)
    exponents = torch.frexp(values).exponent.double() - 1
    steps = 2.0 ** (exponents.clamp(min=format.min_exponent) - mantissa_bits)
    result = (values / steps).round() * steps
    return result.masked_fill(result.abs() > format.max_finite, math.inf)


def _loss_scales(gradients: list[Tensor], exponent_bits: int, mantissa_bits: int) -> list[float]:
    """Return the smallest scale that is enough and the largest that fits, by halving: larger scales are enough too, and
    smaller ones fit."""
    values = torch.cat([gradient.flatten().double() for gradient in gradients])
    values = values[values != 0]

    def enough(scale: float) -> bool:
        return 100 * int((rounded(values * scale, exponent_bits, mantissa_bits) == 0).sum()) <= len(values)

    def overflows(scale: float) -> bool:
        return not rounded(values * scale, exponent_bits, mantissa_bits).isfinite().all()

    smallest, beyond = (bisect_left(POWERS, True, key=test) for test in (enough, overflows))
    if smallest >= beyond:
        raise ValueError("no scale saves all gradients without overflow")
    return [POWERS[smallest], POWERS[beyond - 1]]


def _drawn(random: Random, centre: float, sizes: tuple[int, ...], spread: float = 1.2) -> list[Tensor]:
    """Gradients of both signs with log-normal magnitudes, an eighth of them zero."""
    drawn = []
    for size in sizes:
        values = [random.choice((1, -1)) * 10 ** random.gauss(centre, spread) for _ in range(size)]
        drawn.append(torch.tensor([value if random.random() > 0.125 else 0.0 for value in values]))
    return drawn


def first_gradients(seed: int = 0) -> list[Tensor]:
    """The gradients of the first step of the notebook's run, in fp32."""
    source, stories = Random(0), story_grammar()
    text = torch.tensor(list("".join(stories.generate(source) for _ in range(10)).encode()))
    draw = torch.Generator().manual_seed(seed)
    table, hidden, head = (torch.randn(128, width, generator=draw) for width in (16, 64, 128))
    hidden, head = hidden / 128**0.5, 0.1 * head[:64] / 64**0.5
    weights = [weight.requires_grad_() for weight in (table, hidden, head)]
    windows = text[torch.randint(len(text) - 8, (256, 1), generator=draw) + torch.arange(9)]
    vectors = embedding(windows[:, :8], table)  # its gradient does not depend on the number of threads; an index's does
    logits = (vectors.flatten(1) @ hidden).relu() @ head
    loss = cross_entropy(logits, windows[:, 8]) / 16_384
    return [*torch.autograd.grad(loss, weights)]


def _scale_cases(random: Random) -> list[Case]:
    run = [gradient[::4] for gradient in first_gradients()]
    huge = [run[0], torch.tensor([-3e5]), run[1]]
    other = _drawn(random, -6.0, (90, 230, 61))
    ties = [torch.tensor([2.0**-20, -(2.0**-30)]), torch.tensor(2.0**-10)]
    return [
        case("a run's first gradients", run, *widths("fp16")),
        case("a run's first gradients", run, *widths("bf16")),
        case("a single huge gradient", huge, *widths("fp16")),
        case("a single huge gradient", huge, *widths("bf16")),
        case("a single huge gradient", [torch.tensor([-4e4, 0.0, 3e-3])], *widths("fp16")),
        case("other gradients", other, *widths("fp16")),
        case("other gradients", other, *widths("e5m2")),
        case("other gradients", _drawn(random, -3.0, (400,), 0.4), 4, 3),
        case("other gradients", _drawn(random, 3.0, (40, 71), 0.5), 6, 5),
        case("other precisions", [value.half() for value in _drawn(random, -3.0, (33, 50), 0.6)], *widths("fp16")),
        case("other precisions", [value.bfloat16() for value in other], *widths("fp16")),
        case("other precisions", [value.double() for value in other], *widths("e5m2")),
        case("ties", ties, *widths("fp16")),
        case("ties", ties, *widths("bf16")),
        case("at the upper edge", [torch.tensor([65519.0, -0.5])], *widths("fp16")),
        case("at the upper edge", [torch.tensor([-65520.0, 0.5])], *widths("fp16")),
        case("exactly 1 %", [torch.tensor([1e-9] * 3 + [2e-4] * 297)], *widths("fp16")),
        case("one of 199 lost", [torch.tensor([1e-10, 1e-8] + [1e-3] * 197)], *widths("fp16")),
        case("too wide for the format", other, 3, 4),
        case("too wide for the format", [torch.tensor([1e-12, 1.0])], *widths("fp16")),
        case("scales at the limits", [torch.tensor([1e-42])], *widths("bf16")),
        case("scales at the limits", [torch.tensor([1e38, -1e38])], *widths("bf16")),
        case("one gradient", [torch.tensor([[3e-7]])], *widths("fp16")),
        case("one gradient", [torch.tensor([]), torch.tensor([0.0]), torch.tensor(-5.0)], *widths("fp16")),
    ]


_TWO = _drawn(Random(25), -6.5, (150, 170))

loss_scales = Exercise(
    "loss_scales",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_loss_scales,
    tolerance=EXACT,
    seconds=30.0,  # the answer may round each gradient with the learner's own round_to, which is slow
    cases=[
        case("four gradients", [torch.tensor([[1e-3], [-2e-6]]), torch.tensor([7e-8, 0.0])], *widths("fp16")),
        case("two tensors in fp16", _TWO, *widths("fp16")),
        case("the same in bf16", _TWO, *widths("bf16")),
        case("the same in E5M2", _TWO, *widths("e5m2")),
        case("the largest is negative", [torch.tensor([-30.0, 1e-4, 2.0])], *widths("fp16")),
        case("a tie at the lower edge", [torch.tensor([2.0**-8, -(2.0**-20)])], *widths("fp16")),
        edge(case("half a step above the largest number", [torch.tensor([-65520.0, 0.5])], *widths("fp16"))),
        edge(case("hardly less than half a step above it", [torch.tensor([65519.0, -0.5])], *widths("fp16"))),
        case("just below the upper edge", [torch.tensor([1.8, 0.01])], *widths("e5m2")),
        case("exactly 1 % far below the others", [torch.tensor([1e-9, -1e-10] + [1e-3] * 198)], *widths("fp16")),
        case("less than 1 % far below the others", [torch.tensor([1e-10, 1e-8] + [1e-3] * 197)], *widths("fp16")),
        edge(case("the largest scale that is allowed", [torch.tensor([1e-42])], *widths("bf16"))),
        edge(case("one scale alone", [torch.tensor([2.0**-16, 2.0**15])], *widths("e5m2"))),
        case("the smallest scale that is allowed", [torch.tensor([1e38])], *widths("bf16")),
        case("too wide for E5M2", [torch.tensor([1e-6, 1e5])], *widths("e5m2")),
    ],
    hidden_cases=_scale_cases,
    hints=[
        "The two scales are independent. Which gradients decide the smallest scale, and which one decides the largest?",
        "Put all nonzero sizes into one tensor: torch.cat([g.flatten() for g in gradients]).double().abs(). A size "
        "becomes 0 if it is at most half the smallest subnormal, and infinite if it is at least half a step above the "
        "largest number.",
        "Sort the sizes: the size at index n // 100 has to survive. Or try all powers of two, [2.0**k for k in "
        "range(-200, 201)]: the smallest with at most 1 % lost, the largest without an infinity.",
    ],
)

_LOWER = "math.floor(math.log2(half_smallest / survivor)) + 1"
_UPPER = "math.ceil(math.log2(overflow / sizes[-1])) - 1"
for _change in (
    f"smallest = 2.0 ** max(-200, {_LOWER}) → smallest = 2.0 ** max({_LOWER}, -200)",
    f"largest = 2.0 ** min(200, {_UPPER}) → largest = 2.0 ** min({_UPPER}, 200)",
):
    loss_scales.equivalent_mutant(_change, "The larger or smaller of two numbers is the same in either order.")


@loss_scales.variant
def all_powers_tried(gradients: list[Tensor], exponent_bits: int, mantissa_bits: int) -> list[float]:
    values = torch.cat([gradient.flatten().double() for gradient in gradients])
    sizes = values[values != 0].abs()
    bias = 2 ** (exponent_bits - 1) - 1
    half = 2.0 ** (-bias - mantissa_bits)
    limit = (2 - 2.0**-mantissa_bits / 2) * 2.0**bias
    powers = [2.0**power for power in range(-200, 201)]
    smallest = min(scale for scale in powers if 100 * (sizes * scale <= half).sum() <= len(sizes))
    largest = max(scale for scale in powers if sizes.max() * scale < limit)
    if smallest > largest:
        raise ValueError("no scale saves all gradients without overflow")
    return [smallest, largest]


loss_scales.slips(
    all_powers_tried,
    {
        "100 * (sizes * scale <= half).sum() <= len(sizes) → (sizes * scale > half).all()": "You allow no gradient to "
        "become 0. One in a hundred may.",
        "<= len(sizes) → <= len(values)": "You count the gradients that were 0 from the start. Leave them out, both of "
        "the lost gradients and of the total.",
        "100 * (sizes * scale <= half).sum() <= len(sizes) → all(100 * (g[g != 0].double().abs() * scale <= "
        "half).sum() <= len(g[g != 0]) for g in gradients)": "You want at most 1 % lost in each tensor. It is 1 % of "
        "all gradients together, whatever tensor they are in.",
        "scale <= half → scale < 2.0 ** (1 - bias)": "You count everything below the smallest normal number as lost. "
        "Subnormals are coarse but not zero.",
        "scale <= half → scale <= 2.0 ** (1 - bias)": "You count everything up to the smallest normal number as lost. "
        "Subnormals are coarse but not zero.",
        "scale <= half → scale <= 2.0**-bias": "You count everything up to half the smallest normal number as lost. "
        "The smallest number is subnormal, 2^M times smaller.",
        "range(-200, 201) → range(-300, 301)": "Your scales go beyond the limits: none is below 2^−200 or above 2^200.",
        "scale <= half → scale < 2 * half": "You count gradients between half the smallest subnormal and the smallest "
        "subnormal as lost. They are rounded up.",
        "scale <= half → scale < half": "You keep a gradient that is exactly half the smallest subnormal. That is a "
        "tie, and the even neighbour is zero.",
        "<= len(sizes) → < len(sizes)": "Your smallest scale loses less than 1 %, but exactly 1 % is allowed. Count, "
        "and compare 100 · lost with the number of gradients: 1 − 0.99 is more than 0.01 in floating point.",
        "scale < limit → scale <= (2 - 2.0**-mantissa_bits) * 2.0**bias": "You call everything infinite that is larger "
        "than the largest finite number. A number less than half a step above it is rounded down and stays finite.",
        "sizes.max() → values.max()": "You look at the largest positive gradient. A large negative one overflows just "
        "as well.",
        "if smallest > largest → if False": "Your smallest scale is larger than your largest, so no scale meets both "
        "limits. Raise ValueError.",
        "return [smallest, largest] → return [math.log2(smallest), math.log2(largest)]": "You return the exponents. "
        "Return the powers of two: 2.0 ** k.",
        "range(-200, 201) → range(201)": "You try no scale below 1. If even tiny gradients survive unscaled, the "
        "smallest scale is below 1.",
        "sizes.max() → sizes.max().float()": "In bf16 your products overflow before bf16 does: 2^130 is infinite in "
        "float32, and so is any gradient times 2^130. Multiply in float64.",
    },
)


@loss_scales.variant
def counted_at_every_scale(gradients: list[Tensor], exponent_bits: int, mantissa_bits: int) -> list[Tensor]:
    values = torch.cat([gradient.double().flatten() for gradient in gradients]).abs()
    values = values[values > 0]
    gap = 2.0 ** (2 - 2 ** (exponent_bits - 1) - mantissa_bits)
    top = 2.0 ** (2 ** (exponent_bits - 1)) - 2.0 ** (2 ** (exponent_bits - 1) - mantissa_bits - 2)
    works: dict[str, list[float]] = {"small": [], "large": []}
    for power in range(-200, 201):
        scaled = values * 2.0**power
        lost = torch.count_nonzero((scaled / gap).round() == 0).item()
        works["small"] += [2.0**power] * (lost * 100 <= values.numel())
        works["large"] += [2.0**power] * (scaled.max().item() < top)
    if works["small"][0] > works["large"][-1]:
        raise ValueError
    return [torch.tensor(scale, dtype=torch.float64) for scale in (works["small"][0], works["large"][-1])]
