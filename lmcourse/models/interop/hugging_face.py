"""Use the package transformers, which is optional."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.base.errors import CourseError


def import_transformers() -> Any:
    """Import the package transformers, quiet and offline; raise CourseError if it is not installed."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import transformers
    except ImportError:
        raise CourseError("a comparison needs the package transformers: pip install 'lmcourse[parity]'") from None
    logging.getLogger("transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    return transformers


@contextmanager
def saved_llama() -> Iterator[tuple[Path, Int[Tensor, "b s"], Float[Tensor, "b s v"]]]:
    """Write a small random LLaMA of transformers into a folder, and give the folder, tokens and the model's logits.

    Its norms are random too: with their usual ones, a model that forgets them would give the same logits.
    """
    transformers = import_transformers()
    sizes = {"hidden_size": 60, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 14}
    config = transformers.LlamaConfig(
        vocab_size=97, num_hidden_layers=3, intermediate_size=70, max_position_embeddings=64, rms_norm_eps=1e-3, **sizes
    )
    generator = torch.Generator().manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    tokens = torch.randint(97, (2, 40), generator=generator)
    with TemporaryDirectory() as folder, torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.copy_(weight + 0.3 * noise if weight.ndim == 1 else weight.shape[-1] ** -0.5 * noise)
        model.save_pretrained(folder)
        yield Path(folder), tokens, model(input_ids=tokens, use_cache=False).logits
