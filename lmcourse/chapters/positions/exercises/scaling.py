"""The exercises on RoPE's speeds for texts longer than in training."""

from __future__ import annotations

import math
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _speeds(width: int, base: float, kind: str, factor: float, trained: int) -> Tensor:
    """Compute pair by pair: a part of each speed is kept, and the factor divides the rest."""
    if kind == "ntk":
        base *= factor ** (width / (width - 2))
    speeds = []
    for pair in range(width // 2):
        speed = base ** (-2 * pair / width)
        turns = trained * speed / math.tau
        kept = {"interpolation": 0.0, "by parts": min(max((turns - 1) / 3, 0.0), 1.0)}.get(kind, 1.0)
        speeds.append(kept * speed + (1 - kept) * speed / factor)
    return torch.tensor(speeds)


def _speed_cases(random: Random) -> list[Case]:
    width, base = 2 * random.randint(5, 20), float(random.randint(5, 90) * 1000)
    factor, trained = random.randint(3, 32) / 2, random.randint(100, 2000)
    kinds = ("none", "interpolation", "ntk", "by parts")
    return [
        *(case(f"other models, {kind}", width, base, kind, factor, trained) for kind in kinds),
        case("other models, none", 4, 100.0, "none", 2.0, 64),
        case("other models, interpolation", 4, 100.0, "interpolation", 2.0, 64),
        case("other models, ntk", 4, 100.0, "ntk", 2.0, 64),
        case("other models, by parts", 20, 5000.0, "by parts", 3.0, 60),
        case("no longer than in training", 12, 10_000.0, "ntk", 1.0, 50),
        case("no longer than in training", 12, 10_000.0, "by parts", 1.0, 50),
    ]


rope_speeds = Exercise(
    "rope_speeds",
    points=3,
    minutes=8,
    difficulty=2,
    reference=_speeds,
    # The answer may compute the powers in fp32, one after the other.
    tolerance=Tolerance(1e-5),
    cases=[
        case("none", 8, 10_000.0, "none", 4.0, 32),
        case("interpolation", 8, 10_000.0, "interpolation", 4.0, 32),
        case("ntk", 8, 10_000.0, "ntk", 4.0, 32),
        case("ntk, three pairs", 6, 500_000.0, "ntk", 8.0, 8192),
        case("by parts: 5, 0.5, 0.05 and 0.005 turns", 8, 10_000.0, "by parts", 4.0, 32),
        case("by parts: the second pair turns twice", 8, 10_000.0, "by parts", 4.0, 128),
        case("by parts: twenty pairs, 9.5 turns to 0.01", 40, 1000.0, "by parts", 3.0, 60),
        case("by parts: eight pairs, 21 turns to 0.01", 16, 10_000.0, "by parts", 8.0, 130),
    ],
    hidden_cases=_speed_cases,
    hints=[
        "As trained: speeds = base ** (-torch.arange(0, width, 2) / width).",
        "NTK: the last exponent is −(width − 2)/width. With a new base B, B^(−(width − 2)/width) must be the old last "
        "speed / factor. Solve for B: base · factor^(width/(width − 2)).",
        "By parts: turns = trained · speeds / 2π; kept = ((turns − 1) / 3).clamp(0, 1). The speed is a mix of the old "
        "and the divided one: speeds * (kept + (1 - kept) / factor).",
    ],
    forbid=["transformers"],
)


@rope_speeds.variant
def as_llama_3_1_does(width: int, base: float, kind: str, factor: float, trained: int) -> Tensor:
    if kind == "ntk":
        base *= factor ** (width / (width - 2))
    speeds = 1.0 / (base ** (torch.arange(0, width, 2).float() / width))
    if kind == "interpolation":
        return speeds / factor
    if kind == "by parts":
        wavelengths = 2 * math.pi / speeds
        smooth = (trained / wavelengths - 1) / (4 - 1)
        mixed = (1 - smooth) * speeds / factor + smooth * speeds
        slow, fast = wavelengths > trained, wavelengths < trained / 4
        return torch.where(slow, speeds / factor, torch.where(fast, speeds, mixed))
    return speeds


@rope_speeds.variant
def kind_by_kind(width: int, base: float, kind: str, factor: float, trained: int) -> Tensor:
    if kind == "ntk":
        base *= factor ** (width / (width - 2))
    speeds = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    if kind == "interpolation":
        speeds = speeds / factor
    if kind == "by parts":
        turns = trained * speeds / math.tau
        kept = ((turns - 1) / 3).clamp(0, 1)
        speeds = kept * speeds + (1 - kept) * speeds / factor
    return speeds.float()


rope_speeds.slips(
    kind_by_kind,
    {
        "factor ** (width / (width - 2)) → factor": "Your NTK base is base · factor. Then the last pair, whose "
        "exponent is −(d − 2)/d and not −1, slows down by less than the factor.",
        "width / (width - 2) → (width - 2) / width": "Your NTK exponent is upside down. The last pair must slow down "
        "by exactly the factor: base · factor^(d/(d − 2)).",
        'kind == "interpolation" → kind in ("interpolation", "ntk")': "NTK divides no speed: it changes the base "
        "alone, so that the first pair keeps its speed.",
        "base *= → base /=": "Your NTK base is smaller, which makes pairs turn faster. The last pair must slow down.",
        'if kind == "ntk": → factor = 1 / factor\n    if kind == "ntk":': "You multiply by the factor. In a longer "
        "text the pairs must turn more slowly: divide.",
        "= speeds / factor → = speeds * factor": "In interpolation you multiply all speeds by the factor. Divide them.",
        "* speeds / factor → * speeds * factor ** (-torch.arange(0, width, 2) / (width - 2))": 'For "by parts" you mix '
        'in the speeds of "ntk". Divide slow pairs by the factor, as in interpolation.',
        " / math.tau → ": "By parts: you count radians, not turns. A turn is 2π radians.",
        "math.tau → math.pi": "By parts: you count half turns. A turn is 2π radians.",
        "trained * speeds → factor * trained * speeds": "By parts: you count the turns within the longer text. The "
        "model knows the angles of `trained` tokens.",
        "((turns - 1) / 3).clamp(0, 1) → torch.where((turns > 1) & (turns < 4), (4 - turns) / 3, ((turns - 1) / "
        "3).clamp(0, 1))": "By parts: between one turn and four you keep less, the more a pair turns. The fraction "
        "kept grows with the turns: (turns − 1)/3.",
        "(turns - 1) / 3 → turns.log() / math.log(4)": "By parts: your fraction grows with the logarithm of the "
        "turns. It grows linearly: (turns − 1)/3.",
        'kind == "by parts" → kind == "by_parts"': 'Your function gives "by parts" the speeds of "none". Its name '
        "has a space; and a pair turns trained · ω / 2π times in training.",
        "kept = → kept = 1 -": "By parts: you slow down the fast pairs and keep the slow ones. Do it the other way "
        "round.",
        "((turns - 1) / 3).clamp(0, 1) → (turns >= 4).double()": "By parts: pairs between one turn and four are "
        "divided like the slow ones. They are a mix of both speeds.",
        "((turns - 1) / 3).clamp(0, 1) → (turns > 1).double()": "By parts: pairs between one turn and four keep their "
        "speed like the fast ones. They are a mix of both speeds.",
        "((turns - 1) / 3).clamp(0, 1) → (turns / 4).clamp(0, 1) * (turns > 1)": "By parts: your mix begins at no "
        "turn. At one turn the speed is fully divided, at four fully kept: (turns − 1)/3.",
        "(turns - 1) / 3 → turns / 4": "By parts: your mix begins at no turn, so slow pairs keep a part of their "
        "speed. Use (turns − 1)/3, not below 0.",
        ".clamp(0, 1) → ": "By parts: your mix is not limited. Below one turn it is 0, above four turns 1: clamp it.",
        "kept * speeds + (1 - kept) * speeds / factor → speeds / (kept + (1 - kept) * factor)": 'For "by parts" you '
        "mix the wavelengths, or divide by a mix of 1 and the factor. Mix the speeds: kept · ω + (1 − kept) · ω / "
        "factor.",
        "trained * speeds / math.tau → math.tau / (trained * speeds)": "By parts: your turns are upside down. A pair "
        "turns trained · ω / 2π times within the trained length.",
        "/ 3 → / 4": "By parts: your mix is not complete at four turns. From one turn to four are three steps: divide "
        "by 3.",
        "((turns - 1) / 3).clamp(0, 1) → (turns > 1) / 2 + (turns >= 4) / 2": "By parts: between one and four turns "
        "you always take the middle. The fraction kept grows with the turns.",
        " + (1 - kept) * speeds / factor → ": "By parts: you keep a part of each speed and drop the rest, so slow "
        "pairs stop. Divide the rest by the factor.",
        "kept * speeds + (1 - kept) * speeds / factor → speeds * factor ** (kept - 1)": 'For "by parts" you mix the '
        "exponents or logarithms. Mix the speeds themselves: kept · ω + (1 − kept) · ω / factor.",
        "base *= factor ** (width / (width - 2)) → pass ;; "
        'if kind == "interpolation" → if kind == "ntk":\n        speeds[-1] /= factor\n    if kind == '
        '"interpolation"': "NTK changes the base, so that all pairs but the first slow down. You divide the last one "
        "only.",
        "base *= factor ** (width / (width - 2)) → pass ;; "
        'if kind == "interpolation" → if kind == "ntk":\n        speeds /= torch.linspace(1, factor, width // 2)\n    '
        'if kind == "interpolation"': "Your NTK divisors grow in equal steps. A new base makes them grow in equal "
        "ratios, from 1 to the factor.",
        "width / (width - 2) → 2 / (width - 2)": "Your NTK exponent is that of the last *pair*: 2/(d − 2). The base is "
        "raised to −(d − 2)/d there: solve for the base that divides this speed by the factor.",
        "torch.arange(0, width, 2, → torch.arange(width // 2, || width / (width - 2) → 2 * width / (width - 2) ;; "
        "torch.arange(0, width, 2, → torch.arange(width // 2,": "You turn pair i at base^(−i/d), without the 2. It is "
        "base^(−2i/d): from 1 down to nearly 1/base.",
        "width / (width - 2) → width / (width - 1)": "Your NTK exponent takes −(d − 1)/d for the last pair's. The "
        "pairs are numbered by 0, 2, 4, …, d − 2.",
        "torch.arange(0, width, 2, → torch.arange(width,": "You return a speed for each feature number from 0 to d − "
        "1. A pair has one speed: base^(−2i/d), d/2 of them.",
        "width / (width - 2) → width / 2": "Your NTK exponent is too large. The last pair's exponent is −(d − 2)/d: "
        "base · factor^(d/(d − 2)) slows it by the factor.",
        "speeds.float() → speeds.float().repeat_interleave(2)": "You return a speed for each feature. A pair has one: "
        "width/2 numbers.",
        "return speeds → return math.tau / speeds": "You return the wavelengths. A speed is in radians a token, and 1 "
        "for the first pair.",
    },
)


def _slow_down(speeds: Tensor, pairs: list[int], factor: float) -> Tensor:
    return torch.stack([speed / factor if pair in pairs else speed for pair, speed in enumerate(speeds)])


def _slow_cases(random: Random) -> list[Case]:
    speeds = torch.tensor([random.uniform(0.01, 1) for _ in range(6)])
    return [
        case("other pairs", speeds, random.sample(range(6), 3), float(random.randint(2, 9))),
        case("other pairs", speeds, [5], 1.5),
        case("no pair", speeds, [], 8.0),
    ]


_FOUR = torch.tensor([1.0, 0.3, 0.1, 0.03])

slow_down = Exercise(
    "slow_down",
    points=1,
    minutes=3,
    difficulty=1,
    reference=_slow_down,
    cases=[
        case("pair 2", _FOUR, [2], 4.0),
        case("pair 1 and all slower ones", _FOUR, [1, 2, 3], 4.0),
        case("pairs 3 and 0", _FOUR, [3, 0], 2.0),
        case("no pair", _FOUR, [], 4.0),
        script("the speeds that were given stay", "slowed = slow_down(speeds, [0], 4.0)\nspeeds", speeds=_FOUR),
    ],
    hidden_cases=_slow_cases,
    hints=["A copy: speeds.clone(). The numbers of pairs are places in it.", "slowed[pairs] are the speeds to divide."],
)


@slow_down.variant
def copy_and_divide(speeds: Tensor, pairs: list[int], factor: float) -> Tensor:
    slowed = speeds.clone()
    slowed[pairs] /= factor
    return slowed


slow_down.slips(
    copy_and_divide,
    {
        "speeds.clone() → speeds": "You change the speeds that were given, and every later call starts with slower "
        "ones. Copy them first.",
        "/= factor → *= factor": "Your pairs turn faster. To slow them down, divide.",
        "slowed[pairs] → slowed": "You slow down all pairs. `pairs` says which.",
        "slowed[pairs] → slowed[pairs[0] if pairs else len(slowed) :] || slowed[pairs] → slowed[min(pairs, default=8) "
        ":]": "You slow down all pairs from one of `pairs` on. Only those in `pairs` are asked for.",
        "/= factor → / factor": "Your speeds stay as they are: divide those of `pairs`, and store the result.",
        "slowed[pairs] → slowed[pairs[:1]]": "You slow down only the first of the pairs.",
        "return slowed → return slowed[pairs]": "You return the slowed pairs alone. The others keep their speeds, and "
        "are returned, too.",
        "slowed[pairs] → slowed[[pair for pair in range(len(speeds)) if pair not in pairs]]": "You slow down the pairs "
        "that are not in `pairs`.",
        "slowed[pairs] → slowed[[pair - 1 for pair in pairs]]": "You count the pairs from 1. They count from 0, like "
        "places in the tensor.",
        "slowed[pairs] → slowed[pairs[0] if pairs else 0 : pairs[-1] if pairs else 0]": "You take "
        "`pairs` for the ends of a range. It lists every pair that is to be slower.",
    },
)
