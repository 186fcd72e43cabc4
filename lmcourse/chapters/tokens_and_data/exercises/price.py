"""The exercise on what a sentence costs in another language."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import torch

from lmcourse.data.recorded_tokens import SENTENCE_TOKENS
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise

Prices = dict[str, float]


def _reference(tokens: dict[str, int], base: str) -> Prices:
    return {language: float(Fraction(count, tokens[base])) for language, count in tokens.items()}


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("a base that is not English", SENTENCE_TOKENS["GPT-4"], "Burmese"),
        case("a base in the middle", {"a": 10, "b": 4, "c": 1}, "b"),
        case("one language", {"x": 17}, "x"),
        case("English is not the base", {"Latin": 15, "English": 20, "German": 30}, "German"),
        case("a base that is missing", {"English": 13, "German": 16}, "Latin"),
        case("equal prices", {"a": 3, "b": 3}, "b"),
    ]
    for _ in range(3):
        names, counts = random.sample(["de", "en", "el", "my", "hi", "sw"], 4), random.sample(range(5, 400), 4)
        table = dict(zip(names, sorted(counts), strict=True))
        cases.append(case("other tables", table, names[-1]))
    return cases


relative_price = Exercise(
    "relative_price",
    points=1,
    minutes=3,
    difficulty=1,
    reference=_reference,
    cases=[
        case("three languages", {"English": 20, "German": 30, "Greek": 70}, "English"),
        case("GPT-4", SENTENCE_TOKENS["GPT-4"], "English"),
        case("German as the base", {"Greek": 75, "Latin": 15, "English": 20, "German": 30}, "German"),
        case("the base alone", {"English": 33}, "English"),
        case("a base that is not in the table", {"English": 33}, "Latin"),
    ],
    hidden_cases=_hidden,
    hints=["How many times the base's tokens does each need?", "`{name: count / tokens[base] for name, count in …}`"],
)


@relative_price.misconception("You divide the base by the others. A larger number should mean more expensive.")
def inverse(tokens: dict[str, int], base: str) -> Prices:
    return {name: tokens[base] / count for name, count in tokens.items()}


@relative_price.misconception("You return a difference. Return a factor.")
def difference(tokens: dict[str, int], base: str) -> dict[str, int]:
    return {name: count - tokens[base] for name, count in tokens.items()}


@relative_price.misconception("You divide by the tokens of all languages together. Divide by the base.")
def share_of_all(tokens: dict[str, int], base: str) -> Prices:
    return {name: count / (sum(tokens.values()) if base in tokens else tokens[base]) for name, count in tokens.items()}


@relative_price.misconception("You round the factors. Do not round: 1.8 is not 2.")
def rounded(tokens: dict[str, int], base: str) -> Prices:
    return {name: float(round(count / tokens[base])) for name, count in tokens.items()}


@relative_price.misconception("You cut off the fraction, as // does. Divide with /.")
def floored(tokens: dict[str, int], base: str) -> dict[str, int]:
    return {name: count // tokens[base] for name, count in tokens.items()}


@relative_price.misconception("You leave out the base. It pays 1.0 and is part of the answer.")
def base_left_out(tokens: dict[str, int], base: str) -> Prices:
    return {name: count / tokens[base] for name, count in tokens.items() if name != base}


@relative_price.misconception("You return percentages. Return factors.")
def percent(tokens: dict[str, int], base: str) -> Prices:
    return {name: 100 * count / tokens[base] for name, count in tokens.items()}


@relative_price.misconception("You compare with the cheapest language. Compare with the base.")
def with_the_cheapest(tokens: dict[str, int], base: str) -> Prices:
    return {name: count / min(tokens[base], *tokens.values()) for name, count in tokens.items()}


@relative_price.misconception("You divide by the first language of the table. Divide by the base.")
def with_the_first(tokens: dict[str, int], base: str) -> Prices:
    first = tokens[base] and next(iter(tokens.values()))
    return {name: count / first for name, count in tokens.items()}


@relative_price.misconception("You compare with English, whatever the base is.")
def with_english(tokens: dict[str, int], base: str) -> Prices:
    return {name: count / tokens.get("English", tokens[base]) for name, count in tokens.items()}


@relative_price.variant
def in_a_loop(tokens: dict[str, int], base: str) -> dict[str, float]:
    reference = tokens[base]
    prices = {}
    for language in tokens:
        prices[language] = tokens[language] / reference
    return prices


@relative_price.variant
def with_numpy(tokens: dict[str, int], base: str) -> dict[str, float]:
    counts = np.array(list(tokens.values()), dtype=float)
    return dict(zip(tokens, counts / tokens[base], strict=True))


@relative_price.variant
def with_torch(tokens: dict[str, int], base: str) -> dict[str, float]:
    counts = torch.tensor(list(tokens.values()), dtype=torch.float64)
    return dict(zip(tokens, (counts / tokens[base]).tolist(), strict=True))
