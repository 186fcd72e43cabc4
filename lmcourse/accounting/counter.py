"""Count FLOPs with torch's `FlopCounterMode`, including attention.

`torch.utils.flop_counter.FlopCounterMode` adds up the matrix products that torch runs. It has two gaps. It counts 0 for
products that are added in place, `addmm_` and `baddbmm_`: `flop_counter` counts them, too. And it silently skips
PyTorch's fused attention for CPUs, an operator that it does not support. So `count_flops` runs attention in its plain
form: two matrix products and a softmax (`SDPBackend.MATH`). Models are built on the meta device,
where tensors have shapes but no numbers: a model of 175 billion parameters is counted in seconds.

The readable attention uses `torch.einsum`, which needs no matrix product to sum over a single number. So attention to
one key, or with heads of width 1, is not counted.

On a GPU the counter supports the fused operators. In the forward pass it gives the same count: all pairs, masked or
not. In the backward pass it counts 5 products for the 2 of the forward pass, because the kernels compute the scores
again; these are hardware FLOPs, not model FLOPs.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.transformer import Transformer


def flop_counter() -> FlopCounterMode:
    """Return torch's counter, made to count products that are added in place, too. Use it where learners' code runs."""
    in_place = (torch.ops.aten.addmm_, torch.ops.aten.baddbmm_)
    return FlopCounterMode(display=False, custom_mapping=dict.fromkeys(in_place, _added_product))


def _added_product(_: torch.Size, a: torch.Size, b: torch.Size, **__: object) -> int:
    return 2 * a.numel() * b[-1]


def counted_flops(
    config: TransformerConfig | EncoderDecoderConfig,
    batch: int,
    seq_len: int,
    *,
    source: int | None = None,
    backward: bool = False,
) -> Breakdown[int]:
    """Count the FLOPs of a pass through a configuration's model on the meta device, which needs no memory.

    Args:
        config: the model.
        batch, seq_len: number of sequences, and tokens per sequence (for an encoder–decoder, per target).
        source: tokens per source text of an encoder–decoder.
        backward: as in `count_flops`.
    """
    with torch.device("meta"):
        tokens = torch.zeros(batch, seq_len, dtype=torch.long)
        if isinstance(config, TransformerConfig):
            decoder = Transformer(config)
            return count_flops(lambda: decoder(tokens), backward=backward)
        if source is None:
            raise ValueError("an encoder–decoder reads a source text: pass its length as `source`")
        model, text = EncoderDecoder(config), torch.zeros(batch, source, dtype=torch.long)
        return count_flops(lambda: model(text, tokens), backward=backward)


def count_flops(run: Callable[[], Tensor], *, backward: bool = False) -> Breakdown[int]:
    """Count the FLOPs of the matrix products in any computation: under "forward" and, if asked for, under "backward".

    Args:
        run: runs the computation and returns a tensor.
        backward: whether to count the backward pass from the sum of that tensor, too.
    """
    with sdpa_kernel(SDPBackend.MATH), flop_counter() as counter:
        result = run()
        parts = {"forward": counter.get_total_flops()}
        if backward:
            result.sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it bare
            parts["backward"] = counter.get_total_flops() - parts["forward"]
    return Breakdown(parts)
