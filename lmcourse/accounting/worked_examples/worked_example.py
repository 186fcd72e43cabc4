"""A worked example: a published number beside ours; and GPT-3, which most of them are about."""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.rules import kaplan_parameters
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model

AGREE = "they agree"
ASKED = "the notes only ask"


@dataclass(frozen=True)
class WorkedExample:
    """A number of the source notes beside the same number computed here.

    Attributes:
        name: what is computed.
        published: the number in the source notes, with its unit; "–" where they only ask.
        computed: the number computed here.
        unit: unit of `computed`.
        explanation: explanation of the difference.
    """

    name: str
    published: str
    computed: float
    unit: str
    explanation: str = AGREE

    def __str__(self) -> str:
        """The computed number with its unit: integers exactly, others with four digits."""
        digits = f"{self.computed:,}" if isinstance(self.computed, int) else f"{self.computed:.4g}"
        return f"{digits} {self.unit}".strip()


def gpt_3() -> TransformerConfig:
    """GPT-3's decoder: 96 layers of width 12,288 with 96 heads (Brown et al., 2020, table 2.1)."""
    return find_model("gpt-3").decoder


def gpt_3_parameters() -> int:
    """GPT-3's parameters in matrices and embeddings, as the notes count; biases and norms are 0.009 % more."""
    config = gpt_3()
    return kaplan_parameters(config) + (config.vocab_size + 2048) * config.d_model
