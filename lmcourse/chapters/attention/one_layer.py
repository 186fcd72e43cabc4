"""The open task of notebook 08: inspect an attention layer, and measure whether one such layer learns to copy."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from statistics import fmean

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmcourse.chapters.attention.induction import LENGTH, SHORTEST, VOCABULARY, learn_to_copy, repeating_texts
from lmcourse.chapters.attention.replace_attention import MultiHead
from lmcourse.exercises.open_task import Unfit
from lmcourse.training.copying import D_MODEL, HEADS, AttentionOnly, triangle, turn

_CHANGED_FROM = (1, 5, 9, 20, 30)
_SHORTER = (2, 9, 20)
_SAME = 1e-5
_USED = 0.01
_COPIES = 2.0
_WEIGHTS = ("w_q", "w_k", "w_v", "w_out")


def measure_copying(attention: MultiHead, seeds: list[int], layers: int = 1) -> dict[str, float]:
    """Train a model for each seed; return each loss per copied token, and their mean, in nats.

    A loss is that of the last 20 steps, or that of new texts which the model reads token by token, if this is larger.
    So a layer that hides how it reads the future gains nothing.
    """
    losses = []
    for seed in seeds:
        run = learn_to_copy(attention, layers, seed)
        losses.append(max(run.end, _token_by_token(run.model)))
        _has_learned(run.model)
    return {f"run {number}": loss for number, loss in enumerate(losses, 1)} | {"mean": fmean(losses)}


@torch.no_grad()
def _token_by_token(model: AttentionOnly) -> float:
    """Return the loss per copied token of new texts. To predict a token, the model gets the tokens before it alone."""
    tokens, periods = repeating_texts(128, torch.Generator().manual_seed(1000))
    losses = []
    for seen in range(SHORTEST + 1, LENGTH):
        copied = tokens[periods < seen]
        losses.append(F.cross_entropy(model(copied[:, :seen])[:, -1], copied[:, seen], reduction="none"))
    return torch.cat(losses).mean().item()


def _has_learned(model: AttentionOnly) -> None:
    """Raise `Unfit` if the model copies as well with random numbers in place of one of its first layer's matrices."""
    for place, name in enumerate(_WEIGHTS):
        with_another = deepcopy(model)
        matrix = with_another.layers[0].data[place]
        matrix.copy_(matrix.std() * torch.randn(matrix.shape, generator=torch.Generator().manual_seed(0)))
        if _token_by_token(with_another) < _COPIES:
            raise Unfit(f"The trained model copies with a random `{name}`, too. Let it learn what to look for.")


def inspect_layer(attention: MultiHead) -> None:
    """Call a layer as training does; raise `Unfit` if it reads the future or does not use all that it gets."""
    layer = _Probe(attention)
    result = layer(layer.tokens)
    if not torch.equal(layer(layer.tokens), result):
        raise Unfit("Called again with the same inputs, your layer returns something else. Keep and draw nothing.")
    for first in _CHANGED_FROM:
        _reads_only_the_past(layer, result, first)
    for length in _SHORTER:
        if _differ(layer(layer.tokens[:, :length]), result[:, :length]).any():
            raise Unfit(f"The results of the first {length} tokens depend on how long the text is.")
    for place, name in enumerate(_WEIGHTS):
        if (layer(layer.tokens, redrawn=place) - result).norm() < _USED * result.norm():
            raise Unfit(f"`{name}` is not used: with another one, your layer returns the same. It has to use all four.")
    if not _differ(layer(layer.tokens, change=torch.zeros_like), result).any():
        raise Unfit("`change` is not used: where it is given, apply it to the heads' results, as in Exercise 4.")


class _Probe:
    """Calls a layer with the inputs that it gets in training, of a model that has not learned anything."""

    def __init__(self, attention: MultiHead) -> None:
        generator = torch.Generator().manual_seed(0)
        self.attention = attention
        self.tokens = repeating_texts(32, generator)[0][:, :-1]  # in training the last token is only predicted
        self._embedding = torch.randn(VOCABULARY, D_MODEL, generator=generator).requires_grad_()
        self._weights, self._others = torch.randn(2, 4, D_MODEL, D_MODEL, generator=generator) / D_MODEL**0.5

    def __call__(
        self, tokens: Int[Tensor, "b s"], redrawn: int | None = None, change: Callable[[Tensor], Tensor] | None = None
    ) -> Float[Tensor, "b s d"]:
        """Return the layer's result on these texts; `redrawn` is the place of a matrix to replace by another."""
        x = F.rms_norm(self._embedding[tokens], (D_MODEL,))
        weights = self._weights.clone()
        if redrawn is not None:
            weights[redrawn] = self._others[redrawn]
        before = x.detach().clone(), weights.clone()
        options = {"change": change} if change else {}
        visible = triangle(tokens.shape[1], tokens.shape[1])
        weights.requires_grad_()
        result = self.attention(x, x, *weights, HEADS, visible=visible, turn=turn, **options)
        if not isinstance(result, Tensor) or result.shape != x.shape:
            shape = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else type(result).__name__
            raise Unfit(f"Return a tensor of the shape of x, here {tuple(x.shape)}; yours is of {shape}.")
        if not all(map(torch.equal, (x, weights), before)):
            raise Unfit(
                "Your layer changes its inputs in place. Return a new tensor, and leave x and the weights alone."
            )
        if not result.isfinite().all():
            token = int((~result.isfinite()).any(dim=-1).any(dim=0).nonzero()[0])
            raise Unfit(f"At token {token} your layer returns NaN or ∞. A query without any visible key gives NaN.")
        return result.detach()


def _reads_only_the_past(layer: _Probe, result: Float[Tensor, "b s d"], first: int) -> None:
    """Raise `Unfit` if tokens from `first` on in every second text change earlier tokens, or the other texts."""
    knows = _changed(layer, result, slice(first, None))
    if knows[1::2].any():
        raise Unfit("Text 1 gets another result if only text 0 is changed. Each text is read alone.")
    if knows[:, :first].any():
        token = int(knows[:, :first].any(dim=0).nonzero()[0])
        later = range(token + 1, result.shape[1])
        known = next((each for each in later if _changed(layer, result, slice(each, each + 1))[:, token].any()), first)
        if known == result.shape[1] - 1:
            raise Unfit(
                f"At token {token} your layer knows the last token: a roll brings the end of a text to its start."
            )
        raise Unfit(f"It reads the future: at token {token} your layer knows token {known}.")


def _changed(layer: _Probe, result: Float[Tensor, "b s d"], where: slice) -> Bool[Tensor, "b s"]:
    """Return which results change with the tokens of every second text at these positions."""
    tokens = layer.tokens.clone()
    tokens[::2, where] = (tokens[::2, where] + 7) % VOCABULARY
    return _differ(layer(tokens), result)


def _differ(a: Float[Tensor, "b s d"], b: Float[Tensor, "b s d"]) -> Bool[Tensor, "b s"]:
    return (a - b).abs().amax(dim=-1) > _SAME * b.abs().max()
