"""A number of the notes beside ours, and the model that most of them are about."""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.rules import kaplan_parameters
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo.find import find_model

AGREE = "they agree"
ASKED = "the notes only ask"


@dataclass(frozen=True)
class Case:
    """A number of the notes.

    Attributes:
        name: what was asked.
        notes: what the notes say, with their unit; "–" where they only ask.
        value: ours.
        unit: of ours.
        why: the two differ.
    """

    name: str
    notes: str
    value: float
    unit: str
    why: str = AGREE

    def __str__(self) -> str:
        """Our number with its unit: whole ones exactly, others with four digits."""
        digits = f"{self.value:,}" if isinstance(self.value, int) else f"{self.value:.4g}"
        return f"{digits} {self.unit}".strip()


def gpt_3() -> TransformerConfig:
    """96 layers of width 12,288 with 96 heads (Brown et al., 2020, table 2.1)."""
    return find_model("gpt-3").decoder


def gpt_3_parameters() -> int:
    """Matrices and embeddings, which is what the notes count; biases and norms are 0.009 % more."""
    config = gpt_3()
    return kaplan_parameters(config) + (config.vocab_size + 2048) * config.d_model
