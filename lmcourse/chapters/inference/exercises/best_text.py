"""The exercise on the likeliest text of two tokens, which may begin with an unlikely token."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise

First = dict[str, float]
Then = dict[str, dict[str, float]]


def _by_enumeration(first: First, then: Then) -> tuple[str, float]:
    """The likeliest text and its exact probability; among equals the alphabetically first."""
    texts = [
        (-Fraction(p) * Fraction(q), start + end)
        for start, p in first.items()
        for end, q in then.get(start, {}).items()
    ]
    if not texts:
        raise ValueError("there is no text of two tokens")
    least, text = min(texts)
    return text, float(-least)


TOY_THEN = {"a": {"c": 0.35, "d": 0.33, "e": 0.32}, "b": {"c": 0.9, "d": 0.05, "e": 0.05}}
OTHER_THEN = {"p": {"x": 1.0}, "q": {"x": 0.5, "y": 0.3, "z": 0.2}, "r": {"x": 0.2, "z": 0.8}}


TWO_WAYS = {"a": {"bc": 0.6, "x": 0.4}, "ab": {"c": 0.5, "y": 0.5}}
"""Both beginnings lead to "abc"; the likelier pair comes first."""
LESS_TOGETHER = {"ab": {"c": 0.5, "d": 0.5}, "a": {"bc": 0.6, "e": 0.4}, "c": {"f": 1.0}}
"""Two pairs make "abc"; together they are likelier than "cf", but each alone is not."""


def _drawn(random: Random) -> tuple[First, Then]:
    """Random probabilities: the likeliest first token has three endings, the best text begins with the second
    likeliest."""
    often, third, rare = random.sample("abcdefgh", 3)
    p, q, r = random.sample("pqrstuvw", 3)
    spread, sure = random.randint(380, 420) / 1000, random.randint(850, 950) / 1000
    p_often, p_third = random.randint(500, 540), random.randint(370, 420)
    first = {often: p_often / 1000, third: p_third / 1000, rare: (1000 - p_often - p_third) / 1000}
    many = {p: spread, q: 0.31, r: 0.69 - spread}
    return first, {often: many, third: {q: sure, p: 1 - sure}, rare: {r: 1.0}}


def _hidden(random: Random) -> list[Case]:
    a, b = {"p": 0.5, "q": 0.25, "r": 0.25}, {"p": 1.0}
    return [
        case("greedy is right", {"x": 0.75, "y": 0.25}, {"x": {"p": 0.75, "q": 0.25}, "y": a}),
        edge(case("ties", {"z": 0.5, "y": 0.5}, {"y": {"q": 0.5, "p": 0.5}, "z": {"a": 0.5, "b": 0.5}})),
        edge(case("ties", {"y": 0.25, "x": 0.5, "w": 0.25}, {"x": a, "y": b, "w": b})),
        edge(case("tokens that nothing follows", {"x": 0.5, "y": 0.3, "z": 0.2}, {"x": {}, "z": a})),
        edge(case("tokens that nothing follows", {"x": 0.5, "y": 0.5}, {"x": {}})),
        edge(case("tokens that nothing follows", {}, {})),
        case("longer tokens", {"the ": 0.3, "a ": 0.7}, {"the ": {"cat": 1.0}, "a ": {"cat": 0.4, "dog": 0.41}}),
        case("longer tokens", {"a": 0.5, "ab": 0.5}, {"a": {"bc": 1.0}, "ab": {"b": 1.0}}),
        edge(case("an impossible beginning", {"x": 0.0, "y": 1.0}, {"x": b, "y": {"p": 0.5, "q": 0.4, "r": 0.1}})),
        edge(case("only impossible pairs", {"x": 0.0, "w": 0.0}, {"x": b, "w": {"q": 1.0}})),
        edge(
            case("a beginning that is not listed", {"y": 0.5, "z": 0.5}, {"x": b, "y": a, "z": {"s": 0.75, "t": 0.25}})
        ),
        case("a text that two pairs make", {"ab": 0.4, "a": 0.35, "c": 0.25}, LESS_TOGETHER),
        *(case("other tables", *_drawn(random)) for _ in range(4)),
    ]


best_text = Exercise(
    "best_text",
    points=2,
    minutes=6,
    difficulty=1,
    reference=_by_enumeration,
    cases=[
        case("the table above", {"a": 0.6, "b": 0.4}, TOY_THEN),
        case("another table", {"p": 0.25, "q": 0.4, "r": 0.35}, OTHER_THEN),
        case("a beginning that is sure", {"x": 1.0}, {"x": {"p": 0.5, "q": 0.3, "r": 0.2}}),
        case("a sure end, an unlikely beginning", {"x": 0.9, "y": 0.1}, {"x": {"p": 0.6, "q": 0.4}, "y": {"r": 1.0}}),
        edge(case("a tie", {"x": 0.5, "y": 0.5}, {"x": {"b": 0.5, "a": 0.5}, "y": {"q": 0.5, "p": 0.5}})),
        edge(case("nothing follows the likeliest", {"x": 0.8, "y": 0.2}, {"y": {"p": 0.75, "q": 0.25}})),
        case("two pairs that make the same text", {"a": 0.5, "ab": 0.5}, TWO_WAYS),
        case("a tie of longer tokens", {"a": 0.5, "ab": 0.5}, {"a": {"bz": 0.5, "c": 0.5}, "ab": {"b": 0.5, "d": 0.5}}),
        case("more beginnings than needed", {"y": 1.0}, {"x": {"p": 1.0}, "y": {"q": 0.75, "r": 0.25}}),
        edge(case("a pair of probability 0", {"x": 1.0}, {"x": {"p": 0.0}})),
        case("no text at all", {"x": 1.0}, {}),
    ],
    hidden_cases=_hidden,
    hints=[
        "Do not choose before you have seen all pairs.",
        "The probability of the pair is first[x] · then[x][y]. Two loops, and `then.get(x, {})` for a token that "
        "nothing follows.",
        "With (−probability, text) for each pair, `min` finds the likeliest text, and among equals the alphabetically "
        "first.",
    ],
)


@best_text.variant
def with_a_dict(first: dict[str, float], then: dict[str, dict[str, float]]) -> list[str | float]:
    joint: dict[str, float] = {}
    for x, p in first.items():
        for y, q in then.get(x, {}).items():
            joint[x + y] = max(joint.get(x + y, 0.0), p * q)
    if len(joint) == 0:
        raise ValueError("there is no text of two tokens")
    text = sorted(joint, key=lambda text: (-joint[text], text))[0]
    return [text, joint[text]]


@best_text.variant
def all_pairs(first: dict[str, float], then: dict[str, dict[str, float]]) -> tuple[str, float]:
    pairs = [(-p * q, x + y) for x, p in first.items() for y, q in then.get(x, {}).items()]
    if not pairs:
        raise ValueError("there is no text of two tokens")
    score, text = min(pairs)
    return text, -score


best_text.slips(
    all_pairs,
    {
        "in first.items() → in [max(sorted((x, p) for x, p in first.items() if then.get(x)), key=lambda item: item[1], "
        'default=("", 0))]': "You take the likeliest first token, and then the likeliest after it. The likeliest "
        "*pair* may begin with another token.",
        "in first.items() → in [max(sorted(first.items()), key=lambda item: item[1])] ;; then.get(x, {}) → then.get(x, "
        '{"": 1.0} if then else {})': "You take the likeliest first token, although nothing may follow it. Look at "
        "all pairs before you choose.",
        "(-p * q, x + y) → (-q, x + y, p * q) ;; score, text = → _, text, p = ;; -score → p": "You take the likeliest "
        "second token of all. It does not help if its first token is unlikely.",
        "-p * q → -(p + q)": "You add the two probabilities. The probability of both tokens is their product.",
        "-p * q → -(p + q) / 2": "You take the mean of the two probabilities. The probability of both tokens is their "
        "product.",
        "if not pairs: → pairs += [(-p, x) for x, p in first.items() if not then.get(x)]\n    if not pairs:": "You "
        "return a token that nothing follows as a text. Only pairs count; without a pair, raise ValueError.",
        "return text, -score → return -score, text": "You return the probability first. Return the text, and then its "
        "probability.",
        "min(pairs) → max(pairs, key=lambda pair: (-pair[0], pair[1]))": "Of equally likely texts you return the one "
        "that comes last in the alphabet.",
        "min(pairs) → min(pairs, key=lambda pair: pair[0])": "Of equally likely texts you return the first one you "
        "find. Return the one that comes first in the alphabet.",
        "{}).items()] → {}).items() if p * q]": "You treat a pair of probability 0 as no pair. If there is no better "
        "one, return it.",
        "for x, p in first.items() for y, q in then.get(x, {}).items() → for x in then for y, q in then[x].items() ;; "
        "-p * q → -first[x] * q": "You go through `then`, and look up a token that `first` does not have. Go through "
        "`first`.",
        "x + y) → x + y, (x, y)) ;; score, text = → score, _, text =": "You return the two tokens as a pair. Join "
        "them to one text.",
        "x + y) → x + y, -q) ;; score, text = → _, text, score =": "The text is right, but you return the probability "
        "of its second token. Multiply it by that of the first.",
        "x + y) → x, y) ;; score, text = → score, x, y = ;; return text → return x + y": "Of equally likely pairs you "
        "compare the first tokens, then the second ones. Compare the joined texts.",
        "return text, -score → from math import log\n    return text, log(-score)": "The text is right, but you "
        "return the logarithm of its probability.",
        'raise ValueError("there is no text of two tokens") → return "", 0.0': "Without any pair you return a result. "
        "Raise ValueError.",
    },
)


best_text.slips(
    with_a_dict,
    {
        "max(joint.get(x + y, 0.0), p * q) → joint.get(x + y, 0.0) + p * q": "You add the probabilities of pairs that "
        "make the same text. The task asks for the likeliest single pair.",
        "max(joint.get(x + y, 0.0), p * q) → p * q": "If two pairs make the same text, you keep the one that comes "
        "last. Keep the likelier one.",
    },
)
