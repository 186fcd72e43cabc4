"""Pairs of texts that differ in their first copy, for patching: one head's result is taken from another run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmcourse.chapters.attention.induction import LENGTH, repeating_texts
from lmcourse.training.copying import AttentionOnly, Change

Loss = Callable[..., float]
"""Takes a text and a `Change` or None; returns a loss."""


@dataclass(frozen=True)
class TextPair:
    """Texts A, which repeat, and texts B, which have another first copy before the same continuation.

    Attributes:
        clean: the texts A.
        corrupted: the texts B.
        copied: True where the next token belongs to A's second copy, which an earlier copy predicts in A, not in B.
        misleading: for these tokens, what stands in the first copy of B in the place of the right token.
    """

    clean: Int[Tensor, "b s"]
    corrupted: Int[Tensor, "b s"]
    copied: Bool[Tensor, "b s-1"]
    misleading: Int[Tensor, "b s-1"]


def corrupted_texts(count: int = 128) -> TextPair:
    """Draw this many pairs of texts, always the same ones."""
    clean, periods = repeating_texts(count, torch.Generator().manual_seed(5))
    other, _ = repeating_texts(count, torch.Generator().manual_seed(6))
    position, periods = torch.arange(LENGTH), periods[:, None]
    copied = (position >= periods) & (position < 2 * periods - 1)
    corrupted = torch.where(position < periods, other, clean)
    misleading = corrupted.gather(1, (position + 1 - periods).clamp(min=0))
    return TextPair(clean, corrupted, copied[:, :-1], misleading[:, :-1])


def copying_loss(model: AttentionOnly, texts: TextPair) -> Loss:
    """Return a function that runs the model on texts A or B and returns the loss on A's copied tokens.

    Its second argument, if given, is called with each layer's index and its heads' results, layer after layer; the
    model continues with what it returns.
    """

    @torch.no_grad()
    def loss(text: Int[Tensor, "b s"], change: Change | None = None) -> float:
        losses = F.cross_entropy(model(text[:, :-1], change).mT, texts.clean[:, 1:], reduction="none")
        return losses[texts.copied].mean().item()

    return loss


@torch.no_grad()
def misled(model: AttentionOnly, texts: TextPair, patched: tuple[int, int] | None = None) -> float:
    """Return the mean probability, in runs on B, of the token that the first copy of B has in the right one's place.

    Args:
        patched: a layer and a head, whose result is taken from the run on A.
    """
    recorded: dict[int, Tensor] = {}
    model(texts.clean[:, :-1], lambda layer, results: recorded.setdefault(layer, results))

    def change(layer: int, results: Tensor) -> Tensor:
        changed = results.clone()
        if patched and layer == patched[0]:
            changed[:, patched[1]] = recorded[layer][:, patched[1]]
        return changed

    probabilities: Tensor = model(texts.corrupted[:, :-1], change).softmax(dim=-1)
    differs = texts.copied & (texts.misleading != texts.clean[:, 1:])
    return probabilities.gather(-1, texts.misleading[..., None])[differs].mean().item()


def toy_loss(rule: Callable[[list[float], list[float]], float]) -> Loss:
    """Return a loss of two layers of heads, for which it is known what each head does.

    A text is a tensor (2, b, heads, s, d): layer 0 returns its first part, and layer 1 adds its second part to what
    layer 0 returned. `rule` makes the loss from the root mean square of each head's results in layer 0 and in layer 1,
    which an average of them does not keep.
    """

    def loss(text: Float[Tensor, "2 b h s d"], change: Change | None = None) -> float:
        used = change or (lambda layer, results: results)
        first = used(0, text[0].clone())  # as in a model, results are not the text: a change may write into them
        second = used(1, text[1] + first)
        return rule(*(each.square().mean(dim=(0, 2, 3)).sqrt().tolist() for each in (first, second)))

    return loss
