"""GPT-3 as the exercise and the figures count it."""

from __future__ import annotations

from lmcourse.accounting.flop_rules import kaplan_parameters
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model


def gpt_3() -> TransformerConfig:
    """Return GPT-3's decoder: 96 layers of width 12,288 with 96 heads (Brown et al., 2020, table 2.1)."""
    return find_model("gpt-3").decoder


def gpt_3_parameters() -> int:
    """Count GPT-3's parameters in matrices and embeddings; biases and norms would add 0.009 %."""
    config = gpt_3()
    return kaplan_parameters(config) + (config.vocab_size + 2048) * config.d_model
