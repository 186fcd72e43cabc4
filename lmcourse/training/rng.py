"""The random generators that a run may use: one seed for all, and their states to save."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def seed_all(seed: int, *more: int) -> None:
    """Seed Python's, NumPy's and torch's generators, the latter on every device.

    Args:
        seed: of the run.
        more: what tells apart those that must not draw the same; all 0 is as if there were none.
    """
    if any(more):
        seed = int(np.random.SeedSequence([seed, *more]).generate_state(1, np.uint64)[0]) >> 1
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def rng_states() -> dict[str, Any]:
    """The states of all generators, as plain values and tensors; of GPUs, the one in use, if one is."""
    drawn = np.random.get_state(legacy=False)
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return {
        "python": random.getstate(),
        "numpy": {**drawn, "state": {**drawn["state"], "key": drawn["state"]["key"].tolist()}},
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if in_use else None,
    }


def set_rng_states(states: dict[str, Any]) -> None:
    """Put all generators where they were; a GPU's only if there is one here and was one in use there."""
    random.setstate(states["python"])
    drawn = states["numpy"]
    np.random.set_state({**drawn, "state": {**drawn["state"], "key": np.array(drawn["state"]["key"], np.uint32)}})
    torch.set_rng_state(states["torch"])
    if torch.cuda.is_available() and states["cuda"] is not None:
        torch.cuda.set_rng_state(states["cuda"])
