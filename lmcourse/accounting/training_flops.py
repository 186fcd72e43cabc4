"""FLOPs of a training step: model FLOPs, and hardware FLOPs, which count recomputation too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.flops import forward_flops
from lmcourse.accounting.pairs import Pairs
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.nn.checks import check_choice

Recompute = Literal["nothing", "attention", "blocks"]

OUTSIDE_BLOCKS = ("embedding projection", "cross-attention k, v", "head projection", "head")
"""Parts that are not computed in blocks. The keys of a source text are made before the decoder's blocks run."""


@dataclass(frozen=True)
class TrainingFlops:
    """FLOPs of a training step, by part of the model.

    Attributes:
        forward, backward: model FLOPs.
        recomputed: FLOPs done a second time to save memory.
    """

    forward: Breakdown[int]
    backward: Breakdown[int]
    recomputed: Breakdown[int]

    @property
    def model(self) -> Breakdown[int]:
        """Model FLOPs, the numerator of MFU (Chowdhery et al., 2022, appendix B)."""
        return self.forward + self.backward

    @property
    def hardware(self) -> Breakdown[int]:
        """Hardware FLOPs: model FLOPs and what activation checkpointing computes again (HFU)."""
        return self.model + self.recomputed


def training_flops(
    config: TransformerConfig | EncoderDecoderConfig,
    batch: int,
    seq_len: int,
    *,
    source: int | None = None,
    pairs: Pairs = "all",
    recompute: Recompute = "nothing",
) -> TrainingFlops:
    """FLOPs of forward and backward with all parameters trained.

    Args:
        config, batch, seq_len, source, pairs: as in `forward_flops`.
        recompute: "attention": fused kernels do not keep the scores, so their backward makes them again: 5 products for
            the 2 of the forward (Dao et al., 2022, algorithm 4). "blocks": every block goes forward twice (Chen et al.,
            2016). torch's `checkpoint` stops as soon as it has what backward needs, which in a pre-norm block without
            dropout is before the last product; this is the whole block.

    Raises:
        ValueError: as in `forward_flops`.
    """
    check_choice("recomputation of", recompute, Recompute)
    forward = forward_flops(config, batch, seq_len, source=source, pairs=pairs)
    again = {
        "nothing": [],
        "attention": [part for part in forward.parts if part.endswith("attention scores")],
        "blocks": [part for part in forward.parts if part not in OUTSIDE_BLOCKS],
    }
    return TrainingFlops(forward, forward * 2, forward.only(*again[recompute]))
