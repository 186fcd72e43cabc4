"""The exercise on the likeliest text of two tokens, which may begin with an unlikely token."""

from __future__ import annotations

import heapq
import itertools
import math
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


TOY_FIRST = {"a": 0.6, "b": 0.4}
TOY_THEN = {"a": {"c": 0.35, "d": 0.33, "e": 0.32}, "b": {"c": 0.9, "d": 0.05, "e": 0.05}}
OTHER_FIRST = {"p": 0.25, "q": 0.4, "r": 0.35}
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
        case("the table above", TOY_FIRST, TOY_THEN),
        case("another table", OTHER_FIRST, OTHER_THEN),
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
def in_two_loops(first: dict[str, float], then: dict[str, dict[str, float]]) -> tuple[str, float]:
    best, most = None, -1.0
    for x in sorted(first):
        if x not in then:
            continue
        for y in sorted(then[x]):
            p = first[x] * then[x][y]
            if p > most or (p == most and best is not None and x + y < best):
                best, most = x + y, p
    if best is None:
        raise ValueError("nothing")
    return best, most


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
def with_a_heap(first: dict[str, float], then: dict[str, dict[str, float]]) -> tuple[str, float]:
    pairs = itertools.chain.from_iterable(((x, y) for y in then[x]) for x in first if x in then)
    found = heapq.nsmallest(1, [(-(first[x] * then[x][y]), x + y) for x, y in pairs])
    if not found:
        raise ValueError("there are no texts of two tokens")
    return found[0][1], -found[0][0]


def _texts(first: First, then: Then) -> list[tuple[str, str, float, float]]:
    texts = [(x, y, p, q) for x, p in first.items() for y, q in then.get(x, {}).items()]
    if not texts:
        raise ValueError("there is no text of two tokens")
    return texts


def _best(scored: list[tuple[float, str]]) -> tuple[str, float]:
    score, text = min((-score, text) for score, text in scored)
    return text, -score


@best_text.misconception(
    "You take the likeliest first token, and then the likeliest after it. The likeliest *pair* may begin with another "
    "token."
)
def greedy(first: First, then: Then) -> tuple[str, float]:
    texts = _texts(first, then)
    start = min((-p, x) for x, _, p, _ in texts)[1]
    return _best([(p * q, x + y) for x, y, p, q in texts if x == start])


@best_text.misconception(
    "You take the likeliest first token, although nothing may follow it. Look at all pairs before you choose."
)
def greedy_and_stuck(first: First, then: Then) -> tuple[str, float]:
    _texts(first, then)
    start = min((-p, x) for x, p in first.items())[1]
    return _best([(first[start] * q, start + y) for y, q in then.get(start, {"": 1.0}).items()])


@best_text.misconception("You take the likeliest second token of all. It does not help if its first token is unlikely.")
def best_second(first: First, then: Then) -> tuple[str, float]:
    texts = _texts(first, then)
    _, text, p = min((-q, x + y, p * q) for x, y, p, q in texts)
    return text, p


@best_text.misconception("You add the two probabilities. The probability of both tokens is their product.")
def added(first: First, then: Then) -> tuple[str, float]:
    return _best([(p + q, x + y) for x, y, p, q in _texts(first, then)])


@best_text.misconception("You take the mean of the two probabilities. The probability of both tokens is their product.")
def averaged(first: First, then: Then) -> tuple[str, float]:
    return _best([((p + q) / 2, x + y) for x, y, p, q in _texts(first, then)])


@best_text.misconception(
    "You return a token that nothing follows as a text. Only pairs count; without a pair, raise ValueError."
)
def text_of_one(first: First, then: Then) -> tuple[str, float]:
    scored = [(p * q, x + y) for x, p in first.items() for y, q in then.get(x, {}).items()]
    return _best([*scored, *((p, x) for x, p in first.items() if not then.get(x))])


@best_text.misconception("You return the probability first. Return the text, and then its probability.")
def swapped(first: First, then: Then) -> tuple[float, str]:
    text, p = _by_enumeration(first, then)
    return p, text


@best_text.misconception("Of equally likely texts you return the one that comes last in the alphabet.")
def last_tie(first: First, then: Then) -> tuple[str, float]:
    p, text = max((p * q, x + y) for x, y, p, q in _texts(first, then))
    return text, p


@best_text.misconception(
    "Of equally likely texts you return the first one you find. Return the one that comes first in the alphabet."
)
def first_met(first: First, then: Then) -> tuple[str, float]:
    x, y, p, q = max(_texts(first, then), key=lambda text: text[2] * text[3])
    return x + y, p * q


@best_text.misconception(
    "You add the probabilities of pairs that make the same text. The task asks for the likeliest single pair."
)
def same_text_added(first: First, then: Then) -> tuple[str, float]:
    joint: dict[str, float] = {}
    for x, y, p, q in _texts(first, then):
        joint[x + y] = joint.get(x + y, 0.0) + p * q
    return _best([(p, text) for text, p in joint.items()])


@best_text.misconception("If two pairs make the same text, you keep the one that comes last. Keep the likelier one.")
def same_text_overwritten(first: First, then: Then) -> tuple[str, float]:
    joint = {x + y: p * q for x, y, p, q in _texts(first, then)}
    return _best([(p, text) for text, p in joint.items()])


@best_text.misconception("You treat a pair of probability 0 as no pair. If there is no better one, return it.")
def nothing_at_zero(first: First, then: Then) -> tuple[str, float]:
    return _best([(p * q, x + y) for x, y, p, q in _texts(first, then) if p * q] or _no_pairs())


def _no_pairs() -> list[tuple[float, str]]:
    raise ValueError("there is no text of two tokens")


@best_text.misconception("You go through `then`, and look up a token that `first` does not have. Go through `first`.")
def through_then(first: First, then: Then) -> tuple[str, float]:
    return _best([(first[x] * q, x + y) for x in then for y, q in then[x].items()] or _no_pairs())


@best_text.misconception("You return the two tokens as a pair. Join them to one text.")
def not_joined(first: First, then: Then) -> tuple[tuple[str, str], float]:
    x, y, p, q = max(_texts(first, then), key=lambda text: (text[2] * text[3], [-ord(c) for c in text[0] + text[1]]))
    return (x, y), p * q


@best_text.misconception(
    "The text is right, but you return the probability of its second token. Multiply it by that of the first."
)
def second_probability(first: First, then: Then) -> tuple[str, float]:
    text, _ = _by_enumeration(first, then)
    return text, max(q for x, y, p, q in _texts(first, then) if x + y == text)


@best_text.misconception(
    "Of equally likely pairs you compare the first tokens, then the second ones. Compare the joined texts."
)
def ties_by_tokens(first: First, then: Then) -> tuple[str, float]:
    p, x, y = min((-p * q, x, y) for x, y, p, q in _texts(first, then))
    return x + y, -p


@best_text.misconception("The text is right, but you return the logarithm of its probability.")
def logarithm(first: First, then: Then) -> tuple[str, float]:
    text, p = _by_enumeration(first, then)
    return text, math.log(p)


@best_text.misconception("Without any pair you return a result. Raise ValueError.")
def none_is_empty(first: First, then: Then) -> tuple[str, float]:
    return _by_enumeration(first, then) if any(then.get(x) for x in first) else ("", 0.0)
