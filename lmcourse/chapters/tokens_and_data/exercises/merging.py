"""The exercise on replacing a pair with a new token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from lmcourse.chapters.tokens_and_data.exercises.calls import call, unchanged
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise

Pair = tuple[int, int]


def merged(tokens: list[int], pair: Pair, new: int) -> list[int]:
    """Use a regular expression over code points, which searches from left to right and uses no character twice."""
    text, (left, right) = "".join(map(chr, tokens)), map(chr, pair)
    return [ord(each) for each in re.sub(re.escape(left + right), lambda _: chr(new), text, flags=re.DOTALL)]


def _hidden(random: Random) -> list[Case]:
    cases = [call("runs", "merge", [7] * length, (7, 7), 256) for length in range(2, 10)]
    cases += [
        call("at both ends", "merge", [1, 2, 9, 1, 2], (1, 2), 300),
        call("nothing to do", "merge", [2, 1, 3], (1, 2), 300),
        call("short texts", "merge", [1], (1, 1), 300),
        call("short texts", "merge", [], (0, 0), 300),
        call("tokens that end or begin alike", "merge", [31, 12, 312, 1, 2], (1, 2), 256),
        call("token 0", "merge", [0, 0, 0, 1], (0, 0), 256),
        call("token 0", "merge", [5, 0, 5, 0], (5, 0), 257),
        call("the new token is part of the pair", "merge", [1, 2, 2, 2, 1], (1, 2), 1),
        call("the new token is there already", "merge", [256, 1, 2, 256], (1, 2), 256),
        call("half a pair in between", "merge", [1, 1, 2, 2], (1, 2), 256),
    ]
    for _ in range(4):
        left, right = random.sample(range(3), 2)
        tokens = [random.randint(0, 2) for _ in range(random.randint(8, 20))]
        # The added tokens expose every known mistake, so that no mark depends on luck.
        tokens += [5, right, left, 5, left, right, 5, left, right, 5]
        cases.append(call("other texts", "merge", tokens, (left, right), 256))
    return cases


merge = Exercise(
    "merge",
    points=2,
    minutes=5,
    difficulty=1,
    reference=merged,
    new=True,
    cases=[
        call("once", "merge", [5, 1, 2, 6], (1, 2), 256),
        call("twice", "merge", [1, 2, 1, 2, 3, 1, 2], (1, 2), 256),
        call("three equal tokens", "merge", [7, 7, 7], (7, 7), 256),
        call("the other order is another pair", "merge", [2, 1, 2, 1], (1, 2), 256),
        call("a new token that could merge on", "merge", [7, 7, 7, 7], (7, 7), 7),
        call("nothing to do", "merge", [3, 4], (1, 2), 256),
        call("tokens that end or begin alike", "merge", [11, 2, 1, 21], (1, 2), 256),
        call("no tokens", "merge", [], (1, 2), 256),
        unchanged("the input stays as it is", "merge", "tokens = [1, 2, 3]", "tokens, (1, 2), 256"),
    ],
    hidden_cases=_hidden,
    hints=[
        "Go from left to right with an index. Is the pair here? Then append the new token and continue after both.",
        "If it is not, append the token and move on by one. The last token has no right neighbour.",
        "`tuple(tokens[i : i + 2]) == pair` is False at the end, without an error.",
    ],
)


@merge.misconception("You use a token twice. After a merge, continue after *both* tokens.")
def overlapping(tokens: list[int], pair: Pair, new: int) -> list[int]:
    merged, used = [], False
    for at, token in enumerate(tokens):
        if tuple(tokens[at : at + 2]) == pair:
            merged.append(new)
            used = True
        elif used:
            used = False
        else:
            merged.append(token)
    return merged


@merge.misconception("You skip the token after a merge. Continue right after the pair, two tokens further on.")
def one_token_skipped(tokens: list[int], pair: Pair, new: int) -> list[int]:
    found, at = [], 0
    while at < len(tokens):
        here = tuple(tokens[at : at + 2]) == pair
        found.append(new if here else tokens[at])
        at += 3 if here else 1
    return found


@merge.misconception(
    "You replace each token of the pair by itself. Only both together, side by side, become one new token."
)
def each_token_replaced(tokens: list[int], pair: Pair, new: int) -> list[int]:
    return [new if token in pair else token for token in tokens]


@merge.misconception("You append the last token even if a merge has used it up.")
def last_token_twice(tokens: list[int], pair: Pair, new: int) -> list[int]:
    kept: list[int] = last_lost(tokens, pair, new)
    return kept + tokens[-1:]


@merge.misconception("You stop after one merge. Merge the pair wherever it occurs.")
def first_only(tokens: list[int], pair: Pair, new: int) -> list[int]:
    for at in range(len(tokens) - 1):
        if (tokens[at], tokens[at + 1]) == pair:
            return [*tokens[:at], new, *tokens[at + 2 :]]
    return tokens


@merge.misconception("You merge from right to left. In 7 7 7, merge the *left* two.")
def from_the_right(tokens: list[int], pair: Pair, new: int) -> list[int]:
    return merged(tokens[::-1], (pair[1], pair[0]), new)[::-1]


@merge.misconception("You lose the last token when it is not part of a pair.")
def last_lost(tokens: list[int], pair: Pair, new: int) -> list[int]:
    merged, at = [], 0
    while at < len(tokens) - 1:
        found = (tokens[at], tokens[at + 1]) == pair
        merged.append(new if found else tokens[at])
        at += 2 if found else 1
    return merged


@merge.misconception("You merge (2, 1) as well as (1, 2). The order of a pair counts.")
def either_order(tokens: list[int], pair: Pair, new: int) -> list[int]:
    merged, at = [], 0
    while at < len(tokens):
        found = sorted(tokens[at : at + 2]) == sorted(pair)
        merged.append(new if found else tokens[at])
        at += 2 if found else 1
    return merged


@merge.misconception("You merge new tokens again. A new token does not merge in the same call.")
def again(tokens: list[int], pair: Pair, new: int) -> list[int]:
    merged: list[int] = []
    for token in tokens:
        merged.append(token)
        while tuple(merged[-2:]) == pair:
            merged[-2:] = [new]
    return merged


@merge.misconception("You keep the pair and add the new token. The new token *replaces* both.")
def inserted(tokens: list[int], pair: Pair, new: int) -> list[int]:
    merged, at = [], 0
    while at < len(tokens):
        found = tuple(tokens[at : at + 2]) == pair
        merged += [*pair, new] if found else [tokens[at]]
        at += 2 if found else 1
    return merged


@merge.misconception("You replace the left token and keep the right one. The new token replaces both.")
def right_one_stays(tokens: list[int], pair: Pair, new: int) -> list[int]:
    return [new if tuple(tokens[at : at + 2]) == pair else token for at, token in enumerate(tokens)]


@merge.misconception("You search in a string of numbers, where “1,2” is also part of “11,2”. Compare tokens.")
def text_replaced(tokens: list[int], pair: Pair, new: int) -> list[int]:
    text = ",".join(map(str, tokens)).replace(f"{pair[0]},{pair[1]}", str(new))
    return [int(token) for token in text.split(",") if token]


@merge.variant
def onto_a_stack(tokens: list[int], pair: tuple[int, int], new: int) -> list[int]:
    merged: list[int] = []
    free = False
    for token in tokens:
        if free and (merged[-1], token) == (pair[0], pair[1]):
            merged[-1] = new
            free = False
        else:
            merged.append(token)
            free = True
    return merged


@merge.variant
def by_cutting(tokens: list[int], pair: tuple[int, int], new: int) -> list[int]:
    left, right = pair
    merged: list[int] = []
    rest = list(tokens)
    while rest:
        token = rest.pop(0)
        if rest and token == left and rest[0] == right:
            rest.pop(0)
            token = new
        merged.append(token)
    return merged


@merge.variant
def with_an_iterator(tokens: list[int], pair: tuple[int, int], new: int) -> list[int]:
    def pieces() -> Iterator[int]:
        skip = False
        for at in range(len(tokens)):
            if skip:
                skip = False
            elif at + 1 < len(tokens) and tokens[at] == pair[0] and tokens[at + 1] == pair[1]:
                skip = True
                yield new
            else:
                yield tokens[at]

    return list(pieces())
