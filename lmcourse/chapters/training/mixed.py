"""Dtypes inside one training step under autocast."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.chapters.training.widths import WINDOW, make_model, story_bytes
from lmcourse.data.loader import Loader

SHOWN = {
    "embedding": "stream after the embedding",
    "blocks.0.attention.input_norm": "output of the norm",
    "blocks.0.attention.layer.qkv": "queries, keys, values",
    "blocks.0": "stream after the block",
    "head": "logits",
}
"""Modules whose output is shown, by their names in the model."""


def dtypes_of_a_step(dtype: torch.dtype) -> dict[str, str]:
    """Return the dtypes in one training step of a block of width 32: forward pass and loss under autocast."""
    model, found = make_model(32), {}
    names = {module: name for name, module in model.named_modules()}

    def note(module: nn.Module, given: Any, output: Tensor) -> None:
        found[SHOWN[names[module]]] = output.dtype

    for name in SHOWN:
        model.get_submodule(name).register_forward_hook(note)
    batch = next(Loader(story_bytes(), 2, WINDOW, seed=0, prefetch=0))
    with torch.autocast("cpu", dtype):
        logits = model(batch.inputs)
        loss = F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        found["softmax of the logits"] = logits.softmax(-1).dtype
    loss.backward()  # type: ignore[no-untyped-call]
    found = {"weights": model.head.linear.weight.dtype, **found, "cross-entropy": loss.dtype}
    gradient = model.head.linear.weight.grad
    assert gradient is not None
    return {what: str(each).removeprefix("torch.") for what, each in {**found, "gradients": gradient.dtype}.items()}
