"""The training loss: cross-entropy of the next token, with PaLM's z-loss as an option."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.data.batch import IGNORE_INDEX


def next_token_loss(
    logits: Float[Tensor, "*batch v"], targets: Int[Tensor, "*batch"], *, z_loss: float = 0.0
) -> Float[Tensor, ""]:
    """Return the mean of −log p(target) + z_loss · (log Z)² over all targets that are not ignored, in nats.

    Z is the softmax's normaliser; pulling log Z to 0 keeps logits from drifting (Chowdhery et al., 2022, use 1e-4).
    The loss is computed in fp32. It is 0 if all targets are ignored.
    """
    wide, flat = logits.float().flatten(0, -2), targets.flatten()
    counts = flat != IGNORE_INDEX
    count = counts.sum().clamp(min=1)
    loss = F.cross_entropy(wide, flat, ignore_index=IGNORE_INDEX, reduction="sum") / count
    if z_loss:
        # Not log_z[counts]: its length depends on values on the GPU, so the CPU would have to wait for them.
        log_z = wide.logsumexp(dim=-1).where(counts, 0.0)
        loss = loss + z_loss * log_z.square().sum() / count
    return loss
