"""Run a small story model while its parts or its stream are replaced, and record both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.chapters.inside.words import Paragraphs, paragraphs
from lmcourse.exercises.measured import one_thread

LAYERS, HEADS, UNITS = 2, 4, 128

Place = tuple[str, int]
"""Where the parts of a layer are: ("heads", layer) or ("units", layer)."""

Change = Callable[[str, int, Tensor], Tensor]
"""Takes "heads", a layer and its heads' results, (b, heads, s, d_head), or "units", a layer and its hidden numbers,
(b, s, units); returns what the model uses in their place."""

Edit = Callable[[int, Tensor], Tensor]
"""Takes 0 and the embedded words, or the number of blocks that were passed and the stream after them, (b, s, d);
returns the stream to continue with."""


def _heads_changed(change: Change, layer: int, _: nn.Module, given: tuple[Tensor]) -> Tensor:
    results = rearrange(given[0], "b s (h d) -> b h s d", h=HEADS)
    return rearrange(change("heads", layer, results), "b h s d -> b s (h d)")


def _units_changed(change: Change, layer: int, _: nn.Module, given: tuple[Tensor]) -> Tensor:
    return change("units", layer, given[0])


def _stream_edited(edit: Edit, passed: int, _: nn.Module, __: Any, stream: Tensor) -> Tensor:
    return edit(passed, stream)


@contextmanager
def edited(model: Any, change: Change | None = None, edit: Edit | None = None) -> Iterator[None]:
    """Let a model of the course call `change` for the parts and `edit` for the stream while the block runs."""

    hooks = []
    if change is not None:
        for layer, block in enumerate(model.blocks):
            hooks.append(block.attention.layer.out.register_forward_pre_hook(partial(_heads_changed, change, layer)))
            units = partial(_units_changed, change, layer)
            hooks.append(block.feed_forward.layer.down.register_forward_pre_hook(units))
    if edit is not None:
        for passed, module in enumerate((model.embedding, *model.blocks)):
            hooks.append(module.register_forward_hook(partial(_stream_edited, edit, passed)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def story_run(model: nn.Module, test: Paragraphs) -> Callable[..., float]:
    """Return `run(tokens, edit=None, change=None)`: the mean odds of the heroes of `test` after these tokens."""

    @one_thread()
    @torch.no_grad()
    def run(tokens: Int[Tensor, "b s"], edit: Edit | None = None, change: Change | None = None) -> float:
        with edited(model, change, edit):
            return test.odds(model(tokens)).mean().item()

    return run


@one_thread()
@torch.no_grad()
def loss_before_so(model: nn.Module, test: Paragraphs, change: Change | None = None, edit: Edit | None = None) -> float:
    """Return the mean loss of the words after the second one, up to "So", in nats."""
    with edited(model, change, edit):
        losses = F.cross_entropy(model(test.texts)[:, :-1].mT, test.texts[:, 1:], reduction="none")
    place = torch.arange(1, test.texts.shape[1])
    return losses[(place > 1) & (place <= test.ends[:, None])].mean().item()


@one_thread()
@torch.no_grad()
def recorded(model: nn.Module, tokens: Int[Tensor, "b s"]) -> dict[Place, Tensor]:
    """Return what the heads and units of each layer compute: (b, heads, s, d_head) and (b, s, units)."""
    found: dict[Place, Tensor] = {}
    with edited(model, lambda kind, layer, values: found.setdefault((kind, layer), values)):
        model(tokens)
    return found


@one_thread()
@torch.no_grad()
def streams(model: nn.Module, tokens: Int[Tensor, "b s"]) -> list[Float[Tensor, "b s d"]]:
    """Return the stream: the embedded words, and after each block."""
    found: list[Tensor] = []
    with edited(model, edit=lambda _, stream: found.append(stream) or stream):  # type: ignore[func-returns-value]
        model(tokens)
    return found


def mean_parts(model: nn.Module) -> dict[Place, Tensor]:
    """Return the mean of each part over all words of 512 paragraphs: (heads, d_head) and (units,)."""
    seen = paragraphs(79, 512)
    words = torch.arange(seen.texts.shape[1]) <= seen.ends[:, None]
    values = recorded(model, seen.texts)
    return {place: (v.transpose(1, 2) if place[0] == "heads" else v)[words].mean(dim=0) for place, v in values.items()}


@torch.no_grad()
def parts_at_so(model: Any, test: Paragraphs) -> dict[str, Float[Tensor, "b d"]]:
    """Return what each part adds to the stream at "So". Their sum is the last stream."""
    parts = {"embedding": test.at_so(streams(model, test.texts)[0])}
    values = recorded(model, test.texts)
    for layer, block in enumerate(model.blocks):
        results = test.at_so(values["heads", layer].transpose(1, 2))
        matrices = block.attention.layer.out.weight.chunk(HEADS, dim=1)
        for head, matrix in enumerate(matrices):
            parts[f"layer {layer} head {head}"] = results[:, head] @ matrix.T
        parts[f"layer {layer} units"] = block.feed_forward.layer.down(test.at_so(values["units", layer]))
    return parts
