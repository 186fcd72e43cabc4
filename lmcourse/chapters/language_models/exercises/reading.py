"""The exercise on how many tokens a model reads while it writes."""

from __future__ import annotations

from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def length_by_length(prompt: int, new: int, reuse: bool) -> int:
    if prompt < 1:
        raise ValueError("the prompt is empty")
    if not new:
        return 0
    if reuse:
        return prompt + new - 1
    return sum(range(prompt, prompt + new))


def _hidden(random: Random) -> list[Case]:
    cases = [
        *(case("other lengths", *each, reuse) for each in ((1, 1), (2, 1), (7, 3), (1, 50)) for reuse in (True, False)),
        *(case("nothing to write", 9, 0, reuse) for reuse in (True, False)),
        *(case("no prompt", *each) for each in ((0, 0, True), (-3, 5, False))),
        *(case("large numbers", 100_000, 20_000, reuse) for reuse in (True, False)),
        case("large numbers", 10**16 + 1, 3, False),
    ]
    prompt, new = random.sample(range(20, 3000), 2)
    return [*cases, *(case("other lengths", prompt, new, reuse) for reuse in (True, False))]


tokens_read = Exercise(
    "tokens_read",
    points=2,
    minutes=4,
    difficulty=1,
    reference=length_by_length,
    cases=[
        case("a thousand words, nothing kept", 100, 1000, False),
        case("a thousand words, all kept", 100, 1000, True),
        case("one word, nothing kept", 5, 1, False),
        case("one word, all kept", 5, 1, True),
        case("a prompt of one token", 1, 3, False),
        edge(case("no word, nothing kept", 5, 0, False)),
        edge(case("no word, all kept", 5, 0, True)),
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


tokens_read.variant(length_by_length)
tokens_read.slips(
    length_by_length,
    {
        "sum(range(prompt, prompt + new)) → (prompt + new) * new": "You let every step read the final length. At the "
        "first step, nothing has been written yet.",
        "prompt + new - 1 → prompt + new ;; range(prompt, prompt + new) → range(prompt + 1, prompt + new + 1)": "You "
        "read the token that a step writes. It is read only for the next one, and the last is never read.",
        "prompt + new - 1 → prompt + new": "With reuse you read the last new token, too. Nothing is written after it.",
        "range(prompt, prompt + new) → range(prompt + 1, prompt + new + 1)": "Without reuse, your steps read the token "
        "that they write. Only later steps read it.",
        "range(prompt, prompt + new) → range(new)": "You leave out the prompt. Without reuse, every step reads it.",
        "sum(range(prompt, prompt + new)) → prompt + sum(range(new))": "You read the prompt once. Without reuse, every "
        "step reads it *again*.",
        "    if not new:\n        return 0\n →  ;; prompt + new - 1 → prompt + new ;; sum(range(prompt, prompt + new)) "
        "→ (prompt + new) * new": "You count as if the last new token were read, too. Without reuse, every step reads "
        "only what is there by then; with reuse, the last token is never read.",
        "sum(range(prompt, prompt + new)) → (prompt + new - 1) * new": "You let every step read prompt + new − 1 "
        "tokens. Only the last step does.",
        "sum(range(prompt, prompt + new)) → int((2 * prompt + new - 1) * new / 2) || sum(range(prompt, prompt + new)) "
        "→ prompt * new + new * (new - 1) / 2": "A division with / makes a float, which rounds whole numbers above "
        "2⁵³. Divide with //, or add up the series.",
        "prompt + new - 1 → new": "You leave out the prompt. With reuse it is still read once.",
        "sum(range(prompt, prompt + new)) → prompt * new": "You read only the prompt in every step. Without reuse, "
        "read what was written as well.",
        "if reuse → if False": "You ignore `reuse`.",
        "if reuse → if not reuse": "You swapped the two: `reuse=True` is the cheap way.",
        "prompt < 1 → prompt <= 1": "You reject a prompt of one token. It is enough.",
        "if not new → if not new and not reuse": "If no token is written, nothing is read. Your formula needs at least "
        "one.",
    },
)
