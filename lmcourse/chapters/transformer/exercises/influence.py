"""The exercise on which outputs depend on which tokens."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers, normal64


def place_by_place(model: Any, tokens: Tensor, vocabulary: int) -> Tensor:
    before = model(tokens[None])[0]
    found = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    for place in range(len(tokens)):
        for other in range(vocabulary):
            changed = tokens.clone()
            changed[place] = other
            moved = (model(changed[None])[0] - before).abs().amax(-1)
            found[:, place] |= moved > 1e-6
    return found


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


TABLE = normal64(Random(5), 6, 3)
TWINS = TABLE[[0, 0, 2, 2, 4, 4]]
UNITS = torch.tensor([[0.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], dtype=torch.float64)
BOTH_WAYS = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], dtype=torch.float64)
TEXT = torch.tensor([3, 0, 2, 5, 1, 4])


def _leak(mix: Tensor, size: float) -> Tensor:
    return mix + size * torch.ones_like(mix).triu(1).tril(1)


NEAR = _leak(_window(3, 3).tril(-1), 1)
"""Influences of at most 1, for differences near the limit: of `BOTH_WAYS`, sums and norms exceed it sooner than the
largest one."""


BALANCED = torch.tensor([[1.0, -1.0], [-1.0, 1.0], [2.0, -2.0]], dtype=torch.float64)
"""Outputs whose two numbers always add up to 0."""


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    table, text = normal64(fixed, 9, 4), integers(fixed, 5, low=0, high=8, dtype=torch.int64)
    return [
        _ask("other models", _window(5, 3), table, text, TWICE),
        _ask("other models", _window(5, 5).T, table, text),
        _ask("other models", torch.eye(5, dtype=torch.float64).flip(0), table, text),
        _ask("other models", _prefix(6, 4), TABLE, TEXT),
        _ask("a small leak", _leak(_window(5, 5), 1e-4), table, text),
        _ask("a small leak", _leak(_window(5, 5), 1e-5), table, text),
        _ask("a small leak", _leak(_window(5, 5), 1e-4), 1000 + table, text),
        _ask("rounding", _leak(_window(5, 5), 1e-9), table, text),
        _ask("rounding", _leak(_window(5, 5), -1e-8), table, text, TWICE),
        *(_ask("near the limit", size * NEAR, UNITS, UNITS[:, 0].long()) for size in (1.3e-6, 7e-7)),
        _ask("near the limit", 9e-7 * NEAR, BOTH_WAYS, torch.tensor([0, 0, 0])),
        _ask("a small leak", _leak(_window(5, 5), 1e-4), 1e5 + table, text),
        _ask("one token", torch.ones(1, 1, dtype=torch.float64), table, text[:1]),
        _ask("a vocabulary of two", _window(4, 4), table[:2], torch.tensor([0, 1, 1, 0])),
        _ask("tokens that look alike", _window(6, 6), TWINS, 5 - TEXT),
        _ask("tokens that look alike", _window(4, 4), table[[1, 1, 1, 2]], torch.tensor([2, 3, 0, 1])),
        _ask("a model that hears nothing", _window(5, 5), table, text, SILENT),
        _ask("tokens stay", _window(5, 5), table, text, asked=f"y = {ASKED}\ntokens\ny"),
        *(
            _ask("other models", (normal64(random, s, s) > 0).double(), table, text.repeat(2)[:s])
            for s in random.sample(range(3, 8), 3)
        ),
    ]


influence = Exercise(
    "influence",
    points=3,
    minutes=10,
    difficulty=2,
    reference=place_by_place,
    cases=[
        _ask("a decoder", _window(6, 6), TABLE, TEXT),
        _ask("an encoder", torch.ones(3, 3, dtype=torch.float64), TABLE, TEXT[:3]),
        _ask("two layers with a window of two", _window(6, 2), TABLE, TEXT, TWICE),
        _ask("a decoder with a small leak", _leak(_window(4, 4), 1e-4), TABLE, TEXT[:4]),
        _ask("the same leak in outputs near 1,000", _leak(_window(4, 4), 1e-4), 1000 + TABLE, TEXT[:4]),
        _ask("a decoder with rounding errors", _leak(_window(4, 4), 1e-9), TABLE, TEXT[:4]),
        _ask("a model that ignores its text", _window(3, 3), TABLE, TEXT[:3], SILENT),
        _ask("tokens that look alike", _window(4, 4), TWINS, TEXT[:4]),
        _ask("changes whose sum is 0", _window(3, 3), BALANCED, torch.tensor([0, 1, 2])),
        _ask("only one number of an output changes", _window(3, 3), UNITS.flip(1), torch.tensor([0, 1, 2])),
        _ask("one number changes by 1.5 millionths", 1.5e-6 * NEAR, UNITS, UNITS[:, 0].long()),
        _ask("three numbers change by 0.8 millionths each", 8e-7 * NEAR, BOTH_WAYS, torch.tensor([0, 0, 0])),
        _ask("a vocabulary of two", _window(4, 4), TABLE[:2], torch.tensor([0, 1, 1, 0])),
        _ask("the text stays", _window(3, 3), TABLE, TEXT[:3], asked=f"y = {ASKED}\ntokens\ny"),
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


influence.variant(place_by_place)
influence.slips(
    place_by_place,
    {
        "found[:, place] → found[place]": "Rows are outputs and columns are inputs. Yours is transposed.",
        "moved = (model(changed[None])[0] - before).abs().amax(-1) → moved = model(changed[None])[0].argmax(-1) != "
        "before.argmax(-1)": "You ask whether the *choice* of the model changes. Most influences, and often a leak, "
        "are too small for that.",
        "return found → return found[-1:].repeat(len(tokens), 1)": "You look at the last output alone. A leak may show "
        "in any of them.",
        "= other → = tokens[place]": "You find no influence in any model. Do you really put *another* token there, and "
        "does one output that moves suffice?",
        "changed[place] = other → changed[: place + 1] = (tokens[: place + 1] + 1) % vocabulary": "You change the text "
        "up to this place. Change this place alone, or you cannot tell which token had the influence.",
        "return found → tokens[-1] = (tokens[-1] + 1) % vocabulary\n    return found": "You change the text that you "
        "were given: work on a copy.",
        "1e-6 → 0": "You count rounding differences. Ignore a change of at most 1e-6.",
        "1e-6 → 1e-2": "Your threshold is too coarse: a leak of 1e-4 is enough to learn from. Take 1e-6.",
        ".abs().amax(-1) → .sum(-1).abs()": "You add up the numbers of an output before you compare. Changes may "
        "cancel: look at the largest of them.",
        "amax → amin": "You ask whether *all* numbers of an output change. One of them is enough.",
        ".abs() → ": "You compare the difference with its sign. It may be negative: take its size.",
        "|= → = ||             changed = tokens.clone()\n → \n            if other == tokens[place]:\n                "
        "continue\n            changed = tokens.clone()\n ;; |= → =": "Only the last token of the vocabulary counts in "
        "your result. Try all tokens, and combine what they show, with |=: one change is enough.",
        "(model(changed[None])[0] - before).abs().amax(-1) → ~torch.isclose(model(changed[None])[0], before, "
        "atol=1e-6).all(-1) || (model(changed[None])[0] - before).abs().amax(-1) → "
        "~torch.isclose(model(changed[None])[0], before).all(-1)": "You allow a difference relative to the output, as "
        "`allclose` and `isclose` do unless rtol is 0. That hides a leak.",
        "            changed = tokens.clone()\n →  ;; before = model → changed = tokens.clone()\n    before = model "
        "||             changed = tokens.clone()\n →             if other == tokens[place]:\n                "
        "continue\n ;; before = model → changed = tokens.clone()\n    before = model": "You start each place from the "
        "copy that you changed before. Start it from the text: copy again, or put the token back.",
        "= other → = (tokens[place] + 1) % vocabulary": "You try only one other token. A model may treat two tokens "
        "alike: try them all.",
        "tokens.clone() → tokens": "A token that you tried stays in the text while you try the next place. Put the old "
        "token back, or work on a copy.",
        ".abs().amax(-1) → .abs().mean(-1)": "You average the changes of an output's numbers. The limit is for each "
        "number: take the largest.",
        ".abs().amax(-1) → .abs().sum(-1)": "You combine the changes of an output's numbers, by a sum or a norm. The "
        "limit is for each number: take the largest.",
        "range(vocabulary) → range(vocabulary - 1)": "You never try the last token of the vocabulary.",
        "range(vocabulary) → range(1, vocabulary)": "You never try token 0. It belongs to the vocabulary.",
        "= other → = 0": "You put token 0 in each place. Where the text has a 0 already, nothing changes: try all "
        "tokens.",
        "return found → return found.tril()": "You look only at places up to each output. A model that is not "
        "causal, or that leaks, reads later ones.",
        "return found → return found & ~torch.eye(len(tokens), dtype=torch.bool)": "You leave out the diagonal. An "
        "output may change with the token in its own place.",
    },
)


influence.equivalent_mutant(
    "columns.append((model(texts) - before).abs().amax(dim=(0, 2)) > 1e-06) → "
    "columns.append((before - model(texts)).abs().amax(dim=(0, 2)) > 1e-06)",
    "only the size of the difference is looked at",
)

influence.equivalent_mutant(
    "> 1e-06 → >= 1e-06", "no case has a difference of exactly 1e-6, which rounding would decide"
)
