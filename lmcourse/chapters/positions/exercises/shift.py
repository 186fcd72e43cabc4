"""The exercise on the matrix that moves sinusoidal positions by k."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.positions.exercises.inputs import angles
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


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
def diagonals(k: int, d: int) -> Tensor:
    angle = k * 10_000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    matrix = torch.zeros(d, d)
    matrix[::2, ::2] = torch.diag(torch.cos(angle))
    matrix[1::2, 1::2] = torch.diag(torch.cos(angle))
    matrix[::2, 1::2] = torch.diag(torch.sin(angle))
    matrix[1::2, ::2] = -torch.diag(torch.sin(angle))
    return matrix


@shift_matrix.variant
def one_step_many_times(k: int, d: int) -> Tensor:
    step = torch.eye(d, dtype=torch.float64)
    for i in range(0, d, 2):
        cos, sin = math.cos(10_000 ** (-i / d)), math.sin(10_000 ** (-i / d))
        step[i : i + 2, i : i + 2] = torch.tensor([[cos, sin], [-sin, cos]], dtype=torch.float64)
    if k < 0:
        step = step.T
    steps: Tensor = torch.linalg.matrix_power(step, abs(k))
    return steps.float()


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
    one_step_many_times,
    {
        "torch.eye(d, dtype=torch.float64) → torch.eye(d)": "You multiply matrices of one step in float32. Each "
        "product rounds again, and 20,000 steps add that up: multiply in float64, or multiply the angle by k.",
    },
)


shift_matrix.slips(
    block_by_block,
    {
        "k * 10_000 ** (-i / d) → k": "Your blocks have cos k and sin k. Each pair turns at its own speed: cos ωk and "
        "sin ωk.",
        "[cos, sin], [-sin, cos] → [cos, -sin], [sin, cos]": "Your matrix steps back by k. With the sine first, the "
        "row of the sine is [cos ωk, sin ωk], both with a plus.",
        "k * → abs(k) *": "Your matrix ignores the sign of k: for a negative k it must step back.",
        "-sin → sin": "No entry of yours is −sin ωk. The derivative of the cosine is minus the sine.",
        "return matrix → order = [*range(0, d, 2), *range(1, d, 2)]\n    return matrix[order][:, order]": "You pair "
        "feature i with feature i + d/2. In this table the sine and cosine of a pair are next to each other.",
        "k * 10_000 → 10_000 ;; return matrix → return k * matrix": "You multiply the matrix of one step by k. k steps "
        "multiply the *angle* by k: cos ωk, not k · cos ω.",
        "[cos, sin], [-sin, cos] → [cos, 0], [0, cos]": "Your matrix has only cosines. A rotation mixes the two waves "
        "of a pair.",
        "-i / d → -i / 2 / d": "Your exponent is −i/d. Pair i has the frequency 10000^(−2i/d).",
        "-i / d → i / d": "Your later pairs turn faster than the first. The exponent is negative: −2i/d.",
        "-i / d → -2 * i / d": "Your exponent falls twice as fast as it should. It is −2i/d with i = 0, 1, 2, …: an "
        "index of 0, 2, 4, … has the 2 in it already.",
        "k * 10_000 ** (-i / d) → (k * torch.tensor(10_000 ** (-i / d))).item()": "Your angles are in fp32, which "
        "keeps seven digits: far steps turn by thousands of radians. Compute them in double precision, and round at "
        "the end.",
        "[cos, sin], [-sin, cos] → [sin, cos], [cos, -sin]": "You swapped cosine and sine in the blocks. A step of k = "
        "0 must change nothing: cos 0 = 1 on the diagonal.",
        "cos, sin = → sin, cos =": "You swapped cosine and sine in the blocks, in the form [[sin, cos], [−cos, sin]]. "
        "A step of 0 changes nothing.",
        "torch.block_diag(*blocks) → torch.stack(blocks)": "You return the blocks as a stack. Place them along the "
        "diagonal of one (d, d) matrix.",
    },
)
