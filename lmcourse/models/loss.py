"""The training loss: cross-entropy of the next token, with the stabiliser of PaLM."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse.data.batch import IGNORE_INDEX


def next_token_loss(
    logits: Float[Tensor, "*batch v"], targets: Int[Tensor, "*batch"], *, z_loss: float = 0.0
) -> Float[Tensor, ""]:
    """Mean of −log p(target) + z_loss · (log Z)² over the targets that count, in nats.

    Z is the softmax's normaliser; pulling log Z to 0 keeps logits from drifting (Chowdhery et al., 2022, use 1e-4).
    The loss is computed in fp32. If no target counts it is 0.
    """
    wide, flat = logits.float().flatten(0, -2), targets.flatten()
    counts = flat != IGNORE_INDEX
    count = counts.sum().clamp(min=1)
    loss = F.cross_entropy(wide, flat, ignore_index=IGNORE_INDEX, reduction="sum") / count
    if z_loss:
        # Not log_z[counts]: the length of that is a number that a GPU would have to be waited for.
        log_z = wide.logsumexp(dim=-1).where(counts, 0.0)
        loss = loss + z_loss * log_z.square().sum() / count
    return loss
