"""FLOPs of generating a text token by token, with a KV cache and without."""

from __future__ import annotations

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.flops import forward_flops
from lmcourse.accounting.pairs import Pairs
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig


def generation_flops(
    config: TransformerConfig | EncoderDecoderConfig,
    batch: int,
    prompt: int,
    new: int,
    *,
    cache: bool = True,
    source: int | None = None,
    pairs: Pairs = "all",
) -> Breakdown[int]:
    """FLOPs to read prompts and write `new` tokens behind each.

    The last new token is never read, so n tokens take n passes: with a cache one over the prompt (prefill) and n − 1
    over a single token (decode); without it, n over everything so far, a source text included. With t tokens so far,
    decoding takes O(d² + t·d) per layer and token, a pass without a cache O(t·d² + t²·d).

    Args:
        config, source, pairs: as in `forward_flops`.
        batch: texts.
        prompt: tokens of each prompt.
        new: tokens to write behind each.
        cache: whether keys and values of earlier tokens are kept.

    Raises:
        ValueError: as in `forward_flops`, or nothing is to be written.
    """
    if new < 1:
        raise ValueError(f"at least one token must be written, not {new}")
    total = forward_flops(config, batch, prompt, source=source, pairs=pairs, logits="last")
    for read in range(prompt, prompt + new - 1):
        seq_len, past = (1, read) if cache else (read + 1, 0)
        total += forward_flops(config, batch, seq_len, source=source, pairs=pairs, past=past, logits="last")
    return total
