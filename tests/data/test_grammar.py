"""Compare a grammar's probabilities and entropy with all its texts, closed forms, and generated texts."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcourse.data.grammar import Grammar, Production

FINITE = {
    "s": [Production(0.5, "a", ("t", "u")), Production(0.3, "b", ("t",)), Production(0.2, "c")],
    "t": [Production(0.25, "x"), Production(0.75, "yy", ("u",))],
    "u": [Production(0.9, "é"), Production(0.1, "zz")],
}
"""A language with a few texts, a symbol in two places, and a letter of two bytes."""

BRACKETS = {"s": [Production(0.2, "(", ("s", "s")), Production(0.8, ".")]}
"""A language in which a bracket contains two symbols."""


def every_text(rules: dict[str, list[Production]], stack: tuple[str, ...], least: float) -> Iterator[tuple[str, float]]:
    """Yield all texts of a language whose probability stays above `least`, by following every choice."""
    if not stack:
        yield "", 1.0
        return
    for rule in rules[stack[0]]:
        if rule.probability >= least:
            for rest, p in every_text(rules, (*rule.next_symbols, *stack[1:]), least / rule.probability):
                yield rule.text + rest, rule.probability * p


@pytest.mark.parametrize(
    ("rules", "least", "tolerance"), [(FINITE, 0.0, 1e-12), (BRACKETS, 1e-7, 2e-3)], ids=["finite", "brackets"]
)
def test_probabilities_of_all_texts_sum_to_one(
    rules: dict[str, list[Production]], least: float, tolerance: float
) -> None:
    grammar = Grammar(rules, "s")
    texts = list(every_text(rules, ("s",), least))
    assert len({text for text, _ in texts}) == len(texts), "a text with two derivations"
    for text, probability in texts:
        assert grammar.log_probability(text) == pytest.approx(math.log(probability), abs=1e-9)
    entropy = -math.fsum(p * math.log(p) for _, p in texts)
    length = math.fsum(p * len(text.encode()) for text, p in texts)
    assert math.fsum(p for _, p in texts) == pytest.approx(1, abs=tolerance)
    assert grammar.entropy == pytest.approx(entropy, rel=10 * tolerance)
    assert grammar.entropy_per_byte == pytest.approx(entropy / length, rel=10 * tolerance)


@given(stop=st.floats(0.05, 0.95))
def test_entropy_of_a_geometric_distribution_is_exact(stop: float) -> None:
    """The entropy of a geometric variable is h(p)/p, its mean 1/p (any textbook of information theory)."""
    grammar = Grammar({"s": [Production(stop, "H"), Production(1 - stop, "T", ("s",))]}, "s")
    coin = -stop * math.log(stop) - (1 - stop) * math.log(1 - stop)
    assert grammar.entropy == pytest.approx(coin / stop)
    assert grammar.expected(lambda _: 1) == pytest.approx(1 / stop)
    assert grammar.entropy_per_byte == pytest.approx(coin)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50)
def test_generated_texts_can_be_parsed(seed: int) -> None:
    grammar = Grammar(BRACKETS, "s")
    text = grammar.generate(random.Random(seed))
    assert "".join(rule.text for rule in grammar.parse(text)) == text
    expected = text.count("(") * math.log(0.2) + text.count(".") * math.log(0.8)
    assert grammar.log_probability(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends too early, after 0"),
        ("ax", "ends too early, after 2"),
        ("aq", "leaves the language at 'q', after 1"),
        ("cq", "leaves the language at 'q', after 1"),
    ],
)
def test_a_text_outside_the_language_is_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Grammar(FINITE, "s").log_probability(text)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"s": [Production(0.5, "a")]}, "probabilities of s"),
        ({"s": [Production(1.0, "a"), Production(0.0, "b")]}, "probabilities of s"),
        ({"s": [Production(1.2, "a"), Production(-0.2, "b")]}, "probabilities of s"),
        ({"s": [Production(1.0, "a", ("t",))]}, "no rule for t"),
        ({"s": [Production(1.0, "a", ("t",))], "t": []}, "no rule for t"),
        ({"t": [Production(1.0, "a")]}, "no rule for s"),
        ({"s": [Production(1.0, "")]}, "has an empty text"),
        (
            {"s": [Production(0.3, "cat"), Production(0.3, "b"), Production(0.4, "cats")]},
            "begin the same, so a text could not be parsed: 'cat' and 'cats'",
        ),
        ({"s": [Production(0.5, "a"), Production(0.5, "a", ("s",))]}, "begin the same"),
        ({"s": [Production(0.5, "("), Production(0.5, "[", ("s", "s"))]}, "length of this grammar's texts is infinite"),
        ({"s": [Production(1.0, "a", ("s",))]}, "length of this grammar's texts is infinite"),
    ],
)
def test_invalid_grammars_are_rejected(rules: dict[str, list[Production]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Grammar(rules, "s")
