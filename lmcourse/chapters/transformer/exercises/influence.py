"""The exercise on which outputs depend on which tokens."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal64

VISIBLE = 1e-6


def _all_texts_at_once(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    """Run one batch with every text that differs from this one in a single place."""
    s = len(tokens)
    texts = tokens.repeat(s, vocabulary, 1)
    for place in range(s):
        texts[place, :, place] = torch.arange(vocabulary)
    moved = (model(texts.flatten(0, 1)) - model(tokens[None])).abs().amax(-1)
    return (moved.unflatten(0, (s, vocabulary)).amax(1) > VISIBLE).T  # type: ignore[no-any-return]


LINEAR = "model = lambda t: mix[: t.shape[1], : t.shape[1]] @ table[t]\n"
TWICE = "model = lambda t: mix @ (mix @ table[t]).tanh()\n"
SILENT = "model = lambda t: table[:1] + 0 * table[t]\n"
ASKED = "influence(model, tokens, vocabulary)"


def _window(s: int, width: int) -> Tensor:
    """A causal window: each position and those before it, `width` in all."""
    ones = torch.ones(s, s, dtype=torch.float64)
    return (ones.tril() - ones.tril(-width)) / width


def _prefix(s: int, prefix: int) -> Tensor:
    mix = torch.ones(s, s, dtype=torch.float64).tril()
    mix[:prefix, :prefix] = 1
    return mix / s


def _ask(name: str, mix: Tensor, table: Tensor, tokens: Tensor, lines: str = LINEAR, asked: str = ASKED) -> Case:
    return script(name, lines + asked, mix=mix, table=table, tokens=tokens, vocabulary=len(table))


def _causal(s: int) -> Tensor:
    return torch.ones(s, s, dtype=torch.float64).tril() / s


TABLE = normal64(Random(5), 6, 3)
TWINS = TABLE[[0, 0, 2, 2, 4, 4]]
UNITS = torch.tensor([[0.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], dtype=torch.float64)
NEAR = (1e-6, 1.5e-6, 7e-7)
BOTH_WAYS = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], dtype=torch.float64)
"""Influences near the limit: sums, norms and deviations of the differences exceed it, but the largest difference does
not."""
TEXT = torch.tensor([3, 0, 2, 5, 1, 4])


def _leak(mix: Tensor, size: float) -> Tensor:
    return mix + size * torch.ones_like(mix).triu(1).tril(1)


BALANCED = torch.tensor([[1.0, -1.0], [-1.0, 1.0], [2.0, -2.0]], dtype=torch.float64)
"""Outputs whose two numbers always add up to 0."""


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    table, text = normal64(fixed, 9, 4), integers(fixed, 5, low=0, high=8, dtype=torch.int64)
    return [
        _ask("other models", _window(5, 3), table, text, TWICE),
        _ask("other models", _causal(5).T, table, text),
        _ask("other models", torch.eye(5, dtype=torch.float64).flip(0), table, text),
        _ask("other models", _prefix(6, 4), TABLE, TEXT),
        _ask("a small leak", _leak(_causal(5), 1e-4), table, text),
        _ask("a small leak", _leak(_causal(5), 1e-5), table, text),
        _ask("a small leak", _leak(_causal(5), 1e-4), 1000 + table, text),
        _ask("rounding", _leak(_causal(5), 1e-9), table, text),
        _ask("rounding", _leak(_causal(5), -1e-8), table, text, TWICE),
        *(_ask("near the limit", size * _leak(_causal(3).tril(-1), 1), UNITS, UNITS[:, 0].long()) for size in NEAR),
        _ask("near the limit", 8e-7 * _leak(_causal(3).tril(-1), 1), BOTH_WAYS, torch.tensor([0, 0, 0])),
        _ask("a small leak", _leak(_causal(5), 1e-4), 1e5 + table, text),
        _ask("one token", torch.ones(1, 1, dtype=torch.float64), table, text[:1]),
        _ask("a vocabulary of two", _causal(4), table[:2], torch.tensor([0, 1, 1, 0])),
        _ask("tokens that look alike", _causal(6), TWINS, 5 - TEXT),
        _ask("tokens that look alike", _causal(4), table[[1, 1, 1, 2]], torch.tensor([2, 3, 0, 1])),
        _ask("a model that hears nothing", _causal(5), table, text, SILENT),
        _ask("tokens stay", _causal(5), table, text, asked=f"y = {ASKED}\ntokens\ny"),
        *(
            _ask(
                "other models",
                (normal64(random, s, s) > 0).double(),
                table,
                integers(random, s, low=0, high=8, dtype=torch.int64),
            )
            for s in random.sample(range(3, 8), 3)
        ),
    ]


influence = Exercise(
    "influence",
    points=3,
    minutes=10,
    difficulty=2,
    reference=_all_texts_at_once,
    cases=[
        _ask("a decoder", _causal(6), TABLE, TEXT),
        _ask("an encoder", torch.ones(3, 3, dtype=torch.float64), TABLE, TEXT[:3]),
        _ask("two layers with a window of two", _window(6, 2), TABLE, TEXT, TWICE),
        _ask("a decoder with a small leak", _leak(_causal(4), 1e-4), TABLE, TEXT[:4]),
        _ask("the same leak in outputs near 1,000", _leak(_causal(4), 1e-4), 1000 + TABLE, TEXT[:4]),
        _ask("a decoder with rounding errors", _leak(_causal(4), 1e-9), TABLE, TEXT[:4]),
        _ask("a model that ignores its text", _causal(3), TABLE, TEXT[:3], SILENT),
        _ask("tokens that look alike", _causal(4), TWINS, TEXT[:4]),
        _ask("changes whose sum is 0", _causal(3), BALANCED, torch.tensor([0, 1, 2])),
        _ask("only one number of an output changes", _causal(3), UNITS.flip(1), torch.tensor([0, 1, 2])),
        _ask("the text stays", _causal(3), TABLE, TEXT[:3], asked=f"y = {ASKED}\ntokens\ny"),
    ],
    hidden_cases=_hidden,
    hints=[
        "For each place, copy the text, put another token there, and run the model again. Which outputs have changed?",
        "`(model(changed[None]) - before).abs().amax(-1)[0] > 1e-6` gives the answer for all outputs at once: a "
        "*column*.",
        "Two tokens may look alike to a model. Try all of the vocabulary in each place before you conclude that no "
        "output reads it.",
    ],
)


@influence.variant
def with_loops(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    s = len(tokens)
    before = model(tokens[None])[0]
    found = torch.zeros(s, s, dtype=torch.bool)
    for j in range(s):
        for other in range(vocabulary):
            changed = tokens.clone()
            changed[j] = other
            after = model(changed[None])[0]
            for i in range(s):
                if (after[i] - before[i]).abs().max() > 1e-6:
                    found[i, j] = True
    return found


@influence.variant
def with_lists(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    text = tokens.tolist()
    columns = []
    for j in range(len(text)):
        batch = torch.tensor([[*text[:j], other, *text[j + 1 :]] for other in range(vocabulary)])
        moved = model(batch) - model(tokens.unsqueeze(0))
        columns.append((moved.abs() > 1e-6).any(-1).any(0))
    return torch.stack(columns, dim=1)


@influence.variant
def output_by_output(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    def moves(i: int, j: int) -> bool:
        for other in range(vocabulary):
            text = torch.cat([tokens[:j], torch.tensor([other]), tokens[j + 1 :]])
            difference = model(text[None])[0, i] - model(tokens[None])[0, i]
            if difference.abs().max().item() > 1e-6:
                return True
        return False

    return torch.tensor([[moves(i, j) for j in range(len(tokens))] for i in range(len(tokens))])


def _replaced(model: Any, tokens: Tensor, place: int, other: int) -> Tensor:
    """The outputs if another token takes this place."""
    changed = tokens.clone()
    changed[place] = other
    return model(changed[None])  # type: ignore[no-any-return]


def _one_by_one(model: Any, tokens: Tensor, others: Any, threshold: float = VISIBLE) -> Tensor:
    """Compute [i, j] by trying the tokens `others(t)` in place of t, one by one."""
    columns = []
    for place, token in enumerate(tokens.tolist()):
        moved = torch.zeros(len(tokens), dtype=torch.float64)
        for other in others(token):
            changed = tokens.clone()
            changed[place] = other
            moved = torch.maximum(moved, (model(changed[None]) - model(tokens[None]))[0].abs().amax(-1))
        columns.append(moved > threshold)
    return torch.stack(columns, dim=1)


@influence.misconception("Rows are outputs and columns are inputs. Yours is transposed.")
def transposed(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    return _all_texts_at_once(model, tokens, vocabulary).T


@influence.misconception(
    "You ask whether the *choice* of the model changes. Most influences, and often a leak, are too small for that."
)
def choices_only(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    chosen = lambda texts: torch.nn.functional.one_hot(model(texts).argmax(-1), 64)  # noqa: E731
    return _all_texts_at_once(chosen, tokens, vocabulary)


@influence.misconception("You look at the last output alone. A leak may show in any of them.")
def last_output(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    return _all_texts_at_once(model, tokens, vocabulary)[-1:].repeat(len(tokens), 1)


@influence.misconception(
    "You find no influence in any model. Do you really put *another* token there, and does one output that moves "
    "suffice?"
)
def same_token(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    return _one_by_one(model, tokens, lambda token: [token])


@influence.misconception(
    "You change the text up to this place. Change this place alone, or you cannot tell which token had the influence."
)
def all_before(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    columns = []
    for place in range(len(tokens)):
        changed = tokens.clone()
        changed[: place + 1] = (tokens[: place + 1] + 1) % vocabulary
        columns.append((model(changed[None]) - model(tokens[None]))[0].abs().amax(-1) > VISIBLE)
    return torch.stack(columns, dim=1)


@influence.misconception("You change the text that you were given: work on a copy.")
def in_place(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    found = _all_texts_at_once(model, tokens, vocabulary)
    tokens[-1] = (tokens[-1] + 1) % vocabulary
    return found


@influence.misconception("You count rounding differences. Ignore a change of at most 1e-6.")
def exact(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    return _one_by_one(model, tokens, lambda token: range(vocabulary), threshold=0.0)


@influence.misconception("Your threshold is too coarse: a leak of 1e-4 is enough to learn from. Take 1e-6.")
def coarse(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    return _one_by_one(model, tokens, lambda token: range(vocabulary), threshold=1e-2)


@influence.misconception(
    "You add up the numbers of an output before you compare. Changes may cancel: look at the largest of them."
)
def sums_compared(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    return _all_texts_at_once(lambda texts: model(texts).sum(-1, keepdim=True), tokens, vocabulary)


@influence.misconception("You ask whether *all* numbers of an output change. One of them is enough.")
def all_numbers(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    found = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    for place in range(len(tokens)):
        for other in range(vocabulary):
            found[:, place] |= ((_replaced(model, tokens, place, other) - model(tokens[None]))[0].abs() > VISIBLE).all(
                -1
            )
    return found


@influence.misconception("You compare the difference with its sign. It may be negative: take its size.")
def signed(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    found = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    for place in range(len(tokens)):
        for other in range(vocabulary):
            found[:, place] |= (_replaced(model, tokens, place, other) - model(tokens[None]))[0].amax(-1) > VISIBLE
    return found


@influence.misconception(
    "Only the last token of the vocabulary counts in your result. Try all tokens, and combine what they show, with "
    "|=: one change is enough."
)
def last_try_wins(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    return _one_by_one(model, tokens, lambda token: [vocabulary - 1])


@influence.misconception(
    "You allow a difference relative to the output, as `allclose` and `isclose` do unless rtol is 0. That hides a leak."
)
def relative_tolerance(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    found = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    before = model(tokens[None])[0]
    for place in range(len(tokens)):
        for other in range(vocabulary):
            found[:, place] |= ~torch.isclose(_replaced(model, tokens, place, other)[0], before, atol=VISIBLE).all(-1)
    return found


@influence.misconception(
    "You start each place from the copy that you changed before. Start it from the text: copy again, or put the token "
    "back."
)
def copy_stays_changed(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    return left_changed(model, tokens.clone(), vocabulary)  # type: ignore[no-any-return]


@influence.misconception("You try only one other token. A model may treat two tokens alike: try them all.")
def one_try(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    return _one_by_one(model, tokens, lambda token: [(token + 1) % vocabulary])


@influence.misconception(
    "A token that you tried stays in the text while you try the next place. Put the old token back, or work on a copy."
)
def left_changed(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    before = model(tokens[None])[0]
    columns = []
    for place in range(len(tokens)):
        moved = torch.zeros(len(tokens), dtype=torch.bool)
        for other in range(vocabulary):
            tokens[place] = other
            moved |= (model(tokens[None])[0] - before).abs().amax(-1) > VISIBLE
        columns.append(moved)
    return torch.stack(columns, dim=1)


influence.equivalent_mutant(
    "columns.append((model(texts) - before).abs().amax(dim=(0, 2)) > 1e-06) → "
    "columns.append((before - model(texts)).abs().amax(dim=(0, 2)) > 1e-06)",
    "only the size of the difference is looked at",
)
