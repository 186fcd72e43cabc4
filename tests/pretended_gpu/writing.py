"""Generate text on a simulated GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from lmcourse.inference.beam import beam_search
from lmcourse.inference.compiled import CompiledStep
from lmcourse.inference.decoding_session import DecodingSession, left_pad
from lmcourse.inference.generate import generate
from lmcourse.inference.sampling import Sampling
from lmcourse.models.transformer import Transformer
from tests.pretended_gpu.models import grouped, plain, windows

PROMPT = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
TWO_PROMPTS = [PROMPT, PROMPT[:4]]


def write(model: Transformer, tokens: int, prompts: Sequence[Sequence[int]] = (PROMPT,), **how: Any) -> None:
    found = generate(model, prompts, tokens, **how)
    assert [len(text) for text in found] == [tokens] * len(prompts)


def settled(model: Transformer, tokens: int, prompts: Sequence[Sequence[int]] = (PROMPT,)) -> None:
    """Generate with the static cache of a compiled step; torch.compile itself is disabled."""
    write(model, tokens, prompts, compiled=CompiledStep(model))


def drawn(tokens: int) -> None:
    dice = torch.Generator("cuda").manual_seed(0)
    write(plain(), tokens, sampler=Sampling(temperature=0.7, top_k=50, top_p=0.9, min_p=0.05), generator=dice)


def dice_left_behind() -> None:
    """Make a deliberate mistake: use a random generator in main memory."""
    write(plain(), 1, sampler=Sampling(), generator=torch.Generator().manual_seed(0))


def logits() -> None:
    """Check that logits and cache have the model's device and format."""
    session = DecodingSession(plain().bfloat16().eval(), 32)
    found = session.next_logits(*left_pad([PROMPT], session.device))
    assert (found.device.type, found.dtype, found.shape) == ("cuda", torch.bfloat16, (1, 256))
    kept = [part for pair in session.cache._memory if pair is not None for part in pair]
    assert {(part.device.type, part.dtype) for part in kept} == {("cuda", torch.bfloat16)}


WORK = {
    "3 tokens": lambda: write(plain(), 3),
    "13 tokens": lambda: write(plain(), 13),
    "13 tokens drawn": lambda: drawn(13),
    "13 tokens in bf16": lambda: write(plain().bfloat16(), 13),
    "13 tokens of shared heads in bf16": lambda: write(grouped().bfloat16(), 13),
    "13 tokens of shared heads": lambda: write(grouped(), 13),
    "13 tokens with windows": lambda: write(windows(), 13),
    "13 tokens after two prompts": lambda: write(grouped(), 13, TWO_PROMPTS),
    "13 tokens after two prompts with windows": lambda: write(windows(), 13, TWO_PROMPTS),
    "13 tokens from a static cache": lambda: settled(windows(), 13),
    "13 tokens from a static cache after two prompts": lambda: settled(grouped(), 13, TWO_PROMPTS),
    "3 tokens of a beam": lambda: beam_search(plain(), PROMPT, 3, beams=3),
    "13 tokens of a beam": lambda: beam_search(plain(), PROMPT, 13, beams=3),
    "logits": logits,
    "dice left behind": dice_left_behind,
}
