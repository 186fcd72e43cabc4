"""The exercise on how many tokens a model reads while it writes."""

from __future__ import annotations

from random import Random

import numpy as np

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _tokens_read(prompt: int, new: int, reuse: bool) -> int:
    """Sum an arithmetic series, or with reuse count every token but the last."""
    if prompt < 1:
        raise ValueError("the prompt is empty")
    if not new:
        return 0
    return prompt + new - 1 if reuse else (prompt + prompt + new - 1) * new // 2


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("other lengths", prompt, new, reuse)
        for prompt, new in ((1, 1), (1, 2), (2, 1), (7, 3), (3, 7), (1, 50))
        for reuse in (True, False)
    ]
    cases += [
        case("nothing to write", 1, 0, True),
        case("nothing to write", 9, 0, False),
        case("no prompt", 0, 5, True),
        case("no prompt", 0, 5, False),
        case("no prompt", 0, 0, True),
        case("no prompt", -3, 5, False),
        case("large numbers", 100_000, 20_000, False),
        case("large numbers", 100_000, 20_000, True),
        case("large numbers", 10**16 + 1, 3, False),
    ]
    prompt, new = random.sample(range(20, 3000), 2)
    return [*cases, *(case("other lengths", prompt, new, reuse) for reuse in (True, False))]


tokens_read = Exercise(
    "tokens_read",
    points=2,
    minutes=4,
    difficulty=1,
    reference=_tokens_read,
    cases=[
        case("a thousand words, nothing kept", 100, 1000, False),
        case("a thousand words, all kept", 100, 1000, True),
        case("one word, nothing kept", 5, 1, False),
        case("one word, all kept", 5, 1, True),
        case("a prompt of one token", 1, 3, False),
        case("no word, nothing kept", 5, 0, False),
        case("no word, all kept", 5, 0, True),
        case("no prompt", 0, 3, True),
        case("a prompt of 10¹⁶ + 1 tokens", 10**16 + 1, 2, False),
    ],
    hidden_cases=_hidden,
    hints=[
        "Write down how many tokens are read for the first new token, for the second, for the third.",
        "Without reuse: prompt, prompt + 1, …, prompt + new − 1. The last token written is never read.",
        "With reuse, every token is read once. If `new` is 0, nothing is read.",
    ],
)


def _refused(prompt: int) -> int:
    if prompt < 1:
        raise ValueError("the prompt is empty")
    return prompt


@tokens_read.misconception("You let every step read the final length. At the first step, nothing has been written yet.")
def square(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, reuse) if reuse else (_refused(prompt) + new) * new


@tokens_read.misconception(
    "You read the token that a step writes. It is read only for the next one, and the last is never read."
)
def last_one_read(prompt: int, new: int, reuse: bool) -> int:
    _refused(prompt)
    if not new:
        return 0
    return prompt + new if reuse else sum(prompt + i for i in range(1, new + 1))


@tokens_read.misconception("With reuse you read the last new token, too. Nothing is written after it.")
def last_one_read_with_reuse(prompt: int, new: int, reuse: bool) -> int:
    return _refused(prompt) + new if reuse and new else _tokens_read(prompt, new, reuse)


@tokens_read.misconception("Without reuse, your steps read the token that they write. Only later steps read it.")
def each_reads_its_own(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, reuse) if reuse else sum(range(_refused(prompt) + 1, prompt + new + 1))


@tokens_read.misconception("You leave out the prompt. Without reuse, every step reads it.")
def prompt_free(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, reuse) if reuse else (_refused(prompt) and sum(range(new)))


@tokens_read.misconception("You read the prompt once. Without reuse, every step reads it *again*.")
def prompt_once(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, reuse) if reuse or not new else _refused(prompt) + sum(range(new))


@tokens_read.misconception("You let every step read prompt + new − 1 tokens. Only the last step does.")
def longest_every_time(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, reuse) if reuse else (_refused(prompt) + new - 1) * new


@tokens_read.misconception("With reuse you read the written tokens again in every step. Read each of them once.")
def only_the_prompt_kept(prompt: int, new: int, reuse: bool) -> int:
    return _refused(prompt) + sum(range(new)) if reuse and new else _tokens_read(prompt, new, reuse)


@tokens_read.misconception(
    "A division with / makes a float, which rounds whole numbers above 2⁵³. Divide with //, or add up the series."
)
def divided_as_floats(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, reuse) if reuse or not new else int((2 * _refused(prompt) + new - 1) * new / 2)


@tokens_read.misconception("You leave out the prompt. With reuse it is still read once.")
def only_new(prompt: int, new: int, reuse: bool) -> int:
    _refused(prompt)
    return new if reuse else _tokens_read(prompt, new, reuse)


@tokens_read.misconception("You leave out the prompt with reuse: you count only what was written and read again.")
def only_written(prompt: int, new: int, reuse: bool) -> int:
    return _refused(prompt) and max(new - 1, 0) if reuse else _tokens_read(prompt, new, reuse)


@tokens_read.misconception("You read only the prompt in every step. Without reuse, read what was written as well.")
def prompt_again(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, reuse) if reuse else _refused(prompt) * new


@tokens_read.misconception("You ignore `reuse`.")
def reuse_ignored(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, False)


@tokens_read.misconception("You swapped the two: `reuse=True` is the cheap way.")
def turned_round(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, not reuse)


@tokens_read.misconception("You return only the leading term, half a square. Return the exact number.")
def half_square(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, reuse) if reuse else (_refused(prompt) + new) ** 2 // 2


@tokens_read.misconception("You reject a prompt of one token. It is enough.")
def refuses_one(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt if prompt > 1 else 0, new, reuse)


@tokens_read.misconception("If no token is written, nothing is read. Your formula needs at least one.")
def reads_for_nothing(prompt: int, new: int, reuse: bool) -> int:
    return _tokens_read(prompt, new, reuse) if new or not reuse else _refused(prompt) - 1


@tokens_read.variant
def simulated(prompt: int, new: int, reuse: bool) -> int:
    if prompt <= 0:
        raise ValueError("the prompt is empty")
    known = read = 0
    length = prompt
    for _ in range(new):
        read += length - known if reuse else length
        known = length
        length += 1
    return read


@tokens_read.variant
def by_a_formula(prompt: int, new: int, reuse: bool) -> int:
    assert new >= 0
    if not prompt >= 1:
        raise ValueError
    if reuse:
        return 0 if new == 0 else prompt - 1 + new
    return new * prompt + new * (new - 1) // 2


@tokens_read.variant
def with_numpy(prompt: int, new: int, reuse: bool) -> int:
    if prompt < 1:
        raise ValueError("the prompt is empty")
    lengths = np.arange(prompt, prompt + new)
    return int(np.diff(lengths, prepend=0).sum() if reuse else lengths.sum())
