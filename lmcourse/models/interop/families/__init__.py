"""All supported Hugging Face model families."""

from __future__ import annotations

from lmcourse.models.interop.families import gpt, llama, llama_variants, t5
from lmcourse.models.interop.family import Family

_ALL = (
    *(llama.LLAMA, llama.MISTRAL, llama.QWEN2, llama.QWEN3, llama.OLMO, llama.OLMO2, llama.GRANITE, llama.SMOLLM3),
    *(
        llama.LLAMA4,
        llama_variants.GEMMA,
        llama_variants.GEMMA2,
        llama_variants.GEMMA3,
        llama_variants.COHERE,
        llama_variants.COHERE2,
    ),
    *(llama_variants.STABLELM, llama_variants.NEMOTRON, llama_variants.PHI),
    *(gpt.GPT2, gpt.GPTJ, gpt.NEOX, gpt.BLOOM, gpt.MPT, gpt.FALCON, gpt.OPT, t5.T5),
    *(llama.PHI3, llama.GLM, llama_variants.STARCODER2, llama.OLMO3, llama.ARCEE, llama_variants.NANOCHAT),
)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""By "model_type", in the order in which `to_hugging_face` tries them."""
