"""The exercise on the targets of a dialogue that are trained."""

from __future__ import annotations

from random import Random

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.training.number_dialogues import ANSWER, ASK, END, LARGER, PLUS

Dialogues = Int[Tensor, "b s"]


def _reference(tokens: Dialogues) -> Bool[Tensor, "b s-1"]:
    """Find in each row the places of ANSWER and of END."""
    rows = []
    for dialogue in tokens.tolist():
        first = dialogue.index(ANSWER) + 1 if ANSWER in dialogue else len(dialogue)
        last = dialogue.index(END) if END in dialogue else len(dialogue)
        rows.append([first <= place <= last for place in range(1, len(dialogue))])
    return torch.tensor(rows, dtype=torch.bool).reshape(len(tokens), tokens.shape[1] - 1)


def _dialogue(kind: int, numbers: list[int], answer: list[int], length: int = 9) -> list[int]:
    tokens = [ASK, kind, *numbers, ANSWER, *answer]
    return [*tokens, *[END] * (length - len(tokens))]


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("one row", torch.tensor([_dialogue(PLUS, [3, 4], [7])])),
        case("an answer as long as the row", torch.tensor([_dialogue(PLUS, [3, 4], [7, 1, 2], 8)])),
        case("no answer yet", torch.tensor([[ASK, PLUS, 3, 4], [ASK, LARGER, 3, 4]])),
        case("three numbers are asked", torch.tensor([_dialogue(PLUS, [1, 2, 3], [6]), _dialogue(PLUS, [1], [1])])),
        case(
            "three dialogues in a row",
            torch.tensor([[*_dialogue(PLUS, [1, 2], [3], 7), *_dialogue(PLUS, [4], [4], 6)] * 3]),
        ),
        case("END at once", torch.tensor([_dialogue(PLUS, [1, 2], []), _dialogue(PLUS, [1, 2], [3])])),
    ]
    for _ in range(3):
        rows = [
            _dialogue(
                random.choice([PLUS, LARGER]),
                [random.randrange(11)] * random.randint(1, 3),
                [5] * random.randint(0, 5),
                10,
            )
            for _ in range(4)
        ]
        cases.append(case("other dialogues", torch.tensor([row[:10] for row in rows])))
    return cases


trained_targets = Exercise(
    "trained_targets",
    points=2,
    minutes=6,
    difficulty=2,
    reference=_reference,
    cases=[
        case("one number", torch.tensor([_dialogue(PLUS, [7, 9], [5])])),
        case("two numbers", torch.tensor([_dialogue(PLUS, [7, 9], [5, 2])])),
        case(
            "answers of different lengths",
            torch.tensor([_dialogue(LARGER, [7, 9], [9]), _dialogue(PLUS, [1, 1], [2, 0, 4])]),
        ),
        case(
            "questions of different lengths", torch.tensor([_dialogue(PLUS, [7], [7]), _dialogue(PLUS, [1, 1, 1], [3])])
        ),
        case("an answer that does not end", torch.tensor([_dialogue(PLUS, [7, 9], [5, 2, 2, 2])])),
        case("something after END", torch.tensor([[ASK, PLUS, 7, 9, ANSWER, 5, END, 3, ANSWER, 8]])),
        case("a question without its answer", torch.tensor([[ASK, PLUS, 7, 9, ANSWER], [ASK, LARGER, 7, 9, 3]])),
    ],
    hidden_cases=_hidden,
    hints=[
        "Write a dialogue in one row and its targets below, one token further to the left. Which targets do people's "
        "answers consist of?",
        "Target i is trained if token i, the one before it, is ANSWER or comes after it, and if no END has come yet.",
        "A cumulative sum along a row counts how many ANSWERs (or ENDs) there have been so far.",
    ],
)

PADDING = "You train the padding, too: every END after the first one. Nobody reads these tokens."
NO_END = "END is not trained: nothing ever tells the model to stop."
QUESTION = "The question is trained, too. Only what comes after ANSWER is the answer."
WIDE = "Your mask has a column for every token. There are s − 1 targets: the first token is none."
SHIFTED = "Your mask fits the tokens, not the targets: it is one place too far to the right. Target i is token i + 1."
AGAIN = "An ANSWER after END opens your mask again. The row is over at its first END."
NOWHERE = "`argmax` gives 0 where nothing is found: rows without ANSWER, or without END, need care."
FLOATS = "You return numbers. The mask has True and False."


@trained_targets.variant
def by_counting(tokens: Tensor) -> Tensor:
    before = tokens[:, :-1]
    answering = (before == ANSWER).cumsum(dim=1) > 0
    ended = (before == END).cumsum(dim=1) > 0
    return answering & ~ended


trained_targets.slips(
    by_counting,
    {
        "before = tokens[:, :-1] → before = tokens[:, 1:]": "You look at the target itself, and not at the token "
        "before it: you train the model to write ANSWER, and never to write END.",
        "answering & ~ended → answering": PADDING,
        "return answering & ~ended → return F.pad((answering & ~ended).int(), (1, -1)).bool()": SHIFTED,
        "answering & ~ended → (before == ANSWER).cumsum(dim=1) > (before == END).cumsum(dim=1)": AGAIN,
        "(before == ANSWER).cumsum(dim=1) > 0 → torch.arange(before.shape[1]) >= (before == ANSWER).int().argmax(1, "
        "True) || (before == ANSWER).cumsum(dim=1) > 0 → torch.arange(before.shape[1]) >= (tokens == "
        "ANSWER).int().argmax(1, True) || (before == END).cumsum(dim=1) > 0 → torch.arange(before.shape[1]) > "
        "(tokens[:, 1:] == END).int().argmax(1, True)": NOWHERE,
        "answering & ~ended → ~ended": QUESTION,
        "(before == END).cumsum(dim=1) > 0 → (tokens[:, 1:] == END).cumsum(dim=1) > 0 || "
        "answering & ~ended → answering & (tokens[:, 1:] != END)": NO_END,
        "before = tokens[:, :-1] → before = tokens || before = tokens[:, :-1] → before = tokens ;; "
        "(before == END).cumsum(dim=1) > 0 → (before == END).cumsum(dim=1) > 1": WIDE,
        "return answering & ~ended → return (answering & ~ended).float() || return answering & ~ended → return "
        "(answering & ~ended).long() || return answering & ~ended → return tokens[:, 1:].masked_fill("
        "~(answering & ~ended), -100)": FLOATS,
        "(before == ANSWER).cumsum(dim=1) > 0 → (torch.arange(before.shape[1]) >= 4).expand(before.shape)": "You "
        "count on a question of five tokens. Look for ANSWER: questions have different lengths.",
        "answering = (before == ANSWER) → answering = (tokens[:, 1:] == ANSWER)": "You train the model to write "
        "ANSWER. That token belongs to the question.",
        "(before == ANSWER).cumsum(dim=1) > 0 → before == ANSWER": "Only the first token of each answer is trained. "
        "The answer goes up to its END.",
    },
)


@trained_targets.variant
def token_by_token(tokens: Tensor) -> Tensor:
    mask = torch.zeros(len(tokens), tokens.shape[1] - 1, dtype=torch.bool)
    for row, dialogue in enumerate(tokens.tolist()):
        answering, ended = False, False
        for i, token in enumerate(dialogue[:-1]):
            answering, ended = answering or token == ANSWER, ended or token == END
            mask[row, i] = answering and not ended
    return mask


trained_targets.slips(
    token_by_token,
    {
        "token == END → dialogue[i + 1] == END": NO_END,
        " and not ended → ": PADDING,
        "mask[row, i] → mask[row, (i + 1) % len(mask[0])]": SHIFTED,
        "ended or token == END → (ended or token == END) and token != ANSWER": AGAIN,
        "len(tokens), tokens.shape[1] - 1 → tokens.shape ;; dialogue[:-1] → dialogue": WIDE,
        "answering, ended = False → answering, ended = True": QUESTION,
    },
)
