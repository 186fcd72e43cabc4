"""Exercises on rounding: gaps, nearest values, vanishing gradients, sums that stall."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import EXACT, Tolerance
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.floating_point.codes import widths
from lmcourse.numerics import FloatFormat, round_to as nearest, stall_point as stalled_sum, ulp as gap


def _format(exponent_bits: int, mantissa_bits: int) -> FloatFormat:
    return FloatFormat("asked", exponent_bits, mantissa_bits)


# ulp -------------------------------------------------------------------------------------------------------------


def _ulp_cases(random: Random) -> list[Case]:
    cases = [case("any magnitude", random.uniform(1, 2) * 2.0 ** random.randint(-12, 14), 5, 10) for _ in range(4)]
    cases += [case("negative values", -random.uniform(1, 100), *widths("bf16")) for _ in range(2)]
    cases += [case("powers of two", 2.0 ** random.randint(-20, 20), *widths("fp32")) for _ in range(2)]
    cases += [case("zero and subnormals", value, *widths("e5m2")) for value in (0.0, 2.0**-16, -(2.0**-15))]
    return cases


ulp = Exercise(
    "ulp",
    points=3,
    minutes=7,
    difficulty=2,
    reference=lambda x, e, m: gap(x, _format(e, m)),
    tolerance=EXACT,
    cases=[
        case("one, in bf16", 1.0, *widths("bf16")),
        case("just below two", 1.99, *widths("fp16")),
        case("256, in bf16", 256.0, *widths("bf16")),
        case("a negative number", -3.0, *widths("fp16")),
        case("0.1, in fp32", 0.1, *widths("fp32")),
        case("an fp16 subnormal", 2.0**-20, *widths("fp16")),
        case("zero", 0.0, *widths("fp16")),
    ],
    hidden_cases=_ulp_cases,
    hints=[
        "Between 2^e and 2^(e+1) there are 2^M equal steps. Find e first.",
        "math.frexp(x) gives (f, n) with |x| = f · 2^n and ½ ≤ f < 1, so e = n − 1, exactly.",
        "e never falls below 1 − bias: subnormals share the step of the smallest normal numbers.",
    ],
    forbid=["torch", "numpy", "math.ulp", "math.nextafter"],
)


def _exponent(x: float) -> int:
    return math.frexp(x)[1] - 1 if x else -1074


def _lowest(exponent_bits: int) -> int:
    return 2 - 2 ** (exponent_bits - 1)


@ulp.misconception("That is the gap at 1, the machine epsilon. The gap doubles with every power of two.")
def epsilon_everywhere(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return 2.0**-mantissa_bits


@ulp.misconception(
    "Your gap grows smoothly with x. Real gaps stay equal from one power of two to the next, then double at once."
)
def epsilon_times_x(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return abs(x) * 2.0**-mantissa_bits


@ulp.misconception("Your gap goes on shrinking below the smallest normal number. Subnormals keep one and the same step.")
def no_subnormals(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return 2.0 ** (_exponent(x) - mantissa_bits) if x else 0.0


@ulp.misconception("You take the exponent of the nearest power of two. Just below 2 the exponent is still 0: round it down.")
def exponent_rounded(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    exponent = round(math.log2(abs(x))) if x else _lowest(exponent_bits)
    return 2.0 ** (max(exponent, _lowest(exponent_bits)) - mantissa_bits)


@ulp.misconception("That is half a gap: the largest rounding error, not the distance to the next number.")
def half_a_gap(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return 2.0 ** (max(_exponent(x), _lowest(exponent_bits)) - mantissa_bits - 1)


@ulp.misconception("At a power of two you give the gap below it. The next larger number is twice as far.")
def gap_below(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    exponent = math.ceil(math.log2(abs(x))) - 1 if x else _lowest(exponent_bits)
    return 2.0 ** (max(exponent, _lowest(exponent_bits)) - mantissa_bits)


# round_to --------------------------------------------------------------------------------------------------------


def _round_cases(random: Random) -> list[Case]:
    cases = [case("any magnitude", random.gauss(0, 1) * 2.0 ** random.randint(-10, 10), *widths("bf16")) for _ in range(5)]
    cases += [case("ties", 2.0 + random.choice([1, 3, 5, 7]) * 2.0**-8, *widths("bf16")) for _ in range(3)]
    cases += [case("below the smallest normal", random.uniform(-1, 1) * 2.0**-14, *widths("fp16")) for _ in range(3)]
    cases += [case("too large", sign * random.uniform(65520, 1e5), *widths("fp16")) for sign in (1, -1)]
    cases += [case("almost too large", 65519.0, *widths("fp16")), case("almost too large", 61439.9, *widths("e5m2"))]
    return [*cases, case("rounds up to a power of two", 1.9999, *widths("bf16"))]


round_to = Exercise(
    "round_to",
    points=3,
    minutes=8,
    difficulty=3,
    reference=lambda x, e, m: nearest(x, _format(e, m)),
    tolerance=EXACT,
    cases=[
        case("0.1 in fp16", 0.1, *widths("fp16")),
        case("π in bf16", math.pi, *widths("bf16")),
        case("a negative number", -0.3, *widths("bf16")),
        case("a tie, the lower one is even", 1 + 2.0**-8, *widths("bf16")),
        case("a tie, the upper one is even", 1 + 3 * 2.0**-8, *widths("bf16")),
        case("a learning rate, subnormal in fp16", 3e-6, *widths("fp16")),
        case("too small for fp16", 1e-8, *widths("fp16")),
        case("too large for fp16", 70000.0, *widths("fp16")),
    ],
    hidden_cases=_round_cases,
    hints=[
        "Measure x in steps of its gap: x / ulp(x). What is left is to round to a whole number.",
        "Python's round() already goes to the even neighbour on a tie: round(2.5) is 2.",
        "If the result is larger than the largest finite number, it is infinity, with the sign of x (math.copysign).",
    ],
    forbid=["torch", "numpy"],
)


def _rounded(x: float, exponent_bits: int, mantissa_bits: int, how: object) -> float:
    """Rounding with another rule for the steps; overflow as it should be."""
    step = gap(min(abs(x), _format(exponent_bits, mantissa_bits).max_finite), _format(exponent_bits, mantissa_bits))
    result = how(x / step) * step  # type: ignore[operator]
    limit = _format(exponent_bits, mantissa_bits).max_finite
    return math.copysign(math.inf if abs(result) > limit else abs(result), x)


@round_to.misconception("You cut the extra bits off. Rounding goes to the nearest value, up or down.")
def truncated(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _rounded(x, exponent_bits, mantissa_bits, math.trunc)


@round_to.misconception("Your ties go away from zero, as at school. In IEEE arithmetic a tie goes to the even neighbour.")
def ties_away_from_zero(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _rounded(x, exponent_bits, mantissa_bits, lambda steps: math.copysign(math.floor(abs(steps) + 0.5), steps))


@round_to.misconception("You always round down; for negative numbers that is away from zero. Round to the nearest.")
def floored(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _rounded(x, exponent_bits, mantissa_bits, math.floor)


@round_to.misconception("There is no number that large in this format: beyond the largest finite one comes infinity.")
def no_overflow(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    step = 2.0 ** (max(_exponent(x), _lowest(exponent_bits)) - mantissa_bits)
    return math.copysign(round(x / step) * step, x)


@round_to.misconception("You stop at the largest finite number. Rounding to nearest overflows to infinity.")
def saturated(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    limit = _format(exponent_bits, mantissa_bits).max_finite
    return max(-limit, min(limit, nearest(x, _format(exponent_bits, mantissa_bits))))


@round_to.misconception(
    "You turn everything below the smallest normal number into zero. Subnormals fill that gap: fp16 still has 1024 steps there."
)
def flushed_to_zero(x: float, exponent_bits: int, mantissa_bits: int) -> float:
    small = abs(x) < 2.0 ** _lowest(exponent_bits)
    return math.copysign(0.0, x) if small else nearest(x, _format(exponent_bits, mantissa_bits))


# lost_to_underflow -----------------------------------------------------------------------------------------------


def _lost(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    format = _format(exponent_bits, mantissa_bits)
    values = [value for value in gradients.flatten().tolist() if value != 0]
    return sum(nearest(value, format) == 0 for value in values) / len(values)


def _gradients(random: Random, size: int, spread: float = 4.0) -> Tensor:
    return torch.tensor([random.gauss(0, 1) * 10.0 ** random.gauss(-7, spread / 4) for _ in range(size)])


def _lost_cases(random: Random) -> list[Case]:
    signs = _gradients(random, 200)
    some_zero = signs * torch.tensor([random.choice([0.0, 1.0, 1.0]) for _ in range(200)])
    return [
        case("gradients of many sizes", signs, *widths("fp16")),
        case("some exactly zero", some_zero, *widths("fp16")),
        case("other formats", signs, *widths("e5m2")),
        case("other formats", signs, *widths("bf16")),
        case("a matrix", signs.reshape(20, 10), *widths("fp16")),
    ]


_SIX = torch.tensor([1e-3, -2e-6, 7e-8, -4e-8, 2e-8, 0.0])

lost_to_underflow = Exercise(
    "lost_to_underflow",
    points=2,
    minutes=4,
    difficulty=2,
    reference=_lost,
    cases=[
        case("six gradients in fp16", _SIX, *widths("fp16")),
        case("the same in bf16", _SIX, *widths("bf16")),
        case("the same, 1024 times larger", _SIX * 1024, *widths("fp16")),
    ],
    hidden_cases=_lost_cases,
    hints=[
        "Which numbers round to zero? Those at most half as large as the smallest subnormal.",
        "The smallest subnormal is 2^(1 − bias − M): 5.96e-8 in fp16.",
        "Count among the values that are not zero to begin with: those had something to lose.",
    ],
)


def _share(gradients: Tensor, threshold: float) -> float:
    values = gradients[gradients != 0].abs()
    return (values <= threshold).double().mean().item()


@lost_to_underflow.misconception(
    "You count everything below the smallest normal number. Subnormals are coarse but not zero: they are not lost."
)
def below_normal(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return _share(gradients, 2.0 ** _lowest(exponent_bits))


@lost_to_underflow.misconception(
    "A value between half the smallest subnormal and the whole of it is rounded up, not lost."
)
def below_subnormal(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return _share(gradients, 2.0 ** (_lowest(exponent_bits) - mantissa_bits))


@lost_to_underflow.misconception("You count gradients that were zero from the start: those have nothing to lose.")
def zeros_counted(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    return (gradients.abs() <= 2.0 ** (_lowest(exponent_bits) - mantissa_bits - 1)).double().mean().item()


@lost_to_underflow.misconception("You count every negative gradient as lost: compare its size, not its value.")
def negative_counted(gradients: Tensor, exponent_bits: int, mantissa_bits: int) -> float:
    values = gradients[gradients != 0]
    return (values <= 2.0 ** (_lowest(exponent_bits) - mantissa_bits - 1)).double().mean().item()


# stall_point -----------------------------------------------------------------------------------------------------


def _stall_cases(random: Random) -> list[Case]:
    exact = [nearest(random.uniform(0.001, 0.9), _format(5, 10)) for _ in range(3)]
    powers = [2.0 ** random.randint(-8, -1) for _ in range(3)]
    cases = [case("other increments", value, 5, 10) for value in exact]
    cases += [case("increments that are powers of two", value, *widths("bf16")) for value in powers]
    return [*cases, case("other formats", 0.375, *widths("e5m2")), case("other formats", 1.0, *widths("fp32"))]


stall_point = Exercise(
    "stall_point",
    points=3,
    minutes=6,
    difficulty=2,
    reference=lambda increment, e, m: stalled_sum(increment, _format(e, m)),
    tolerance=EXACT,
    cases=[
        case("0.01 in bf16", nearest(0.01, _format(8, 7)), *widths("bf16")),
        case("0.01 in fp16", nearest(0.01, _format(5, 10)), *widths("fp16")),
        case("counting in bf16", 1.0, *widths("bf16")),
        case("0.75 in fp16", 0.75, *widths("fp16")),
    ],
    hidden_cases=_stall_cases,
    hints=[
        "Adding x to s changes nothing when s + x rounds back to s. How small must x be, measured in ulps of s?",
        "Half an ulp or less: a tie goes back to s, because s is a power of two by then and so it is even.",
        "You may walk: try s = 1, 2, 4, … (and ½, ¼, …) for the smallest power of two with ulp(s) / 2 ≥ x. "
        "Or solve for it: 2 ** (ceil(log2(x)) + M + 1).",
    ],
    forbid=["torch", "numpy"],
    seconds=20.0,
)


def _power_above(x: float, shift: int) -> float:
    return 2.0 ** (math.ceil(math.log2(x)) + shift)


@stall_point.misconception(
    "You let the sum stall when the increment is smaller than one ulp. It still moves then: only half an ulp rounds away."
)
def one_ulp(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _power_above(increment, mantissa_bits)


@stall_point.misconception("Your sum gets past the point where increment = ulp / 2. That is a tie, and s is even: it stays at s.")
def ties_go_up(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    return 2.0 ** (math.floor(math.log2(increment)) + mantissa_bits + 2)


@stall_point.misconception(
    "increment / ε is a good guess, but gaps change only at powers of two, and half a gap is already lost."
)
def increment_over_epsilon(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    return increment * 2.0**mantissa_bits


@stall_point.misconception("That is how many additions it takes, not the sum that they reach.")
def number_of_additions(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    return float(math.ceil(_power_above(increment, mantissa_bits + 1) / increment))


@stall_point.misconception("That is the largest finite number. The sum stops growing long before it overflows.")
def at_overflow(increment: float, exponent_bits: int, mantissa_bits: int) -> float:
    return _format(exponent_bits, mantissa_bits).max_finite


# dot_product_error -----------------------------------------------------------------------------------------------


def _dot(a: Tensor, b: Tensor, product: torch.dtype, total: torch.dtype) -> Tensor:
    running = torch.zeros((), dtype=total)
    for x, y in zip(a.to(product), b.to(product), strict=True):
        running = running + (x * y).to(total)
    return running


def _dot_error(a: Tensor, b: Tensor, accumulator: str) -> float:
    dtype = getattr(torch, accumulator)
    return abs(_dot(a, b, dtype, dtype).item() - (a.double() * b.double()).sum().item())


def _vector(random: Random, size: int, scale: float = 1.0) -> Tensor:
    return torch.tensor([random.uniform(0.1, 1.0) * scale for _ in range(size)]).half()


def _dot_cases(random: Random) -> list[Case]:
    cases = []
    for size in (33, 100, 257):
        a, b = _vector(random, size), _vector(random, size)
        cases += [case("longer vectors", a, b, "float16"), case("longer vectors", a, -b, "float32")]
    return [*cases, case("sums that cancel", torch.cat([a, a]), torch.cat([b, -b]), "float16")]


_FIXED = Random(2)
_A, _B = _vector(_FIXED, 64), _vector(_FIXED, 64)

dot_product_error = Exercise(
    "dot_product_error",
    points=3,
    minutes=6,
    difficulty=2,
    reference=_dot_error,
    tolerance=Tolerance(1e-6, 1e-12),
    cases=[
        case("three numbers, summed in fp16", *(torch.tensor([0.1, 0.2, 0.3]).half(),) * 2, "float16"),
        case("64 numbers, summed in fp16", _A, _B, "float16"),
        case("64 numbers, summed in fp32", _A, _B, "float32"),
        case("64 negative products, summed in fp16", _A, -_B, "float16"),
    ],
    hidden_cases=_dot_cases,
    hints=[
        "The exact value first: turn both vectors into float64, where these products and sums lose nothing that matters.",
        "Then the slow way: a loop with a running total that is a tensor of the accumulator's dtype.",
        "getattr(torch, 'float16') is torch.float16. Cast a and b to it before multiplying; a product of two fp16 tensors "
        "is rounded to fp16 by torch itself.",
    ],
)


@dot_product_error.misconception("You sum in full precision and round once at the end. Round after every addition.")
def rounded_once(a: Tensor, b: Tensor, accumulator: str) -> float:
    exact = (a.double() * b.double()).sum()
    return abs(exact.to(getattr(torch, accumulator)).item() - exact.item())


@dot_product_error.misconception("Your total is float32 whatever was asked for: the accumulator's dtype is not used.")
def always_float32(a: Tensor, b: Tensor, accumulator: str) -> float:
    return _dot_error(a, b, "float32")


@dot_product_error.misconception("The products are rounded to fp16 before they reach a float32 total: cast before you multiply.")
def products_in_half(a: Tensor, b: Tensor, accumulator: str) -> float:
    total = _dot(a, b, torch.float16, getattr(torch, accumulator))
    return abs(total.item() - (a.double() * b.double()).sum().item())


@dot_product_error.misconception("An error has no sign here: take its absolute value.")
def signed_error(a: Tensor, b: Tensor, accumulator: str) -> float:
    dtype = getattr(torch, accumulator)
    return _dot(a, b, dtype, dtype).item() - (a.double() * b.double()).sum().item()


@dot_product_error.misconception("You divide by the exact value: that is the relative error, and the absolute one is asked for.")
def relative_error(a: Tensor, b: Tensor, accumulator: str) -> float:
    exact = abs((a.double() * b.double()).sum().item())
    return _dot_error(a, b, accumulator) / exact if exact else math.inf
