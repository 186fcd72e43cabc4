"""The exercise on the loss scales that save the gradients of an fp16 run."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.floating_point.exercises.formats import BIAS, widths
from lmcourse.chapters.floating_point.tiny_run import exact, tiny_run
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import EXACT
from lmcourse.exercises.exercise import Exercise


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


def _drawn(random: Random, centre: float, sizes: tuple[int, ...], spread: float = 1.2) -> list[Tensor]:
    """Gradients of both signs with log-normal magnitudes, an eighth of them zero."""
    drawn = []
    for size in sizes:
        values = [random.choice((1, -1)) * 10 ** random.gauss(centre, spread) for _ in range(size)]
        drawn.append(torch.tensor([value if random.random() > 0.125 else 0.0 for value in values]))
    return drawn


def _scale_cases(random: Random) -> list[Case]:
    run = [gradient[::16].float() for gradient in tiny_run(exact, steps=1).gradients]
    other = _drawn(random, -6.0, (90, 230, 61))
    return [
        case("a run's first gradients", run, *widths("fp16")),
        case("a single huge gradient", [run[0], torch.tensor([-3e5]), run[1]], *widths("bf16")),
        case("a single huge gradient", [torch.tensor([-4e4, 0.0, 3e-3])], *widths("fp16")),
        case("other gradients", other, *widths("e5m2")),
        case("other gradients", _drawn(random, -3.0, (400,), 0.4), 4, 3),
        case("other gradients", _drawn(random, 3.0, (40, 71), 0.5), 6, 5),
        case("other precisions", [value.bfloat16() for value in other], *widths("fp16")),
        case("other precisions", [value.double() for value in other], *widths("e5m2")),
        case("ties", [torch.tensor([2.0**-20, -(2.0**-30)]), torch.tensor(2.0**-10)], *widths("fp16")),
        case("at the upper edge", [torch.tensor([65519.0, -0.5])], *widths("fp16")),
        case("at the upper edge", [torch.tensor([-65520.0, 0.5])], *widths("fp16")),
        case("exactly 1 %", [torch.tensor([1e-9] * 3 + [2e-4] * 297)], *widths("fp16")),
        case("too wide for the format", other, 3, 4),
        case("scales at the limits", [torch.tensor([1e-42])], *widths("bf16")),
        case("scales at the limits", [torch.tensor([1e38, -1e38])], *widths("bf16")),
        case("one gradient", [torch.tensor([]), torch.tensor([0.0]), torch.tensor(-5.0)], *widths("fp16")),
    ]


_TWO = _drawn(Random(25), -6.5, (150, 170))

loss_scales = Exercise(
    "loss_scales",
    points=3,
    minutes=12,
    difficulty=3,
    reference=all_powers_tried,
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

loss_scales.variant(all_powers_tried)
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
        "scale <= half → scale <= 2.0**-bias": "You count everything up to half the smallest normal number as lost. "
        "The smallest number is subnormal, 2^M times smaller.",
        "range(-200, 201) → range(-300, 301)": "Your scales go beyond the limits: none is below 2^−200 or above 2^200.",
        "scale <= half → scale < 2 * half": "You count gradients between half the smallest subnormal and the smallest "
        "subnormal as lost. They are rounded up.",
        "bias = 2 ** (exponent_bits - 1) - 1 → bias = 2 ** (exponent_bits - 1)": BIAS,
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
        "range(-200, 201) → range(-200, 200)": "You try no scale of 2^200. Both limits are included: range stops "
        "before its end.",
        "smallest > largest → smallest >= largest": "You raise ValueError if the two scales are equal. One scale that "
        "meets both limits is enough.",
        "values[values != 0].abs() → values.abs()": "You count a gradient that is 0 from the start as lost, so no "
        "scale loses few enough. Leave the zeros out.",
        "range(-200, 201) → range(201)": "You try no scale below 1. If even tiny gradients survive unscaled, the "
        "smallest scale is below 1.",
        "flatten().double() → flatten().float()": "Your products overflow before bf16 does: 2^130 is infinite in "
        "float32, and so is any gradient times 2^130. Multiply in float64.",
    },
)
