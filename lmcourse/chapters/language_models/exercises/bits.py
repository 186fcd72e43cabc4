"""The exercise on bits per byte, the unit in which models with different tokens can be compared."""

from __future__ import annotations

import math
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def price_of_the_text(loss: float, tokens: int, text: str) -> float:
    nats = loss * tokens
    bits = nats / math.log(2)
    return bits / len(text.encode())


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("certainty", 0.0, 5, "hello"),
        *(case("other scripts", *each) for each in ((2.5, 4, "языковая модель"), (1.75, 7, "言語モデル"))),
        case("emoji", 1.25, 9, "👩‍🚀 lands"),
        case("line ends and blanks", 0.5, 6, " a\n\tb \r\n"),
        case("long texts", 3.3, 12_000, "The sea is wide. " * 3000),
        case("an infinite loss", math.inf, 2, "ab"),
    ]
    letters = "abcdefgh éüß Ωλ 語"
    for length in (7, 30, 200):
        text = "".join(random.choice(letters) for _ in range(length))
        cases.append(case("other texts", random.uniform(0.5, 6.0), random.randint(2, length // 2), text))
    return cases


bits_per_byte = Exercise(
    "bits_per_byte",
    points=1,
    minutes=4,
    difficulty=1,
    reference=price_of_the_text,
    cases=[
        case("a coin for every letter", math.log(2), 4, "abcd"),
        case("250 tokens for 1,000 letters", 3.2, 250, "word" * 250),
        case("café has five bytes", 2.0, 3, "café"),
        case("λόγος has ten", 1.5, 2, "λόγος"),
        case("a line end is a byte, too", 2.5, 4, " the end\n"),
    ],
    hidden_cases=_hidden,
    hints=[
        "What did the whole text cost, in nats? The loss is a mean over tokens.",
        "A nat is 1 / ln 2 = 1.44 bits.",
        "len(text) counts characters; len(text.encode()) counts bytes.",
    ],
    tolerance=Tolerance(2e-6),  # float32
)


bits_per_byte.variant(price_of_the_text)
bits_per_byte.slips(
    price_of_the_text,
    {
        "nats / math.log(2) → nats": "That is in nats per byte: divide by ln 2.",
        "text.encode() → text.strip().encode()": "You leave out blanks and line ends around the text. They are bytes "
        "of it.",
        ".encode() → ": "You count characters. é is one character but two bytes.",
        "nats / math.log(2) → nats * math.log(2)": "You multiply by ln 2. A bit is only 0.69 nats, so the number of "
        "bits is *larger*: divide.",
        "return bits / → return bits / 8 /": "You divide by 8, too. That is the price per bit of the text: return the "
        "price per byte.",
        "loss * tokens → loss / tokens ;; bits / len → bits * len": "Tokens and bytes are swapped.",
        " * tokens →  ;;  / len(text.encode()) → ": "That is bits per token, which depends on the tokenizer.",
        "bits / len(text.encode()) → 2 ** (bits / len(text.encode()))": "You return the perplexity per byte. Return "
        "its logarithm to base 2.",
        " * tokens → ": "The loss is a mean over tokens: multiply by their number before you divide by bytes.",
        " / len(text.encode()) → ": "You return the bits of the whole text. Divide by its bytes.",
    },
)
