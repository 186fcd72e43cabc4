"""Stored training runs of notebook 08: how much quality shared keys cost."""

from __future__ import annotations

SHARED_KEYS: tuple[tuple[int, int, int, tuple[float, float, float]], ...] = (
    (8, 176, 108_864, (0.444, 0.451, 0.437)),
    (4, 176, 100_672, (0.445, 0.465, 0.456)),
    (2, 176, 96_576, (0.442, 0.464, 0.472)),
    (1, 176, 94_528, (0.448, 0.487, 0.465)),
    (2, 208, 108_864, (0.450, 0.445, 0.441)),
    (1, 213, 108_736, (0.450, 0.473, 0.445)),
)
"""Key heads, width of the SwiGLU layers, parameters, and the losses on new text of the seeds 0, 1 and 2, nats a byte.

`llama_like(2, 64, 8, width, vocab_size=128, context=64, tied=True, kv_heads=…)` with fan-in weights, on 600 of our
stories: 200 steps of 16 windows of 64 bytes, AdamW, a cosine from 0.01 with 20 steps of warm-up, clipped at 1.
"""
