"""All supported Hugging Face model families."""

from __future__ import annotations

from lmcourse.models.interop.families.alibi import BLOOM, FALCON, MPT
from lmcourse.models.interop.families.gemma import GEMMA, GEMMA2, GEMMA3
from lmcourse.models.interop.families.gpt import GPT2, GPTJ, NEOX
from lmcourse.models.interop.families.layer_norm import COHERE, COHERE2, NEMOTRON, PHI, STABLELM
from lmcourse.models.interop.families.llama import ARCEE, GRANITE, LLAMA, MISTRAL, OLMO, OLMO2, QWEN2, QWEN3
from lmcourse.models.interop.families.nanochat import NANOCHAT
from lmcourse.models.interop.families.opt import OPT
from lmcourse.models.interop.families.phi3_glm import GLM, OLMO3, PHI3, STARCODER2
from lmcourse.models.interop.families.smollm3_llama4 import LLAMA4, SMOLLM3
from lmcourse.models.interop.families.t5 import T5
from lmcourse.models.interop.family import Family

_ALL = (
    *(LLAMA, MISTRAL, QWEN2, QWEN3, OLMO, OLMO2, GRANITE, SMOLLM3, LLAMA4),
    *(GEMMA, GEMMA2, GEMMA3, COHERE, COHERE2, STABLELM, NEMOTRON, PHI),
    *(GPT2, GPTJ, NEOX, BLOOM, MPT, FALCON, OPT, T5),
    *(PHI3, GLM, STARCODER2, OLMO3, ARCEE, NANOCHAT),
)
FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
"""By "model_type", in the order in which `to_hugging_face` tries them."""
