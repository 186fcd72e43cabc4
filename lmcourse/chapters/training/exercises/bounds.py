"""The exercise on the standard deviation of initial weights, and on the bounds of a truncated normal distribution."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case, script
from lmcourse.exercises.exercise import Exercise

Bounds = tuple[float, float, float]

MEAN_INPUTS = {"lecun": lambda i, o: i, "xavier": lambda i, o: (i + o) / 2, "he": lambda i, o: i / 2}
"""The inverse of the variance, for each rule."""


def _reference(rule: str, fan_in: int, fan_out: int, cut: float) -> Bounds:
    if rule not in MEAN_INPUTS:
        raise ValueError(f"unknown rule {rule}")
    std = MEAN_INPUTS[rule](fan_in, fan_out) ** -0.5
    return std, -cut * std, cut * std


def _part(items: str, name: str, rule: str, fan_in: int, fan_out: int, cut: float) -> Case:
    """Ask for the standard deviation or the bounds alone: each earns its points."""
    return script(name, f'initial_bounds("{rule}", {fan_in}, {fan_out}, {cut}){items}')


def _hidden(random: Random) -> list[Case]:
    fixed = [
        _part("[0]", "as many outputs as inputs", "xavier", 1024, 1024, 3.0),
        _part("[0]", "narrower", "lecun", 2048, 512, 2.0),
        _part("[0]", "narrower", "xavier", 2048, 512, 2.0),
        _part("[0]", "narrower", "he", 2048, 512, 2.0),
        _part("[0]", "one input", "lecun", 1, 7, 3.0),
        _part("[0]", "one input", "he", 1, 9, 1.0),
        case("one output", "xavier", 8, 1, 1.5),
        case("other cuts", "he", 300, 100, 0.5),
        case("unknown rules", "glorot", 512, 512, 3.0),
        case("unknown rules", "", 512, 512, 3.0),
        case("unknown rules", "Xavier", 512, 512, 3.0),
        case("unknown rules", "he_normal", 512, 512, 3.0),
    ]
    sizes = random.sample(range(10, 5000), 6)
    drawn = [
        case("other sizes", rule, fan_in, fan_out, random.uniform(1, 4))
        for rule, fan_in, fan_out in zip(MEAN_INPUTS, sizes[:3], sizes[3:], strict=True)
    ]
    return [*fixed, *drawn]


initial_bounds = Exercise(
    "initial_bounds",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_reference,
    cases=[
        _part("[0]", "LeCun, 512 in: the deviation", "lecun", 512, 2048, 3.0),
        _part("[0]", "Xavier, 512 in and 2048 out: the deviation", "xavier", 512, 2048, 3.0),
        _part("[0]", "He, 512 in: the deviation", "he", 512, 3072, 3.0),
        _part("[1:]", "LeCun, 1024 in: the bounds", "lecun", 1024, 64, 2.0),
        _part("[1:]", "He, 200 in: the bounds", "he", 200, 64, 3.0),
        case("a rule that nobody knows", "kaiming", 512, 512, 3.0),
        case("a capital letter", "Xavier", 512, 512, 3.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "Each rule gives a variance: one over some number. Which number is it in each rule?",
        "LeCun: 1/fan_in. Xavier: one over the *mean* of fan_in and fan_out. He: a ReLU halves, so twice LeCun's.",
        "The standard deviation is the root of the variance. The bounds are plain numbers: -cut * std and cut * std.",
    ],
    forbid=["torch.nn.init"],
)


@initial_bounds.variant
def with_branches(rule: str, fan_in: int, fan_out: int, cut: float) -> tuple[float, float, float]:
    if rule == "lecun":
        std = fan_in**-0.5
    elif rule == "xavier":
        std = (2 / (fan_in + fan_out)) ** 0.5
    elif rule == "he":
        std = (2 / fan_in) ** 0.5
    else:
        raise ValueError(f"unknown rule {rule}")
    return std, -cut * std, cut * std


initial_bounds.slips(
    with_branches,
    {
        "(2 / (fan_in + fan_out)) ** 0.5 → fan_in**-0.5": "For Xavier you return 1 over the root of fan_in, which is "
        "LeCun's rule. Xavier's uses fan_in and fan_out.",
        "-cut * std, cut * std → -cut, cut": "Your bounds are in deviations, but trunc_normal_ takes plain numbers: at "
        "d = 1024, ±3 is 96 deviations away, and nothing is ever cut.",
        "return → std = std**2\n    return": "You use the variance. The standard deviation is its root.",
        "fan_in**-0.5 → fan_out**-0.5 ;; 2 / fan_in → 2 / fan_out": "You divide by the number of outputs. The sum runs "
        "over the *inputs*.",
        "2 / (fan_in → 1 / (fan_in": "Your Xavier variance is one over the sum of fan_in and fan_out. It is one over "
        "their *mean*: 2/(in + out).",
        "(2 / (fan_in + fan_out)) ** 0.5 → (fan_in**-0.5 + fan_out**-0.5) / 2": "You average two standard deviations "
        "for Xavier. The rule averages the *numbers* of inputs and outputs.",
        "2 / fan_in → 2 / fan_out": "Your He rule uses the number of outputs. It uses fan_in, like LeCun's.",
        'if rule == "lecun" → rule = rule.lower()\n    if rule == "lecun"': "You accept capital letters. The three "
        "names are exact, so Xavier is an unknown rule.",
        "return → density = math.exp(-(cut**2) / 2) / math.sqrt(2 * math.pi)\n    std /= math.sqrt(1 - 2 * cut * "
        "density / math.erf(cut / math.sqrt(2)))\n    return": "You make up for the variance that the cut takes away, "
        "as JAX and timm do. Here that loss stays as it is.",
        "-cut * std → 0.0": "Your lower bound is 0, so no weight is negative and their mean is not 0. Cut at the same "
        "distance on both sides.",
        "2 / fan_in → 0.5 / fan_in": "Your weights for He are smaller than LeCun's. A ReLU removes half of the "
        "variance, so they should be *larger*.",
        'raise ValueError(f"unknown rule {rule}") → std = (2 / fan_in) ** 0.5': "You silently use another rule for an "
        "unknown one. Raise ValueError.",
        "(2 / fan_in) ** 0.5 → fan_in**-0.5": "For He you return 1 over the root of fan_in, which is LeCun's rule. "
        "He's variance is twice as large.",
        "fan_in**-0.5 → fan_out**-0.5": "Your LeCun rule uses the number of outputs. It uses fan_in: the sum runs "
        "over the inputs.",
        "fan_in**-0.5 → (2 / fan_in) ** 0.5 ;; (2 / fan_in) ** 0.5 → fan_in**-0.5": "LeCun and He are swapped. The 2 "
        "in He's rule makes up for the ReLU.",
        "2 / (fan_in → 6 / (fan_in": "Your Xavier number is the bound of a *uniform* distribution, with a 6. The "
        "standard deviation has a 2.",
        "-cut * std, cut * std → cut * std, -cut * std": "The two bounds are swapped: the lower one, `a`, comes first.",
        "-cut * std → cut * std": "Both of your bounds are positive. Cut at the same distance on both sides of 0.",
        'raise ValueError(f"unknown rule {rule}") → raise KeyError(rule)': "For an unknown rule you raise another "
        "exception, perhaps that of a dictionary. Raise ValueError.",
    },
)
