"""The exercises on the table of sinusoidal positions, and on the matrix that moves them by k."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def angles(positions: Tensor, d: int, base: float = 10_000.0) -> Tensor:
    """The angle of every pair at every position, in float64: (*positions, d/2). ValueError if d is odd."""
    if d % 2:
        raise ValueError(f"features come in pairs: the width must be even, not {d}")
    return positions.double()[..., None] * base ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)


def _sinusoidal(positions: Tensor, d: int) -> Tensor:
    """Sine and cosine of each angle next to each other, from the complex number e^(i angle)."""
    angle = angles(positions, d)
    return torch.view_as_real(torch.polar(torch.ones_like(angle), angle)).flip(-1).flatten(-2).float()


def _sinusoidal_cases(random: Random) -> list[Case]:
    near = torch.tensor([random.randint(0, 40) for _ in range(5)])
    far = torch.tensor(random.sample(range(257, 500, 2), 3))  # bf16 holds only even numbers in this range
    return [
        case("other positions", torch.tensor([7, 0, 30, 7, 2]), 6),
        case("far positions", torch.tensor([19_999, 4096]), 4),
        case("far positions, many pairs", torch.tensor([19_873, 14_999]), 256),
        case("other widths", torch.tensor([3, 5]), 2),
        case("bad input", torch.tensor([0, 1]), 1),
        case("other positions", near, 6),
        case("far positions", far, 16),
        case("other widths", near, 2),
        case("other widths", near[:1], 2 * random.randint(20, 40)),
        case("bad input", near, 2 * random.randint(1, 9) + 1),
    ]


sinusoidal = Exercise(
    "sinusoidal",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_sinusoidal,
    # An fp32 angle of a few hundred radians has an error of up to 3e-5, and fp32 frequencies add a few times that.
    tolerance=Tolerance(0.0, 1.5e-4),
    cases=[
        case("the first position, d = 4", torch.tensor([0]), 4),
        case("positions 0, 1 and 2, d = 4", torch.arange(3), 4),
        case("position 9, d = 8", torch.tensor([9]), 8),
        case("position 3, d = 6", torch.tensor([3]), 6),
        case("far positions", torch.tensor([1000, 20_000]), 4),
        edge(case("position 20,000, where float32 angles are off by 0.001", torch.tensor([20_000]), 128)),
        case("an odd width", torch.arange(3), 5),
    ],
    hidden_cases=_sinusoidal_cases,
    hints=[
        "ω falls by equal ratios from 1 at pair 0 to 1/10000 at pair d/2, so ω of pair i is 10000^(−2i/d). First make "
        "a table of angles, one row per position and one column per pair: angle = position · ω.",
        "torch.arange(0, d, 2, dtype=torch.float64) / d is 2i/d for all pairs at once; positions[:, None] * omega is "
        "the table. In float32 the angles of far positions would be off by 0.001.",
        "torch.stack([angles.sin(), angles.cos()], dim=-1) has the shape (s, d/2, 2), and .flatten(-2) puts each sine "
        "next to its cosine. .float() comes last.",
    ],
)


@sinusoidal.variant
def table_of_angles(positions: Tensor, d: int) -> Tensor:
    if d % 2:
        raise ValueError("odd")
    omega = 10_000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = positions[:, None] * omega
    waves = torch.stack([angle.sin(), angle.cos()], dim=-1)
    return waves.flatten(-2).float()


sinusoidal.slips(
    table_of_angles,
    {
        "torch.arange(0, d, 2, → torch.arange(d, ;; angle.sin() → angle[:, ::2].sin() ;; "
        "angle.cos() → angle[:, 1::2].cos()": "You number the features, not the pairs: feature 2i and feature 2i + 1 "
        "share one frequency, 10000^(−2i/d).",
        "torch.stack → torch.cat ;; waves.flatten(-2) → waves": "All your sines come first and all cosines after them. "
        "Some code does that; here each cosine follows its sine.",
        "angle.sin(), angle.cos() → angle.cos(), angle.sin()": "Your cosines come first. The sine is in the even "
        "feature 2i, the cosine in 2i + 1.",
        "torch.arange(0, d, 2, → torch.arange(d // 2,": "Your exponent is −i/d: then pair d/2 would turn by 1/100. It "
        "must turn by 1/10000.",
        "-torch.arange → -2 * torch.arange": "Your exponent is −4i/d. torch.arange(0, d, 2) holds 2i already, so the 2 "
        "counts twice.",
        "torch.arange(0, d, 2, → torch.arange(2, d + 2, 2,": "You number the pairs from 1, so no pair turns by 1 "
        "radian a token. The first pair is pair 0, with ω = 1.",
        "10_000.0 → math.e": "Your ratio has the base e. Pair d/2 would turn by 1/10000, so the base is 10000: "
        "e^(−2i/d · ln 10000).",
        "positions[:, None] → (positions[:, None] + 1)": "You count positions from 1. The first token is at position "
        "0: sine 0, cosine 1.",
        "positions[:, None] → torch.arange(len(positions))[:, None]": "You number the positions yourself, 0, 1, 2, … "
        "Use `positions`.",
        "-torch → torch": "You multiply by 10000^(2i/d). Later pairs must turn more slowly: divide by it.",
        'raise ValueError("odd") → return table_of_angles(positions, d + 1)[:, :d] || if d % 2:\n        raise '
        'ValueError("odd")\n    omega → omega': "With an odd width the last sine has no cosine: raise ValueError.",
        'if d % 2:\n        raise ValueError("odd")\n    omega → omega ;; , dtype=torch.float64 → ': "Your angles are "
        "in float32, where those of far positions are rounded to 0.001 or so: use float64. And an odd width raises "
        "ValueError.",
        "/ d) → / max(d - 2, 1))": "Your last pair turns at exactly 1/10000, an exponent of −2i/(d − 2). Some code "
        "does that; here only pair d/2, one after the last, would.",
        "* omega → * omega * math.pi / 180": "Your sines take degrees. The angle is in radians, as math.sin and "
        "torch.sin expect it.",
        "/ d) → / 2)": "Your speeds fall by 10000 from pair to pair. The ratio of two neighbours is 10000^(−2/d).",
        "10_000.0 ** (- → 1 - 0.9999 * (": "Your speeds fall by equal steps. They fall by equal ratios: 1, r, r² and "
        "so on.",
        "positions[:, None] * omega → (positions[:, None] * omega).float() ;; "
        "angle.cos() → (angle + math.pi / 2).sin()": "Your cosine is a sine whose angle is moved by π/2 in float32. "
        "Far into the text that sum is rounded to 0.001.",
        "10_000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d) → torch.exp(torch.arange(0, d, 2) * "
        "(-math.log(10_000.0) / d)) || * omega → * omega.float().double() || , dtype=torch.float64 → ": "Your speeds "
        "or angles are in float32: at position 20,000 angles are off by up to 0.001. Use dtype=torch.float64 for the "
        "exponents, and make sines and cosines float32 at the end.",
    },
)


def _shift_matrix(k: int, d: int) -> Tensor:
    # This computes the rotation as the solution of x' = Gx, where G turns sine into cosine at the speed of the pair.
    speed = angles(torch.tensor(1), d)
    quarter_turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    generator: Tensor = torch.block_diag(*(speed[:, None, None] * quarter_turn))  # type: ignore[no-untyped-call]
    return torch.matrix_exp(k * generator).float()


def _shift_cases(random: Random) -> list[Case]:
    return [
        case("other steps", 200, 4),
        case("far steps", -50_000, 64),
        case("steps back", -1, 2),
        case("no step", 0, 4),
        case("other widths", 1, 6),
        case("other steps", random.randint(2, 40), 8),
        case("steps back", -random.randint(2, 40), 6),
        case("no step", 0, 2 * random.randint(2, 6)),
        case("other widths", random.randint(1, 9), 2),
        case("other widths", random.randint(1, 9), 32),
    ]


shift_matrix = Exercise(
    "shift_matrix",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_shift_matrix,
    tolerance=Tolerance(0.0, 5e-5),
    cases=[
        case("one step, one pair", 1, 2),
        case("five steps, two pairs", 5, 4),
        case("one step back", -1, 4),
        case("three steps back", -3, 4),
        case("two steps, four pairs", 2, 8),
        case("20,000 steps", 20_000, 32),
    ],
    hidden_cases=_shift_cases,
    hints=[
        "Start with one pair: sin(ω(p + k)) = cos(ωk) sin(ωp) + sin(ωk) cos(ωp). That is the first row.",
        "cos(ω(p + k)) = cos(ωk) cos(ωp) − sin(ωk) sin(ωp): the second row is [−sin(ωk), cos(ωk)].",
        "Each pair has its own ω. torch.block_diag(*blocks) places 2 × 2 tensors along the diagonal.",
    ],
)


@shift_matrix.variant
def block_by_block(k: int, d: int) -> Tensor:
    blocks = []
    for i in range(0, d, 2):
        angle = k * 10_000 ** (-i / d)
        cos, sin = math.cos(angle), math.sin(angle)
        blocks.append(torch.tensor([[cos, sin], [-sin, cos]]))
    matrix: Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    return matrix


shift_matrix.slips(
    block_by_block,
    {
        "k * 10_000 ** (-i / d) → k": "Your blocks have cos k and sin k. Each pair turns at its own speed: cos ωk and "
        "sin ωk.",
        "[cos, sin], [-sin, cos] → [cos, -sin], [sin, cos]": "Your matrix steps back by k. With the sine first, the "
        "row of the sine is [cos ωk, sin ωk], both with a plus.",
        "k * 10_000 → 10_000 ;; "
        "torch.block_diag(*blocks) → torch.linalg.matrix_power(torch.block_diag(*blocks), k)": "You multiply matrices "
        "of one step in float32. Each product rounds again, and 20,000 steps add that up: multiply in float64, or "
        "multiply the angle by k.",
        "k * → abs(k) *": "Your matrix ignores the sign of k: for a negative k it must step back.",
        "-sin → sin": "No entry of yours is −sin ωk. The derivative of the cosine is minus the sine.",
        "return matrix → order = [*range(0, d, 2), *range(1, d, 2)]\n    return matrix[order][:, order]": "You pair "
        "feature i with feature i + d/2. In this table the sine and cosine of a pair are next to each other.",
        "k * 10_000 → 10_000 ;; return matrix → return k * matrix": "You multiply the matrix of one step by k. k steps "
        "multiply the *angle* by k: cos ωk, not k · cos ω.",
        "[cos, sin], [-sin, cos] → [cos, 0], [0, cos]": "Your matrix has only cosines. A rotation mixes the two waves "
        "of a pair.",
        "-i / d → -i / 2 / d": "Your exponent is −i/d. Pair i has the frequency 10000^(−2i/d).",
        "-i / d → -i / max(d - 2, 1)": "Your last pair turns at exactly 1/10000, an exponent of −2i/(d − 2). Here "
        "pair i has the frequency 10000^(−2i/d).",
        "-i / d → i / d": "Your later pairs turn faster than the first. The exponent is negative: −2i/d.",
        "-i / d → -2 * i / d": "Your exponent falls twice as fast as it should. It is −2i/d with i = 0, 1, 2, …: an "
        "index of 0, 2, 4, … has the 2 in it already.",
        "k * 10_000 ** (-i / d) → (k * torch.tensor(10_000 ** (-i / d))).item()": "Your angles are in fp32, which "
        "keeps seven digits: far steps turn by thousands of radians. Compute them in double precision, and round at "
        "the end.",
        "[cos, sin], [-sin, cos] → [sin, cos], [cos, -sin] || cos, sin = → sin, cos =": "You swapped cosine and sine "
        "in the blocks. A step of k = 0 must change nothing: cos 0 = 1 on the diagonal.",
        "torch.block_diag(*blocks) → torch.stack(blocks)": "You return the blocks as a stack. Place them along the "
        "diagonal of one (d, d) matrix.",
    },
)
