"""The exercise that finds the shape of a decoder of a given size."""

from __future__ import annotations

import math
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain

Shape = dict[str, int]

KEYS = ("layers", "d_model", "heads", "d_ff")
ASPECTS = (60, 160)
RATIOS = (2.5, 4.0)
STEP = 64
SLACK = 0.03


MISCOUNTS = {
    "without the table": {"tables": 0},
    "with the table twice": {"tables": 2},
    "with two feed-forward matrices": {"matrices": 2},
    "with three attention matrices": {"attention": 3},
}
"""For each wrong way to count: its name in a report, and the arguments that count in this way."""


def _size(
    layers: int, d_model: int, d_ff: int, vocab_size: int, *, tables: int = 1, matrices: int = 3, attention: int = 4
) -> int:
    return tables * vocab_size * d_model + layers * (attention * d_model**2 + matrices * d_model * d_ff)


def _shape(parameters: int, vocab_size: int, head_width: int = 128) -> Shape:
    """Return the narrowest shape that keeps the rules."""
    # Even the narrowest layers of the widest aspect have (4 + 2 · 3) d² weights each.
    widest = (ASPECTS[1] * parameters / 10) ** (1 / 3)
    for d_model in range(head_width, int(widest) + 1, head_width):
        left = parameters - vocab_size * d_model
        for layers in range(math.ceil(d_model / ASPECTS[1]), int(d_model / ASPECTS[0]) + 1):
            low, high = STEP * math.ceil(RATIOS[0] * d_model / STEP), STEP * int(RATIOS[1] * d_model / STEP)
            wanted = STEP * round((left / layers - 4 * d_model**2) / (3 * d_model * STEP))
            d_ff = max(low, min(high, wanted))
            if d_ff <= high and abs(layers * (4 * d_model**2 + 3 * d_model * d_ff) - left) <= SLACK * parameters:
                return {"layers": layers, "d_model": d_model, "heads": d_model // head_width, "d_ff": d_ff}
    raise ValueError(f"no shape has about {parameters:,} parameters")


def _deviation(shape: tuple[int, int, int, int], parameters: int, *, only_size: bool) -> str:
    """Describe the error of a size, or the mistake that explains it; equal mistakes give equal texts."""
    off = _size(*shape) / parameters - 1
    if abs(off) <= SLACK:
        return ""
    counts = MISCOUNTS.items() if only_size else ()
    fitting = [words for words, counted in counts if abs(_size(*shape, **counted) / parameters - 1) <= SLACK]
    if fitting:
        return f"the size is right only {' or '.join(fitting)}"
    far = sum(abs(off) > limit for limit in (0.15, 0.4))
    words = ("3 to 15 %", "15 to 40 %", "more than 40 %")
    return f"the size is {words[far]} too {'large' if off > 0 else 'small'}"


def _view(asked: Case, value: Plain) -> Plain:
    """The rules that a shape breaks, as text."""
    if not isinstance(value, dict) or {*value} != {*KEYS}:
        return f"no dict with exactly the keys {', '.join(KEYS)}"
    numbers = [value[key] for key in KEYS]
    if not all(isinstance(number, int | float) and number == number and number > 0 for number in numbers):
        return "not every value is a plain number above 0"
    if not all(float(number).is_integer() for number in numbers if isinstance(number, int | float)):
        return "not every value is a whole number"
    layers, d_model, heads, d_ff = (int(number) for number in numbers if isinstance(number, int | float))
    parameters, vocab_size, *rest = (int(number) for number in asked.args if isinstance(number, int))
    head_width = int(str(asked.kwargs.get("head_width", rest[0] if rest else 128)))
    broken = [
        "" if heads * head_width == d_model else "heads · head width is not d",
        "" if ASPECTS[0] <= d_model / layers <= ASPECTS[1] else "d / layers is not between 60 and 160",
        "" if d_ff % STEP == 0 else "d_ff is no multiple of 64",
        "" if RATIOS[0] <= d_ff / d_model <= RATIOS[1] else "d_ff is not between 2.5 and 4 times d",
    ]
    broken.append(_deviation((layers, d_model, d_ff, vocab_size), parameters, only_size=not any(broken)))
    return "; ".join(filter(None, broken)) or "keeps all rules"


def _shape_cases(random: Random) -> list[Case]:
    return [
        case("other sizes", 400_000_000, 50_304, head_width=64),
        case("no shape", 17_600_000, 50_257, head_width=64),
        case("no shape", 19_500_000, 64_000, head_width=96),
        case("other sizes", 950_000_000, 151_936),
        case("other sizes", random.randint(400_000_000, 1_000_000_000), 128_000),
        case("other head widths", 900_000_000, 128_000, head_width=256),
        case("other head widths", 500_000_000, 64_000, head_width=96),
        case("no shape", 40_000_000, 128_256, head_width=64),
    ]


decoder_shape = Exercise(
    "decoder_shape",
    points=3,
    minutes=14,
    difficulty=2,
    reference=_shape,
    cases=[
        case("124 million, 32,000 tokens, heads of 64", 124_000_000, 32_000, head_width=64),
        case("1.24 billion, 128,256 tokens", 1_240_000_000, 128_256),
        case("900 million, 100,352 tokens", 900_000_000, 100_352),
        case("64.2 million, 32,000 tokens, heads of 256", 64_200_000, 32_000, head_width=256),
        case("27.9 million, 32,000 tokens, heads of 256", 27_900_000, 32_000, head_width=256),
        case("42.6 million, 128,256 tokens, heads of 64", 42_600_000, 128_256, head_width=64),
        case("28.3 million, 32,000 tokens", 28_300_000, 32_000),
        case("44.2 million, 151,936 tokens", 44_200_000, 151_936),
        case("156.5 million, 256,000 tokens, heads of 96", 156_500_000, 256_000, head_width=96),
        case("328 million, 256,000 tokens, heads of 256: there is none", 328_000_000, 256_000, head_width=256),
        case("190,000, 1,000 tokens: there is none", 190_000, 1000, head_width=96),
        case("100 million, 262,144 tokens: there is none", 100_000_000, 262_144, head_width=64),
    ],
    hidden_cases=_shape_cases,
    hints=[
        "Write down the count first: V·d for the table, and per layer 4·d² for attention and 3·d·d_ff.",
        "Three loops will do: heads from 1 on, layers between d/160 and d/60, and d_ff in steps of 64 between 2.5·d "
        "and 4·d. Return the first shape whose count is within 3 %. Stop when the table alone is too large.",
        "Instead of the third loop, you can solve the count for d_ff and round to a multiple of 64.",
    ],
    seconds=20.0,
    view=_view,
)


@decoder_shape.variant
def by_the_nearest_width(parameters: int, vocab_size: int, head_width: int = 128) -> dict[str, int]:
    for d in range(head_width, 4000, head_width):
        for layers in range(math.ceil(d / 160), d // 60 + 1):
            widths = range(64 * math.ceil(2.5 * d / 64), 4 * d + 1, 64)
            counts = [(vocab_size * d + layers * (4 * d * d + 3 * d * d_ff), d_ff) for d_ff in widths]
            off, d_ff = min((abs(count - parameters), d_ff) for count, d_ff in counts)
            if off <= 0.03 * parameters:
                return {"layers": layers, "d_model": d, "heads": d // head_width, "d_ff": d_ff}
    raise ValueError(f"no shape has about {parameters:,} parameters")


decoder_shape.slips(
    by_the_nearest_width,
    {
        "vocab_size * d + → ": "You leave out the embedding table: V · d parameters.",
        "vocab_size * d → 2 * vocab_size * d": "You count the table twice. Here the embedding is tied: the head uses "
        "the same table.",
        "3 * d * d_ff → 2 * d * d_ff": "Your feed-forward layers have two matrices. They are gated: 3 · d · d_ff.",
        "4 * d * d → 3 * d * d": "You count three matrices in attention. It has four of d × d: queries, keys, values "
        "and the output.",
        "d / 160 → d / 30 ;; d // 60 → d // 10": "Your aspect ratio, d / layers, is outside 60 to 160.",
        '"d_ff": d_ff → "d_ff": d_ff + 1': "Your d_ff is not a multiple of 64.",
        "d // head_width → head_width + 1": "You return the width of a head as the number of heads. All heads together "
        "are d wide.",
        "range(math.ceil(d / 160), d // 60 + 1) → range(max(1, d // 200), d // 60 + 1)": "Your aspect, d / layers, is "
        "not always between 60 and 160.",
        "range(64 * math.ceil(2.5 * d / 64), 4 * d + 1, 64) → range(5 * d // 2, 4 * d + 1, 10)": "Your d_ff is not "
        "always a multiple of 64.",
        '    raise ValueError(f"no shape has about {parameters:,} parameters")\n → ': "You return None if no shape "
        "keeps the rules. Raise ValueError.",
        "2.5 * d → 5 * d ;; 4 * d + 1 → 8 * d + 1": "Your feed-forward layers are not between 2.5 and 4 times as wide "
        "as the model.",
        "for d in range(head_width, 4000, head_width): → for deepest, d in [(most, d) for most in (60, 5) "
        "for d in range(head_width, 4000, head_width)]: ;; d // 60 → d // deepest": "If no shape satisfies all rules, "
        "raise ValueError. You return one that breaks a rule.",
        "for d in → found = []\n    for d in ;; if off <= 0.03 * parameters:\n                return { → "
        'found.append((off, len(found), { ;; "d_ff": d_ff} → "d_ff": d_ff})) ;; '
        'raise ValueError(f"no shape has about {parameters:,} parameters") → return min(found)[2]': "You return "
        "the nearest shape, even one that is more than 3 % off. If none is within 3 %, raise ValueError.",
        "range(64 * math.ceil(2.5 * d / 64), 4 * d + 1, 64) → [64 * round(8 / 3 * d / 64)] ;;  has about "
        "{parameters:,} parameters → ": "You raise ValueError where a shape exists. Do you try only one d_ff for each "
        "d, such as 8/3 of it? Any multiple of 64 between 2.5 and 4 times d may fit.",
    },
)


LAYERS = "for layers in range(math.ceil(d / 160), d // 60 + 1):"
WIDTHS = "for d_ff in range(64 * math.ceil(2.5 * d / 64), 4 * d + 1, 64):"
FITS = "if abs(count - parameters) <= 0.03 * parameters:"
SHAPE = "return {'layers': layers, 'd_model': d, 'heads': d // head_width, 'd_ff': d_ff}"
for change, reason in {
    "while vocab_size * d < parameters: → while vocab_size * d <= parameters:": "A table is never the whole model.",
    f"{LAYERS} → for layers in range(math.ceil(d / 161), d // 60 + 1):": "No d asked for has an aspect of 160 to 161.",
    f"{WIDTHS} → for d_ff in range(64 * math.ceil(2.5 * d / 65), 4 * d + 1, 64):": "Differs for large d only.",
    f"{WIDTHS} → for d_ff in range(64 * math.ceil(2.5 * d / 64), 4 * d + 2, 64):": "4 · d + 1 is no multiple of 64.",
    f"{FITS} → if abs(count - parameters) < 0.03 * parameters:": "No count is off by exactly 3 %.",
    f"{FITS} → if abs(parameters - count) <= 0.03 * parameters:": "The difference has the same size both ways.",
    f"{SHAPE} → {SHAPE.replace('//', '/')}": "A whole number may be written as 12.0.",
}.items():
    decoder_shape.equivalent_mutant(change, reason)
