"""The exercise on the probability of a whole text."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise

COIN = "lambda past: [0.25, 0.75]"
ONE_BACK = "lambda past: [0.9, 0.1] if past and past[-1] == 0 else [0.3, 0.7]"
TABLE = (
    "{(): [0.5, 0.5], (0,): [0.25, 0.75], (1,): [1.0, 0.0], (0, 1): [0.125, 0.875], (1, 0): [0.6, 0.4], "
    "(1, 1): [0.9, 0.1], (0, 1, 1): [0.7, 0.3]}.get"
)
STRICT = "lambda past: [0.5, 0.25, 0.25, 0.0] if past == tuple(range(len(past))) else [0.1, 0.2, 0.3, 0.4]"
FIRST_DECIDES = "lambda past: [0.5, 0.3, 0.2] if not past else [0.7, 0.2, 0.1] if past[0] == 0 else [0.1, 0.1, 0.8]"
CERTAIN = "lambda past: [0.0, 1.0, 0.0] if sum(past) % 2 == 0 else [0.5, 0.0, 0.5]"


def word_by_word(next_probabilities: Callable[[tuple[int, ...]], list[float]], text: list[int]) -> float:
    total = 0.0
    for t, word in enumerate(text):
        p = next_probabilities(tuple(text[:t]))[word]
        total += math.log(p) if p else -math.inf
    return total


def _asked(name: str, model: str, text: list[int] | str) -> Case:
    return script(name, f"text_log_probability({model}, {text})")


def _hidden(random: Random) -> list[Case]:
    cases = [
        _asked("one word", FIRST_DECIDES, [2]),
        *(_asked("the whole past", *each) for each in ((STRICT, [0, 1, 2, 2, 3]), (FIRST_DECIDES, [0, 0, 1, 2, 2]))),
        _asked("the whole past", "lambda past: [1 / (2 + len(past)), 1 - 1 / (2 + len(past))]", [0, 1, 1, 0, 1, 0, 0]),
        *(_asked("impossible words", *each) for each in ((CERTAIN, [1, 0, 2, 1]), (STRICT, [3]))),
        _asked("a sure thing", "lambda past: [0.0, 1.0]", [1, 1, 1]),
        _asked("an empty text", CERTAIN, []),
        *(
            _asked("long texts", *each)
            for each in ((ONE_BACK, "[0, 1] * 3000"), ("lambda past: [1e-30, 1.0]", "[0, 0, 1]"))
        ),
    ]
    for words in (2, 3, 5):
        shares = [random.uniform(0.1, 1.0) for _ in range(2 * words)]
        rows = [[share / sum(part) for share in part] for part in (shares[:words], shares[words:])]
        text = [random.randrange(words) for _ in range(random.randint(4, 9))]
        cases.append(_asked("other models", f"lambda past: {rows}[len(past) % 2]", text))
        cases.append(_asked("other models", f"lambda past: {rows}[bool(past) and past[0] == past[-1]]", text))
    return cases


text_log_probability = Exercise(
    "text_log_probability",
    points=2,
    minutes=6,
    difficulty=2,
    reference=word_by_word,
    cases=[
        _asked("a coin", COIN, [0, 1, 1]),
        _asked("a model that looks one word back", ONE_BACK, [0, 0, 1, 1, 0]),
        _asked("a table of pasts", TABLE, [0, 1, 1]),
        _asked("a word that cannot come", TABLE, [1, 1]),
        _asked("the empty text", COIN, []),
        _asked("2,000 words of 0.01", "lambda past: [0.01, 0.99]", "[0] * 2000"),
    ],
    hidden_cases=_hidden,
    hints=[
        "For each place t of the text: call the model with tuple(text[:t]), and take the entry of text[t].",
        "The logarithm of a product is the sum of the logarithms. Take them before anything can underflow.",
        "math.log(0) raises. A word of probability 0 makes the whole text impossible: −math.inf.",
    ],
    tolerance=Tolerance(1e-4, 1e-9),  # a sum of thousands of numbers in float32
)


@text_log_probability.variant
def in_single_precision(next_probabilities: Callable[[tuple[int, ...]], list[float]], text: list[int]) -> Tensor:
    total = torch.zeros(())
    for t, word in enumerate(text):
        total += torch.tensor(next_probabilities(tuple(text[:t]))[word]).log()
    return total


text_log_probability.variant(word_by_word)
text_log_probability.slips(
    word_by_word,
    {
        "total = 0.0 → total = 1.0 ;; total += math.log(p) if p else -math.inf → total *= p ;; return total → return "
        "math.log(total) if total else -math.inf": "You multiply first. A product of a thousand small factors "
        "underflows to 0, and its logarithm is −∞. Add logarithms.",
        "math.log(p) if p else -math.inf → math.log(max(p, 1e-12))": "You lift a probability of 0 to a small number. A "
        "word that cannot come makes the text impossible: −math.inf.",
        "text[:t] → text[: t + 1]": "A word is predicted from the words before it; your past includes the word itself.",
        "text[:t] → text[max(t - 1, 0) : t]": "You pass the model one word. Pass it the whole past.",
        "tuple(text[:t]) → ()": "You pass the model the empty past for each word. Pass it the words before this one.",
        "total += → if t: total +=": "You leave out the first word. It has a probability, too: the one after the empty "
        "context, ().",
        "return total → return total / max(len(text), 1)": "You average. The log-probability of a text is the sum over "
        "its words.",
        "return total → return total / math.log(2)": "You return bits. Return nats: use the natural logarithm.",
        "total += → total -=": "You return the surprise, −ln p. A log-probability is never positive.",
        "math.log(p) if p else -math.inf → math.log(p)": "You raise an error for an impossible word. It makes the text "
        "impossible: return −∞.",
        "total = 0.0 → total = 1.0 ;; total += math.log(p) if p else -math.inf → total *= p": "You return the "
        "probability. Return its logarithm.",
        "else -math.inf → else 0.0": "You leave out impossible words. One of them makes the whole text impossible.",
        "tuple(text[:t]) → text[:t]": "You pass the model a list. It needs a tuple: tuple(text[:t]).",
    },
)
