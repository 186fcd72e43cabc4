"""Tiny models on stories: their training runs, and what is left of the embedding in an untrained one."""

from __future__ import annotations

import random
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from lmcourse.data.grammar import story_grammar
from lmcourse.data.loader import Loader
from lmcourse.exercises.measured import one_thread
from lmcourse.models.initialize import initialize
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn.block import Placement, Residual
from lmcourse.nn.norm import identity

BATCH, LENGTH = 8, 32


class Run(NamedTuple):
    """A training run: by step, the loss in nats per byte, and the norm of the gradient of the first block's `down`."""

    losses: list[float]
    gradients: list[float]

    @property
    def end(self) -> float:
        """The mean loss of the last ten steps."""
        return sum(self.losses[-10:]) / 10


@cache
def story_bytes() -> Int[Tensor, " 40000"]:
    """Return the bytes of short stories, always the same."""
    stories, source = story_grammar(), random.Random(0)
    return torch.tensor(list("".join(stories.generate(source) for _ in range(1500)).encode()))[:40_000]


def byte_entropy() -> float:
    """Return the loss of a model that knows only how frequent each byte of the stories is, in nats."""
    frequencies = torch.bincount(story_bytes()).double() / len(story_bytes())
    return float(-torch.special.xlogy(frequencies, frequencies).sum())


def tiny_llama(blocks: int, placement: Placement, seed: int, factor: float = 1.0) -> Transformer:
    """Build a LLaMA-like model of width 32 that reads bytes, with fan-in weights.

    Args:
        placement: where its norms are; only "post" has no norm before the head.
        factor: what each branch's output is multiplied by.
    """
    torch.manual_seed(seed)
    block = {"placement": placement, "residual_scale": factor}
    config = llama_like(blocks, 32, 2, 64, vocab_size=128, context=LENGTH, block=block)
    model = Transformer(config.with_(final_norm=None) if placement == "post" else config)
    initialize(model, "fan_in")
    return model


@one_thread()
def train(model: Transformer, seed: int, steps: int = 60, warmup: int = 1, rate: float = 0.005) -> Run:
    """Train a model of `tiny_llama` in place with AdamW; the rate rises to `rate` in `warmup` steps and stays there."""
    optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    run = Run([], [])
    first_down = next(weight for name, weight in model.named_parameters() if name.endswith("down.weight"))
    with Loader(story_bytes(), batch=BATCH, seq_len=LENGTH, seed=seed, prefetch=0) as batches:
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / warmup)
            batch = next(batches)
            loss = next_token_loss(model(batch.inputs), batch.targets)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            run.losses.append(loss.item())
            assert first_down.grad is not None
            run.gradients.append(first_down.grad.norm().item())
    return run


@torch.no_grad()
def branch_and_share(model: Transformer) -> tuple[float, float]:
    """Measure a model of `tiny_llama`: how long its branches are, and what is left of the embedding.

    Returns:
        The length of what a branch adds, the mean over all branches but the first two: over the length of the stream
        that it joins in a post-norm model, else over the length of the embedding; 0 for a rescued model. And the cosine
        of the embedding with the last stream.
    """
    tokens = story_bytes()[: BATCH * LENGTH].view(BATCH, LENGTH)
    embedding = model.embedding(tokens, torch.arange(LENGTH))
    ratios: list[float] = []

    def note(branch: Residual, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if branch.post_norm is identity:
            added, joined = output - inputs[0], embedding
        else:
            added, joined = branch.scale * branch.layer(*inputs), inputs[0]
        ratios.append((added.norm(dim=-1) / joined.norm(dim=-1)).mean().item())

    hooks = [each.register_forward_hook(note) for each in model.modules() if isinstance(each, Residual)]
    cosines = F.cosine_similarity(embedding, model.encode(tokens), dim=-1)
    for hook in hooks:
        hook.remove()
    return sum(ratios[2:]) / max(len(ratios) - 2, 1), cosines.mean().item()
