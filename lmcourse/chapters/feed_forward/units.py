"""The loss of a text without some hidden units, in the trained model with feed-forward layers of the learner's.

A submission's process imports this module too, so it must not import the exercises.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.data.help_texts import help_texts
from lmcourse.exercises.measured import one_thread
from lmcourse.exercises.open_task import Remark, Unfit
from lmcourse.pretrained import load_pretrained

Change = Callable[[int, Tensor], Tensor]
"""Takes a layer's index and its hidden numbers, (…, d_ff); returns the numbers to use in their place."""

Unit = tuple[int, int]
"""A hidden unit: its layer and its number there, both from 0."""

LAYERS, WIDTH, LENGTH, K = 4, 352, 128, 8
PARTS = ("yours", "public", "hidden")
KINDS: dict[str, Callable[[str], bool]] = {
    "closing bracket": lambda piece: piece.startswith(")"),
    "quote": lambda piece: piece.startswith("'"),
    "whole number": lambda piece: piece.strip().isdigit(),
    "li": lambda piece: piece.strip() == "li",
}

NO_LIST = "`silence` must return a list of pairs, (layer, unit), with whole numbers."
TOO_MANY = "You switch off {count} units. At most k = {k} were asked for."
TWICE = "A unit is in your list twice."
NO_UNIT = "There is no unit {unit}: layers are counted from 0 to 3, units from 0 to 351."
FEWER = "You select with a mask of {mask} texts from numbers of {read} texts: take `wanted[:{read}]`."
OUTSIDE = (
    "You select with a mask of shape {mask}, but here `wanted` has shape {wanted}. Use the argument, and no name "
    "outside the function."
)
REVERSED = "By the slopes, the loss *falls* most without your first units. Is your sign reversed?"
SLOPES = "Your first units are those with the largest slopes. What is lost depends on the hidden numbers, too."
LARGEST = "Your first units are the largest. What a unit says may be cancelled later: ask what the loss would do."
IDLE = "Without your units, brackets lose hardly more than without eight at random."
SAME = "You return the same units for two kinds of tokens. Use `wanted`: it says which tokens are meant."


def windows(part: str = "yours") -> Int[Tensor, "texts 128"]:
    """Return 60 windows of 128 tokens of the help texts: one third of 180, evenly spread.

    Raises:
        ValueError: there is no such part.
    """
    if part not in PARTS:
        raise ValueError(f"unknown part {part!r}; choose from {', '.join(PARTS)}")
    return help_texts()[0][1220 * LENGTH : 1400 * LENGTH].view(-1, LENGTH)[PARTS.index(part) :: len(PARTS)]


def of_kind(tokens: Int[Tensor, "*shape"], kind: str) -> Bool[Tensor, "*shape"]:
    """Return where a token is of this kind. ValueError for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; choose from {', '.join(KINDS)}")
    tokenizer = load_pretrained().tokenizer
    return torch.tensor([KINDS[kind](tokenizer.decode([token])) for token in range(512)])[tokens]


def swiglu(x: Tensor, w_gate: Tensor, w_value: Tensor, w_down: Tensor, kind: str, change: Any) -> Tensor:
    """Return the gated layer of the model, as Exercise 3 asks for it. The kind is always "swiglu"."""
    hidden = F.silu(x @ w_gate) * (x @ w_value)
    return (change(hidden) if change else hidden) @ w_down


class GluLayer(nn.Module):
    """A gated layer of the trained model that `glu_ffn` computes."""

    def __init__(self, layer: Any, number: int, glu_ffn: Callable[..., Tensor]) -> None:
        super().__init__()
        matrices = (*layer.gate_up.weight.chunk(2), layer.down.weight)
        self.matrices = [matrix.detach().T.contiguous() for matrix in matrices]
        self.number, self.glu_ffn = number, glu_ffn
        self.change: Change | None = None

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Apply the layer to each token's vector, with the model's change."""
        change = partial(self.change, self.number) if self.change else None
        return self.glu_ffn(x, *self.matrices, "swiglu", change)


class TextLoss:
    """The loss of every next token of some texts: `loss(change)`.

    Attributes:
        text: the tokens, (texts, s + 1).
        model: the trained model, whose feed-forward layers `glu_ffn` computes.
    """

    def __init__(self, text: Int[Tensor, "texts s"], glu_ffn: Callable[..., Tensor] = swiglu) -> None:
        self.text = text
        model: Any = load_pretrained().model.requires_grad_(requires_grad=False)
        self.model = model
        for number, block in enumerate(self.model.blocks):
            block.feed_forward.layer = GluLayer(block.feed_forward.layer, number, glu_ffn)

    def set(self, change: Change | None) -> None:
        """Let the layers of the model call `change` from now on."""
        for block in self.model.blocks:
            block.feed_forward.layer.change = change

    @one_thread()
    def __call__(self, change: Change | None = None, texts: int | None = None) -> Float[Tensor, "texts s"]:
        """Return the losses; `change` sees the hidden numbers of each layer. `texts`: read so many texts only."""
        self.set(change)
        read = self.text[:texts]
        logits = self.model(read[:, :-1])
        return F.cross_entropy(logits.mT, read[:, 1:], reduction="none")


@torch.no_grad()
def hidden_numbers(loss: TextLoss) -> Float[Tensor, "layers texts s d_ff"]:
    """Return the hidden numbers of all layers on the texts."""
    kept: list[Tensor] = []
    loss(lambda _, hidden: kept.append(hidden) or hidden)  # type: ignore[func-returns-value]
    return torch.stack(kept)


@torch.no_grad()
def continued(prompt: str, count: int, change: Change | None = None) -> str:
    """Return the prompt and the likeliest tokens that the model writes after it."""
    trained = load_pretrained()
    loss = TextLoss(torch.tensor([trained.tokenizer.encode(prompt)]))
    loss.set(change)
    for _ in range(count):
        loss.text = torch.cat([loss.text, loss.model(loss.text)[:, -1:].argmax(dim=-1)], dim=1)
    return trained.tokenizer.decode(loss.text[0].tolist())


def toy_loss(rule: Callable[[Sequence[Tensor], Sequence[Tensor]], Tensor]) -> Callable[..., Tensor]:
    """Return a loss of two texts of three tokens. `rule` computes it from the units of two layers, three units each.

    The layers have the same hidden numbers in every call, so a change in place spoils the next call.
    """
    numbers = torch.arange(36.0).reshape(2, 2, 3, 3)
    layers = [*(1 + numbers * 7 % 5)]

    def loss(change: Change | None = None) -> Tensor:
        changed = [change(layer, hidden) if change else hidden for layer, hidden in enumerate(layers)]
        return rule(*(hidden.unbind(-1) for hidden in changed))

    return loss


def without(units: Iterable[Unit]) -> Change:
    """Return the change that switches these units off."""
    on = torch.ones(LAYERS, WIDTH)
    for layer, unit in units:
        on[layer, unit] = 0
    return lambda layer, hidden: hidden * on[layer]


def inspect_silence(silence: Callable[..., Any]) -> None:
    """Raise Unfit if an answer does not return a list of at most k units. Known mistakes of others are remarks."""
    text = windows()[:2, :33]
    wanted = text[:, 1:] == text[0, 5]
    units = _asked(silence, TextLoss(text), wanted, 3)
    if len(units) == 3 and (remark := _remark(units, TextLoss(text), wanted)):
        warnings.warn(remark, Remark, stacklevel=1)


@torch.enable_grad()
def _remark(units: list[Unit], loss: TextLoss, wanted: Bool[Tensor, "texts s"]) -> str:
    """Return a sentence if the units come first in an order that a known mistake gives, or ""."""
    kept: list[Tensor] = []
    losses = loss(lambda _, hidden: kept.append(hidden.requires_grad_()) or hidden)  # type: ignore[func-returns-value]
    slopes = torch.stack(torch.autograd.grad(losses[wanted].mean(), kept))
    hidden = torch.stack(kept).detach()
    known = ((REVERSED, [hidden * slopes]), (SLOPES, [slopes, -slopes, slopes.abs()]), (LARGEST, [hidden.abs()]))
    for sentence, scores in known:
        for score in scores:
            for places in (torch.ones_like(wanted), wanted):
                sums = (score * places[..., None]).sum(dim=(1, 2))
                first = [divmod(at, WIDTH) for at in sums.flatten().topk(3).indices.tolist()]
                if units[:2] == first[:2] or {*units} == {*first}:
                    return sentence
    return ""


@one_thread()
def measure_silence(silence: Callable[..., Any], part: str, other: str) -> dict[str, float]:
    """Return what the units cost on another part of the text.

    Asked are the units of the closing brackets, then those of another kind: its loss must rise by more than the rest.
    """
    rises, found = [], []
    for kind in ("closing bracket", other):
        text = windows()
        units = _asked(silence, TextLoss(text), of_kind(text[:, 1:], kind), K)
        found.append({*units})
        text = windows(part)
        loss, wanted = TextLoss(text), of_kind(text[:, 1:], kind)
        with torch.no_grad():
            rise = loss(without(units)) - loss()
        rises.append((rise[wanted].mean().item(), rise[~wanted].mean().item()))
    if found[0] == found[1]:
        warnings.warn(SAME, Remark, stacklevel=1)
    (brackets, rest), (others, rest_of_others) = rises
    if abs(brackets) < 0.05:
        warnings.warn(IDLE, Remark, stacklevel=1)
    return {"brackets": brackets, "other tokens": rest, "another kind": others - rest_of_others}


def _asked(silence: Callable[..., Any], loss: TextLoss, wanted: Bool[Tensor, "texts s"], k: int) -> list[Unit]:
    """Return the units of an answer; raise Unfit if they are not valid, or if a mask does not fit."""
    try:
        return _checked(silence(loss, wanted, k), k)
    except IndexError as error:
        shapes = re.search(r"shape of the mask \[(.*?)\].* tensor \[(.*?)\]", str(error))
        if not shapes:
            raise
        mask, read = (tuple(map(int, part.split(", "))) for part in shapes.groups())
        if mask == wanted.shape and read[0] < mask[0]:
            raise Unfit(FEWER.format(mask=mask[0], read=read[0])) from None
        if mask == (60, LENGTH - 1) != wanted.shape:
            raise Unfit(OUTSIDE.format(mask=mask, wanted=tuple(wanted.shape))) from None
        raise


def _checked(units: Any, k: int) -> list[Unit]:
    """Return the list of an answer; raise Unfit if it is not one of at most k units of the model."""
    try:
        pairs = [(int(layer), int(unit)) for layer, unit in units]
    except (TypeError, ValueError):
        raise Unfit(NO_LIST) from None
    if len(pairs) > k:
        raise Unfit(TOO_MANY.format(count=len(pairs), k=k))
    if len(set(pairs)) < len(pairs):
        raise Unfit(TWICE)
    for layer, unit in pairs:
        if not (0 <= layer < LAYERS and 0 <= unit < WIDTH):
            raise Unfit(NO_UNIT.format(unit=(layer, unit)))
    return pairs
