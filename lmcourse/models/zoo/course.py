"""The course's own models: LLaMA-style, small enough to train on a laptop."""

from __future__ import annotations

from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo.entry import Entry
from lmcourse.models.zoo.styles import llama_like

COURSE_SOURCE = "this course"
BYTE_VOCAB_SIZE = 256
GPT2_PADDED = 50_304
"""GPT-2's 50,257 tokens, rounded up to a multiple of 128, because matrix units are faster with such sizes."""


def modern(layers: int, d_model: int, heads: int, context: int, vocab_size: int = BYTE_VOCAB_SIZE) -> TransformerConfig:
    """Make a LLaMA with tied embeddings and a feed-forward width of 8/3 d, rounded up to a multiple of 32."""
    d_ff = -(-8 * d_model // 3 // 32) * 32
    return llama_like(layers, d_model, heads, d_ff, vocab_size=vocab_size, context=context, tied=True)


ENTRIES = (
    Entry("nano", 2025, COURSE_SOURCE, modern(2, 64, 4, 128), note="A second on one core shows it learn. Reads bytes."),
    Entry("micro", 2025, COURSE_SOURCE, modern(4, 128, 4, 256), note="Minutes on two cores. Reads bytes."),
    Entry("mini", 2025, COURSE_SOURCE, modern(6, 384, 6, 512), note="The size that the benchmarks use. Reads bytes."),
    Entry(
        "course-124m",
        2025,
        COURSE_SOURCE,
        modern(12, 768, 12, 1024, GPT2_PADDED),
        note="GPT-2's size in today's shape.",
    ),
)
