"""The exercise on replacing a pair with a new token."""

from __future__ import annotations

from random import Random

from lmcourse.chapters.tokens_and_data.exercises.calls import call
from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise


def with_a_string(tokens: list[int], pair: tuple[int, int], new: int) -> list[int]:
    text = "".join(map(chr, tokens))
    text = text.replace("".join(map(chr, pair)), chr(new))
    return [ord(token) for token in text]


def _hidden(random: Random) -> list[Case]:
    cases = [call("runs", "merge", [7] * length, (7, 7), 256) for length in range(2, 10)]
    cases += [
        call("at both ends", "merge", [1, 2, 9, 1, 2], (1, 2), 300),
        call("nothing to do", "merge", [2, 1, 3], (1, 2), 300),
        *(call("short texts", "merge", *each, 300) for each in (([1], (1, 1)), ([], (0, 0)))),
        call("tokens with the same digits at an end", "merge", [31, 12, 312, 1, 2], (1, 2), 256),
        call("token 0", "merge", [5, 0, 5, 0], (5, 0), 257),
        call("the new token is part of the pair", "merge", [1, 2, 2, 2, 1], (1, 2), 1),
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
    minutes=4,
    difficulty=1,
    reference=with_a_string,
    new=True,
    cases=[
        call("once", "merge", [5, 1, 2, 6], (1, 2), 256),
        call("twice", "merge", [1, 2, 1, 2, 3, 1, 2], (1, 2), 256),
        call("three equal tokens", "merge", [7, 7, 7], (7, 7), 256),
        call("the other order is another pair", "merge", [2, 1, 2, 1], (1, 2), 256),
        call("a new token that could merge on", "merge", [7, 7, 7, 7], (7, 7), 7),
        call("nothing to do", "merge", [3, 4], (1, 2), 256),
        call("tokens with the same digits at an end", "merge", [11, 2, 1, 21], (1, 2), 256),
        call("no tokens", "merge", [], (1, 2), 256),
        script("the input stays as it is", "tokens = [1, 2, 3]\nmerge(tokens, (1, 2), 256)\ntokens"),
    ],
    hidden_cases=_hidden,
    hints=[
        "Go from left to right with an index. Is the pair here? Then append the new token and continue after both.",
        "If it is not, append the token and move on by one. The last token has no right neighbour.",
        "`tuple(tokens[i : i + 2]) == pair` is False at the end, without an error.",
    ],
)


@merge.variant
def from_the_left(tokens: list[int], pair: tuple[int, int], new: int) -> list[int]:
    merged, at = [], 0
    while at < len(tokens):
        if tuple(tokens[at : at + 2]) == pair:
            merged.append(new)
            at += 2
        else:
            merged.append(tokens[at])
            at += 1
    return merged


merge.slips(
    from_the_left,
    {
        "at += 2 → at += 1 if tuple(tokens[at + 1 : at + 3]) == pair else 2": "You use a token twice. After a merge, "
        "continue after *both* tokens.",
        "tuple(tokens[at : at + 2]) == pair → (tokens[at], tokens[at + 1]) == pair": "You ask for the right neighbour "
        "of the last token. It has none.",
        "tuple(tokens[at : at + 2]) == pair → tokens[at : at + 2] == pair": "You compare a slice, which is a list, "
        "with a tuple: they are never equal, and nothing merges.",
        "at += 2 → at += 3": "You skip the token after a merge. Continue right after the pair, two tokens further on.",
        "tuple(tokens[at : at + 2]) == pair → tokens[at] in pair ;; at += 2 → at += 1": "You replace each token of the "
        "pair by itself. Only both together, side by side, become one new token.",
        "len(tokens) → len(tokens) - 1 ;; return merged → return merged + tokens[-1:]": "You append the last token "
        "even if a merge has used it up.",
        "at += 2 → return merged + tokens[at + 2 :]": "You stop after one merge. Merge the pair wherever it occurs.",
        "merged, at = → tokens, pair = tokens[::-1], pair[::-1]\n    merged, at = ;; return merged → return "
        "merged[::-1]": "You merge from right to left. In 7 7 7, merge the *left* two.",
        "len(tokens) → len(tokens) - 1": "You lose the last token when it is not part of a pair.",
        "tuple(tokens[at : at + 2]) == pair → sorted(tokens[at : at + 2]) == sorted(pair)": "You merge (2, 1) as well "
        "as (1, 2). The order of a pair counts.",
        "return merged → return merged if merged == tokens else from_the_left(merged, pair, new)": "You merge new "
        "tokens again. A new token does not merge in the same call.",
        "merged.append(new) → merged += [*pair, new]": "You keep the pair and add the new token. The new token "
        "*replaces* both.",
        "at += 2 → at += 1": "You replace the left token and keep the right one. The new token replaces both.",
    },
)


merge.variant(with_a_string)
merge.slips(
    with_a_string,
    {
        '"".join(map(chr, tokens)) → ",".join(map(str, tokens)) ;; "".join(map(chr, pair)), chr(new) → '
        '",".join(map(str, pair)), str(new) ;; ord(token) for token in text → int(token) for token in text.split(",") '
        "if token": "You search in a string of numbers, where “1,2” is also part of “11,2”. Compare tokens.",
    },
)
