"""All supported Hugging Face model families."""

from __future__ import annotations

from lmcourse.models.interop.families.gpt import BLOOM, FALCON, GPT2, GPTJ, MPT, NEOX, OPT
from lmcourse.models.interop.families.llama import (
    ARCEE,
    GLM,
    GRANITE,
    LLAMA,
    LLAMA4,
    MISTRAL,
    OLMO,
    OLMO2,
    OLMO3,
    PHI3,
    QWEN2,
    QWEN3,
    SMOLLM3,
)
from lmcourse.models.interop.families.llama_variants import (
    COHERE,
    COHERE2,
    GEMMA,
    GEMMA2,
    GEMMA3,
    NANOCHAT,
    NEMOTRON,
    PHI,
    STABLELM,
    STARCODER2,
)
from lmcourse.models.interop.families.t5 import T5
from lmcourse.models.interop.family import Family

_ALL = (
    *(LLAMA, MISTRAL, QWEN2, QWEN3, OLMO, OLMO2, GRANITE, SMOLLM3, LLAMA4),
    *(GEMMA, GEMMA2, GEMMA3, COHERE, COHERE2, STABLELM, NEMOTRON, PHI),
    *(GPT2, GPTJ, NEOX, BLOOM, MPT, FALCON, OPT, T5),
    *(PHI3, GLM, STARCODER2, OLMO3, ARCEE, NANOCHAT),
)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""Families by "model_type", in the order in which `to_hugging_face` tries them."""
