"""Measurements that cells of the notebook make besides those of the learner's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.chapters.inside.cut import UNITS, Change, Edit, mean_parts, recorded, story_run, streams
from lmcourse.chapters.inside.words import Paragraphs, paragraphs

STREAMS = ("embedded", "after block 0", "after block 1")

Task = tuple[tuple[Any, ...], Tensor, Tensor]
"""The arguments of a probe; the vectors to try it on, and their classes."""


def only(kind: str, layer: int, f: Callable[[Tensor], Tensor]) -> Change:
    """Return the change that applies `f` to the "heads" or "units" of one layer."""
    return lambda at_kind, at, values: f(values) if (at_kind, at) == (kind, layer) else values


def edit_at(layer: int, f: Callable[[Tensor], Tensor], where: Bool[Tensor, "b s"] | None = None) -> Edit:
    """Return the edit that applies `f` to the stream of one layer: to all of it, or to the words `where`, (n, d)."""

    def edit(at: int, stream: Tensor) -> Tensor:
        if at != layer:
            return stream
        return f(stream) if where is None else stream.masked_scatter(where[..., None], f(stream[where]))

    return edit


def lost_without_units(model: nn.Module, test: Paragraphs, layer: int) -> dict[str, float]:
    """Return which fraction of the odds is lost if all units of a layer are replaced: by zero, mean, other hero."""
    run, other = story_run(model, test), recorded(model, test.others)["units", layer]
    values = {"zero": torch.zeros(UNITS), "mean": mean_parts(model)["units", layer], "other hero": other}
    clean, wrong = run(test.texts), run(test.others)
    cut = {how: run(test.texts, change=only("units", layer, value.expand_as)) for how, value in values.items()}
    return {how: (clean - odds) / (clean - wrong * (how == "other hero")) for how, odds in cut.items()}


def class_means(x: Float[Tensor, "n d"], labels: Int[Tensor, " n"]) -> Float[Tensor, "k d"]:
    """Return the mean vector of each class."""
    return torch.stack([x[labels == one].mean(dim=0) for one in range(int(labels.max()) + 1)])


def directions(model: nn.Module, layer: int) -> dict[str, Float[Tensor, "k d"]]:
    """Return the means of the stream at "So" by hero and by place, over 800 paragraphs, and eight points at random."""
    learn = paragraphs(88, 800)
    x = learn.at_so(streams(model, learn.texts)[layer])
    chance = x.mean(dim=0) + torch.randn(8, x.shape[1], generator=torch.Generator().manual_seed(2))
    return {"hero": class_means(x, learn.hero), "place": class_means(x, learn.place), "7 at random": chance}


def probe_tasks(model: nn.Module) -> Iterator[tuple[str, dict[str, Task]]]:
    """Yield for each stream at "So" what probes are fitted on, 800 paragraphs, and tried on, 400 new ones."""
    learn, new = paragraphs(88, 800), paragraphs(177, 400)
    shuffled = learn.hero[torch.randperm(len(learn.hero), generator=torch.Generator().manual_seed(1))]
    for name, one, two in zip(STREAMS, streams(model, learn.texts), streams(model, new.texts), strict=True):
        x, y = learn.at_so(one), new.at_so(two)
        yield (
            name,
            {
                "hero": ((x, learn.hero, 8), y, new.hero),
                "place": ((x, learn.place, 4), y, new.place),
                "shuffled": ((x, shuffled, 8), y, new.hero),
                "60 shuffled, on themselves": ((x[:60], shuffled[:60], 8, 0.001), x[:60], shuffled[:60]),
            },
        )
