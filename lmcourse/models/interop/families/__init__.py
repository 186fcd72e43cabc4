"""All supported Hugging Face model families."""

from __future__ import annotations

from lmcourse.models.interop.families import gpt, llama, t5, variations
from lmcourse.models.interop.family import Family

_ALL = (
    *(llama.LLAMA, llama.MISTRAL, llama.QWEN2, llama.QWEN3, llama.OLMO, llama.OLMO2, llama.GRANITE, llama.SMOLLM3),
    *(llama.LLAMA4, variations.GEMMA, variations.GEMMA2, variations.GEMMA3, variations.COHERE, variations.COHERE2),
    *(variations.STABLELM, variations.NEMOTRON, variations.PHI),
    *(gpt.GPT2, gpt.GPTJ, gpt.NEOX, gpt.BLOOM, gpt.MPT, gpt.FALCON, gpt.OPT, t5.T5),
    *(llama.PHI3, llama.GLM, variations.STARCODER2, llama.OLMO3, llama.ARCEE, variations.NANOCHAT),
)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""By "model_type", in the order in which `to_hugging_face` tries them."""
