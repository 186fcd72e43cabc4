"""The exercise on learning one batch by heart."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from lmcourse.chapters.transformer.exercises.decoder_cases import random_weights
from lmcourse.exercises.cases import Case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import integers

MODEL = """\
def model(tokens, weights, sizes, parts):
    x = weights["embedding"][tokens]
    for w in weights["blocks"]:
        x = x + parts["squash"](x * w["norm_1"] @ w["qkv"].T)[..., : sizes["heads"]] @ w["out"].T
        x = x + (parts["squash"](x * w["norm_2"] @ w["gate"].T) * (x @ w["up"].T)) @ w["down"].T
    return parts["last"](x) * weights["norm"] @ weights.get("head", weights["embedding"]).T
def loss(logits, tokens):
    z = logits[:, :-1]
    return (z.logsumexp(-1) - z.gather(-1, tokens[:, 1:, None])[..., 0]).mean()
parts = {"squash": lambda x: x.tanh(), "last": lambda x: x}
"""
"""A small model that is easy to differentiate; the caller chooses which parts are trained."""


def with_pytree(
    decoder: Any,
    loss: Any,
    weights: Any,
    sizes: Any,
    parts: Any,
    tokens: Tensor,
    steps: int,
    rate: float,
    frozen: Any = (),
) -> list[float]:
    own = torch.utils._pytree.tree_map(lambda w: w.detach().clone().requires_grad_(), weights)
    trained = torch.utils._pytree.tree_leaves([own[name] for name in own if name not in frozen])
    optimizer = torch.optim.AdamW(trained, lr=rate)
    losses = []
    for _ in range(steps):
        now = loss(decoder(tokens, own, sizes, parts), tokens)
        optimizer.zero_grad()
        now.backward()
        optimizer.step()
        losses.append(now.item())
    return losses


def _ask(
    name: str,
    random: Random,
    *,
    blocks: int = 1,
    tied: bool = False,
    steps: int = 4,
    rate: float = 0.01,
    frozen: tuple[str, ...] | None = None,
    before: str = "",
    after: str = "",
    shape: tuple[int, int] = (2, 4),
) -> Case:
    rest = "" if frozen is None else f", {frozen!r}"
    call = f"by_heart(model, loss, weights, sizes, parts, tokens, {steps}, {rate}{rest})"
    return script(
        name,
        MODEL + before + f"y = {call}\ny\n" + after,
        tokens=integers(random, *shape, low=0, high=4, dtype=torch.int64),
        weights=random_weights(random, blocks, 3, 2, 1, 1, 4, 5, tied),
        sizes={"heads": 2, "kv_heads": 1, "theta": 10.0, "eps": 0.01},
    )


ENDS = ("embedding", "norm", "head")
AGAIN = "by_heart(model, loss, weights, sizes, parts, tokens, 2, 0.1)"
CUT = 'parts["last"] = lambda x: x.detach()\n'
ALREADY = """\
for each in [weights["embedding"], weights["norm"], *weights["blocks"][0].values()]:
    each.requires_grad_()
"""


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _ask("other sizes", fixed, blocks=2, steps=5, shape=(3, 5)),
        _ask("other sizes", fixed, blocks=2, tied=True, steps=3, rate=0.1),
        _ask("other rates", fixed, rate=0.001),
        _ask("other rates", fixed, rate=0.3, steps=6),
        _ask("a single step", fixed, steps=1),
        _ask("some parts are frozen", fixed, blocks=2, frozen=("blocks",)),
        _ask("some parts are frozen", fixed, tied=True, frozen=("embedding", "norm")),
        _ask("some parts are frozen", fixed, frozen=("head",), steps=5),
        edge(_ask("no blocks", fixed, blocks=0)),
        edge(_ask("no steps", fixed, steps=0)),
        edge(_ask("weights that ask for gradients already", fixed, tied=True, before=ALREADY)),
        edge(_ask("twice from the same weights", fixed, after=AGAIN)),
        *(_ask("other sizes", random, blocks=blocks, steps=3, shape=(2, 5)) for blocks in (1, 2)),
    ]


by_heart = Exercise(
    "by_heart",
    points=3,
    minutes=10,
    difficulty=2,
    reference=with_pytree,
    cases=[
        _ask("one block", Random(1)),
        _ask("two blocks, tied: no head of its own", Random(2), blocks=2, tied=True),
        _ask("larger steps", Random(3), rate=0.1, steps=6),
        _ask("embedding, norm and head are frozen", Random(4), blocks=2, frozen=ENDS),
        _ask("the blocks are frozen", Random(5), blocks=1, frozen=("blocks",)),
        _ask("the gradient is cut before the norm, the ends are frozen", Random(9), frozen=ENDS, before=CUT),
        edge(_ask("weights that ask for gradients already", Random(6), before=ALREADY)),
        edge(_ask("the weights afterwards", Random(8), after="weights")),
    ],
    hidden_cases=_hidden,
    hints=[
        "Copy first: tensor.detach().clone().requires_grad_() is a separate leaf. Make new dictionaries and lists, "
        "too: a recursive function is shortest.",
        "The optimizer needs a flat list of the leaves that are trained. Collect them while you copy.",
        "In each step: the loss, zero_grad, backward, step. Record the loss before the step, as a number.",
    ],
)


by_heart.variant(with_pytree)
by_heart.slips(
    with_pytree,
    {
        "        optimizer.zero_grad()\n → ": "You never clear the gradients, and `backward` adds to them. So each "
        "step also follows the gradients of all steps before: call `zero_grad`.",
        ".clone() → ": "You train the weights that you were given. Train a copy: the next run starts from the same "
        "weights.",
        'not in frozen → not in (*frozen, "blocks")': "You do not train the tensors inside the blocks. They are two "
        "levels down, in a list of dictionaries.",
        " if name not in frozen → ": "You ignore `frozen`: you train everything.",
        "name not in frozen → name in frozen or not frozen": "You train only the parts named in `frozen`. Those are "
        "the parts to leave unchanged.",
        "        optimizer.step()\n → ": "Your model learns nothing: the loss is the same in every step. Do the model "
        "and the optimizer have the same tensors? Does `zero_grad` come before `backward`?",
        "trained = torch → for w in torch.utils._pytree.tree_leaves([own[name] for name in own if name in "
        "frozen]):\n        w.requires_grad_(False)\n    trained = torch": "Your frozen copies do not require "
        "gradients, so `backward()` raises an error where the only path to a trained weight is cut. Let all copies "
        "require gradients, and leave the frozen ones out of the optimizer.",
        "now.item() → loss(decoder(tokens, own, sizes, parts), tokens).item()": "You record the loss after the step. "
        "Record it before: the first number is the loss before anything is learned.",
        "range(steps) → range(steps + 1)": "You return one loss too many. Return `steps` losses, each from before its "
        "step.",
        "return losses → return losses[-1]": "You return only the last loss. Return all of them, one for each step.",
        "AdamW → Adam": "Your optimizer has no weight decay: it is Adam, or the decay is set to 0. AdamW's default is "
        "0.01.",
        ", lr=rate → ": "`rate` does not reach the optimizer: yours uses its default, 0.001.",
        "AdamW → SGD": "That is plain gradient descent. AdamW divides each gradient by its usual size.",
        "now = → optimizer = torch.optim.AdamW(trained, lr=rate)\n        now =": "You make a new optimizer in every "
        "step, so AdamW forgets the averages that it keeps.",
        "now.item() → now.exp().item()": "You return perplexities, e to the loss. Return the losses.",
        "decoder(tokens, own → decoder(tokens, weights": "Your model reads the weights that were given, so the copies "
        "in the optimizer get no gradient. Pass the copy to `decoder`.",
        'for name in own if → for name in ("embedding", "blocks", "norm", "head") if': 'You read "head" even from a '
        "tied model, which has none. Copy the names that are there.",
        'own = torch → weights = {"head": weights["embedding"], **weights}\n    own = torch': "You give a tied model a "
        "head of its own. It has none: the embedding must stay the head in every step.",
        ".detach() → ": "You clone tensors that require gradients. Such a clone is not a leaf, so the optimizer "
        "rejects it: call `.detach()` first.",
        "parts), tokens) → parts)[:, :-1], tokens[:, 1:])": "You shift the tokens, too. `loss` compares position t "
        "with token t + 1 already.",
    },
)
