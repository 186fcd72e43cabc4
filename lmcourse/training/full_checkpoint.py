"""A checkpoint of one process: weights as safetensors, everything else in `state.pt`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model
from torch import nn

from lmcourse.training.checkpoint_format import MODEL, STATE, commit_checkpoint, digest, staging_folder


def write_full(path: Path, model: nn.Module, state: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """Write a checkpoint; it appears under its name when all of it is on the disk.

    Args:
        path: the folder. One that is there already is replaced.
        model: whose weights are saved.
        state: tensors and plain values, such as optimizer states.
        manifest: what can be read without torch, as JSON.

    Raises:
        UnwrittenCheckpointError: it cannot be written, as on a full disk.
    """
    with staging_folder(path) as staging:
        save_model(model, str(staging / MODEL))
        torch.save(dict(state), staging / STATE)
        digests = {name: digest(staging / name) for name in (MODEL, STATE)}
        commit_checkpoint(staging, path, manifest, digests)


def load_full(path: Path, model: nn.Module) -> None:
    """Give a model on one device the weights of such a checkpoint."""
    load_model(model, path / MODEL)
