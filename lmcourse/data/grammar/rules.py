"""An unambiguous probabilistic context-free grammar (PCFG): probability and entropy of its texts are exact.

A text is written with a stack of symbols, at first one. The symbol on top is taken away, one of its rules is drawn, the
rule's `text` is written, and its symbols `then` go on the stack, the first one on top. The text ends when the stack is
empty. A symbol deep in the stack is what must come much later: a closing bracket, the verb that a noun waits for.

Two conditions make the way back from a text to the rules unique (simple grammars: Korenjak and Hopcroft, 1966): every
rule writes something, and no two rules of a symbol begin alike (neither text is the beginning of the other). A reader
knows the symbol on top, and at most one of its rules fits what stands there. Therefore

    ln P(text) = Σ ln p(rule)      over the rules that wrote it, and
    p(rule)    = P(what it writes | all text before).

The entropy of a symbol is that of the choice among its rules plus that of the symbols they lead to,

    H_A = Σ_r p_r (−ln p_r + Σ_{B in r.next_symbols} H_B),      that is      H = (I − M)⁻¹ e,

with M_AB the expected number of Bs in a rule of A, and e_A = −Σ_r p_r ln p_r (Soule, 1974, "Entropies of probabilistic
grammars"). Expected lengths solve the same equations with the rules' bytes in place of −ln p_r. Nothing is estimated.
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
        probability: of this production among those of its symbol, more than 0.
        text: what it writes.
        next_symbols: the symbols that must be written after it, in this order.
    """

    probability: float
    text: str
    next_symbols: tuple[str, ...] = ()


class Grammar:
    """A language in which every text has one derivation, and so a known probability.

    Texts are drawn independently of each other, and each shows where it ends, so a stream of them can be read too. A
    model that gives the text x the probability q(x) pays −ln q(x) nats, on average Σ p(x) (−ln q(x)) = H + KL(p‖q) ≥ H
    (Gibbs' inequality): its mean loss per byte over a long stream of *new* texts cannot be below `entropy_per_byte`. It
    can on texts it was trained on, which it may remember, and by chance on a short sample, whose own −`log_probability`
    is then the fairer thing to compare with.

    Args:
        rules: of every symbol, one or more.
        start: the symbol that a text begins with.

    Raises:
        ValueError: probabilities that are none or do not sum to one, a symbol without rules, a rule that writes
            nothing, two rules of a symbol that begin alike, or texts of infinite expected length.
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
            raise ValueError("the texts of this grammar never end: on average each symbol leads to at least one more")

    def generate(self, source: random.Random) -> str:
        """Generate one text. The same source of randomness gives the same texts on every machine."""
        written, stack = [], [self.start]
        while stack:
            symbol = stack.pop()
            rule = self.rules[symbol][bisect(self._cumulative[symbol], source.random())]
            written.append(rule.text)
            stack.extend(reversed(rule.next_symbols))
        return "".join(written)

    def parse(self, text: str) -> Iterator[Production]:
        """Return the rules that wrote a text, or several texts one after the other, in order.

        Raises:
            ValueError: this is no text of the language; the message says up to where it was.
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
        """Return the log-probability of a text, or of several one after the other, in nats.

        Raises:
            ValueError: this is no text of the language.
        """
        return math.fsum(math.log(rule.probability) for rule in self.parse(text))

    def expected(self, value: Callable[[Production], float]) -> float:
        """The mean over texts of the sum of a value over the rules that wrote the text.

        That is the value expected where a symbol is rewritten, times how often the symbol is: row `start` of (I − M)⁻¹.
        """
        each = [sum(rule.probability * value(rule) for rule in choices) for choices in self.rules.values()]
        return float(self._visits @ np.array(each))

    @cached_property
    def entropy(self) -> float:
        """Entropy of one text in nats: the mean of −ln P."""
        return self.expected(lambda rule: -math.log(rule.probability))

    @cached_property
    def entropy_per_byte(self) -> float:
        """Nats per UTF-8 byte of a long stream of texts: the entropy of a text over its expected length.

        The ratio of the means, not the mean of the ratios: a long text counts for as many bytes as it has. Divide by
        ln 2 for bits.
        """
        return self.entropy / self.expected(lambda rule: len(rule.text.encode()))

    @cached_property
    def _visits(self) -> Float[ndarray, " symbols"]:
        """Return how often a text rewrites each symbol on average: v = s + vM, where s is one at the start symbol."""
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
            raise ValueError(f"the probabilities of {symbol} are {probabilities}: each must be above 0, the sum 1")
        texts = sorted(rule.text for rule in choices)
        if not texts[0]:
            raise ValueError(f"a rule of {symbol} writes no text, so a text could not be parsed")
        # Sorted, a text stands before everything that begins with it: neighbours tell.
        for first, second in pairwise(texts):
            if second.startswith(first):
                raise ValueError(
                    f"two rules of {symbol} begin the same, so a text could not be parsed: {first!r} and {second!r}"
                )
