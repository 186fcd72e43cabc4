"""Gradients of one layer and of whole untrained models, and the two ways on which they pass a branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.models.initialize import initialize
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn.block import Placement, Residual
from lmcourse.nn.norm import TensorFunction, identity

Pullback = Callable[[Tensor], Tensor]
WithPullback = Callable[[Tensor], tuple[Tensor, Pullback]]


def input_gradient(scale: float, norm: TensorFunction = identity) -> tuple[Tensor, Tensor]:
    """Return the input of a layer, (16, 64), and the gradient of half its squared output with respect to the input.

    Args:
        scale: the size of the input's features.
        norm: a norm before the layer.
    """
    generator = torch.Generator().manual_seed(0)
    features, matrix = torch.randn(16, 64, generator=generator), torch.randn(64, 32, generator=generator) / 8
    x = (scale * features).requires_grad_()
    (gradient,) = torch.autograd.grad((norm(x) @ matrix).square().sum() / 2, x)
    return x.detach(), gradient


def untrained(
    blocks: int, placement: Placement, rule: Literal["fan_in", "gpt2"] = "fan_in", seed: int = 0
) -> tuple[Transformer, Int[Tensor, "8 33"]]:
    """Return a LLaMA-like model of width 64, initialised by `rule`, and random tokens for it."""
    torch.manual_seed(seed)
    config = llama_like(blocks, 64, 4, 128, vocab_size=128, context=32, block={"placement": placement})
    model = Transformer(config.with_(final_norm=None) if placement == "post" else config)
    initialize(model, rule)
    return model, torch.randint(128, (8, 33))


def block_gradients(blocks: int, placement: Placement, seed: int = 0) -> list[float]:
    """Return the norm of the gradient of each block's `down` matrix in an untrained model."""
    model, tokens = untrained(blocks, placement, seed=seed)
    _backward(model, tokens)
    down = (weight for name, weight in model.named_parameters() if name.endswith("down.weight"))
    return [weight.grad.norm().item() for weight in down if weight.grad is not None]


@dataclass(frozen=True)
class GradientSplit:
    """The gradient at the start of each branch over the gradient at its end, without the first block's branches.

    Attributes:
        parts: for each branch, the norms of the straight part, of the part through the branch, and of their sum.
    """

    parts: Float[Tensor, "branches 3"]

    @property
    def means(self) -> list[float]:
        """The geometric means of the three columns, over the attention layers and over the feed-forward layers."""
        return [mean for half in (0, 1) for mean in self.parts[half::2].log().mean(dim=0).exp().tolist()]

    @property
    def straight(self) -> float:
        """The product of the straight parts of all branches."""
        return self.parts[:, 0].double().prod().item()

    @property
    def both(self) -> float:
        """The product of the whole gradients of all branches."""
        return self.parts[:, 2].double().prod().item()


def split_gradients(
    ways_back: Callable[..., tuple[Tensor, Tensor]], model: Transformer, tokens: Int[Tensor, "b s"]
) -> GradientSplit:
    """Run a model forwards and backwards once, and split the gradient of every branch with `ways_back`.

    Args:
        ways_back: takes (x, dy, f, before, after, placement), as in the notebook; a branch's factor belongs to f.
        model: a model with serial blocks.
        tokens: texts, whose next tokens it predicts.
    """
    placement = model.config.block.placement
    seen: list[tuple[Residual, tuple[Tensor, ...], Tensor]] = []

    def note(branch: Residual, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        output.retain_grad()
        seen.append((branch, inputs, output))

    hooks = [each.register_forward_hook(note) for each in model.modules() if isinstance(each, Residual)]
    _backward(model, tokens)
    for hook in hooks:
        hook.remove()
    rows = []
    for branch, (x, *context), output in seen[2:]:  # the embedding, which the first two read, has another size
        after = branch.post_norm if placement == "post" else branch.output_norm
        functions: tuple[TensorFunction, ...] = (partial(_scaled, branch, context=context), branch.input_norm, after)
        dy = output.grad
        assert dy is not None
        straight, through = ways_back(x.detach(), dy, *map(with_pullback, functions), placement)
        rows.append([(part.norm() / dy.norm()).item() for part in (straight, through, straight + through)])
    return GradientSplit(torch.tensor(rows))


def with_pullback(function: TensorFunction) -> WithPullback:
    """Return the function in a form that returns its value and its pullback."""

    def call(h: Tensor) -> tuple[Tensor, Pullback]:
        with torch.enable_grad():
            h = h.detach().requires_grad_()
            value = function(h)
        return value.detach(), lambda g: torch.autograd.grad(value, h, g)[0]

    return call


def split_table(splits: Mapping[str, GradientSplit]) -> str:
    """Return a table with a row for each split: geometric means, and products over all branches."""
    width = max(map(len, splits))
    branches = len(next(iter(splits.values())).parts)
    indent = " " * width
    lines = [
        f"{indent}        attention               SwiGLU           product of {branches} branches",
        f"{indent} straight  branch  both   straight  branch  both    straight        both",
    ]
    for name, split in splits.items():
        means = "".join(f"{mean:8.3f}" for mean in split.means)
        products = f"{split.straight:11.1e} {split.both:11.1e}"
        lines.append(f"{name:{width}} {means} {products}")
    return "\n".join(lines)


def _scaled(branch: Residual, h: Tensor, context: list[Any]) -> Tensor:
    return branch.scale * branch.layer(h, *context)  # type: ignore[no-any-return]


def _backward(model: Transformer, tokens: Int[Tensor, "b s"]) -> None:
    next_token_loss(model(tokens[:, :-1]), tokens[:, 1:]).backward()  # type: ignore[no-untyped-call]
