"""Unambiguous probabilistic context-free grammars (PCFG), with exact probabilities and entropy of their texts.

A text is generated with a stack of symbols, which at first has one symbol. In each step the top symbol is removed and
one of its rules is sampled. The rule's `text` is written, and its `next_symbols` go on the stack, the first one on top.
The text ends when the stack is empty. A symbol deep in the stack stands for a part that must come much later: a closing
bracket, or the verb of a noun.

Two conditions make it possible to recover the rules from a text (simple grammars: Korenjak and Hopcroft, 1966): every
rule writes some text, and of two rules of a symbol, neither text is the beginning of the other. So at most one rule of
the top symbol fits the text at each point. Therefore

    ln P(text) = Σ ln p(rule)      for all rules that wrote the text, and
    p(rule)    = P(rule's text | all text before it).

The entropy of a symbol is the entropy of the choice among its rules plus the entropy of the symbols that follow,

    H_A = Σ_r p_r (−ln p_r + Σ_{B in r.next_symbols} H_B),      that is      H = (I − M)⁻¹ e,

where M_AB is the expected number of Bs in a rule of A, and e_A = −Σ_r p_r ln p_r (Soule, 1974, "Entropies of
probabilistic grammars"). Expected lengths solve the same equations with the rules' bytes in place of −ln p_r. All
numbers are exact, not estimates.
"""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
from jaxtyping import Float
from numpy import ndarray


@dataclass(frozen=True)
class Production:
    """A production of the grammar: one way to rewrite a symbol.

    Attributes:
        probability: the probability of this production among all productions of its symbol; above 0.
        text: the text that it writes.
        next_symbols: the symbols that follow the text, in this order.
    """

    probability: float
    text: str
    next_symbols: tuple[str, ...] = ()


class Grammar:
    """A language in which every text has only one derivation, and so a known probability.

    Texts are sampled independently, and each shows where it ends, so a stream of texts can be parsed, too. A model that
    gives the text x the probability q(x) has a loss of −ln q(x) nats; the mean is Σ p(x) (−ln q(x)) = H + KL(p‖q) ≥ H
    (Gibbs' inequality). So its mean loss per byte for a long stream of *new* texts cannot be below `entropy_per_byte`.
    The loss can be lower for training texts, which the model may remember, and by chance for a short sample; it is
    fairer to compare with −`log_probability` of the sample. Raises ValueError if probabilities are not positive or do
    not sum to one, a symbol has no rules, the text of a rule is empty, two rules of a symbol begin the same, or the
    expected length of texts is infinite.

    Args:
        rules: one or more rules for every symbol.
        start: the symbol that a text begins with.
    """

    def __init__(self, rules: Mapping[str, Sequence[Production]], start: str) -> None:
        self.rules = {symbol: tuple(choices) for symbol, choices in rules.items()}
        self.start = start
        _check(self.rules, start)
        self._cumulative = {
            symbol: list(accumulate(rule.probability for rule in choices[:-1]))
            for symbol, choices in self.rules.items()
        }
        if max(abs(np.linalg.eigvals(self._children()))) >= 1 - 1e-9:
            why = "a symbol leads to one or more others on average"
            raise ValueError(f"the expected length of this grammar's texts is infinite: {why}")

    def generate(self, source: random.Random) -> str:
        """Generate one text. The same random generator gives the same texts on every machine."""
        written, stack = [], [self.start]
        while stack:
            symbol = stack.pop()
            rule = self.rules[symbol][bisect(self._cumulative[symbol], source.random())]
            written.append(rule.text)
            stack.extend(reversed(rule.next_symbols))
        return "".join(written)

    def parse(self, text: str) -> Iterator[Production]:
        """Return the rules that wrote a text, or several texts one after the other, in order.

        A text that does not belong to the language raises ValueError, which says where it fails.
        """
        position, stack = 0, [self.start]
        while stack:
            rule = next((r for r in self.rules[stack.pop()] if text.startswith(r.text, position)), None)
            if rule is None:
                what = "ends too early" if position == len(text) else f"leaves the language at {text[position:][:20]!r}"
                raise ValueError(f"the text {what}, after {position} characters")
            yield rule
            position += len(rule.text)
            stack.extend(reversed(rule.next_symbols))
            if not stack and position < len(text):
                stack.append(self.start)

    def log_probability(self, text: str) -> float:
        """Return the log-probability in nats of a text, or of several; errors as in `parse`."""
        return math.fsum(math.log(rule.probability) for rule in self.parse(text))

    def expected(self, value: Callable[[Production], float]) -> float:
        """Return the mean over all texts of the sum of a value over the rules that wrote the text.

        For each symbol this is the expected value of its rules, times the mean number of times that it is rewritten.
        """
        each = [sum(rule.probability * value(rule) for rule in choices) for choices in self.rules.values()]
        return float(self._visits @ np.array(each))

    @cached_property
    def entropy(self) -> float:
        """The entropy of one text in nats: the mean of −ln P."""
        return self.expected(lambda rule: -math.log(rule.probability))

    @cached_property
    def entropy_per_byte(self) -> float:
        """Nats per UTF-8 byte of a long stream of texts: the entropy of a text divided by its expected length.

        This is the ratio of the means, not the mean of the ratios, because long texts have more bytes in a stream.
        Divide by ln 2 for bits.
        """
        return self.entropy / self.expected(lambda rule: len(rule.text.encode()))

    @cached_property
    def _visits(self) -> Float[ndarray, " symbols"]:
        """Return the mean number of times that a text rewrites each symbol: v = s + vM, with s = 1 for the start."""
        start = np.array([symbol == self.start for symbol in self.rules], dtype=float)
        return np.linalg.solve((np.eye(len(self.rules)) - self._children()).T, start)

    def _children(self) -> Float[ndarray, "symbols symbols"]:
        """Return the matrix M: the average number of each column's symbol in one rule of each row's symbol."""
        place = {symbol: index for index, symbol in enumerate(self.rules)}
        children = np.zeros((len(place), len(place)))
        for symbol, choices in self.rules.items():
            for rule in choices:
                for child in rule.next_symbols:
                    children[place[symbol], place[child]] += rule.probability
        return children


def _check(rules: Mapping[str, tuple[Production, ...]], start: str) -> None:
    used = {start, *(child for choices in rules.values() for rule in choices for child in rule.next_symbols)}
    if missing := sorted(symbol for symbol in used if not rules.get(symbol)):
        raise ValueError(f"there is no rule for {', '.join(missing)}")
    for symbol, choices in rules.items():
        probabilities = [rule.probability for rule in choices]
        if min(probabilities) <= 0 or not math.isclose(math.fsum(probabilities), 1.0):
            raise ValueError(
                f"the probabilities of {symbol} are {probabilities}: each must be above 0, and their sum must be 1"
            )
        texts = sorted(rule.text for rule in choices)
        if not texts[0]:
            raise ValueError(f"a rule of {symbol} has an empty text, so its use could not be recognised in a text")
        # In sorted order a text comes directly before the texts that begin with it, so comparing neighbours is enough.
        for first, second in pairwise(texts):
            if second.startswith(first):
                raise ValueError(
                    f"two rules of {symbol} begin the same, so a text could not be parsed: {first!r} and {second!r}"
                )
