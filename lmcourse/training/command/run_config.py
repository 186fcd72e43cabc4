"""Configuration of a training run: model preset, corpus, tokenizer, training settings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lmcourse.errors import CourseError
from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model
from lmcourse.training.command.model_changes import UNCHANGED, ModelChanges
from lmcourse.training.config import TrainingConfig

TOKENIZER_KINDS = ("bpe", "bytes", "characters")

NUM_BYTE_TOKENS = 256
"""What every vocabulary of byte pairs begins with."""


@dataclass(frozen=True)
class RunConfig:
    """Everything needed to reproduce a run.

    Attributes:
        preset: a decoder of the zoo; its vocabulary and context become those of the run.
        corpus: what `find_corpus` takes: a name, or the path of a text.
        training: how the model is trained.
        tokenizer: how text is cut: "bytes", or "bpe" or "characters", made from the part of the corpus that is trained
            on, or the path of a tokenizer.json that was made before.
        vocab_size: how many tokens "bpe" makes, at most.
        held_out: the share of the corpus to validate on; 0 for none.
        validation_tokens: how many tokens of that share each evaluation reads, at most.
        model: what is changed in the preset.

    Raises:
        ValueError: a setting is out of range.
        CourseError: there is no such preset.
    """

    preset: str
    corpus: str
    training: TrainingConfig
    tokenizer: str = "bpe"
    vocab_size: int = 512
    held_out: float = 0.1
    validation_tokens: int = 65_536
    model: ModelChanges = UNCHANGED

    def __post_init__(self) -> None:
        if self.tokenizer not in TOKENIZER_KINDS and not self.tokenizer.endswith(".json"):
            kinds = ", ".join(TOKENIZER_KINDS)
            raise ValueError(f"tokenizer must be {kinds} or the path of a .json file, not {self.tokenizer!r}")
        if self.vocab_size < NUM_BYTE_TOKENS:
            raise ValueError(f"vocab_size must be at least {NUM_BYTE_TOKENS}, the bytes alone, not {self.vocab_size}")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out is a share of at least 0 and below 1, not {self.held_out}")
        if self.validation_tokens < 2:
            raise ValueError(f"validation_tokens must be at least 2, not {self.validation_tokens}")
        if self.training.seed >= 2**63:
            raise ValueError(f"seed must be below 2⁶³, not {self.training.seed}")
        find_decoder(self.preset)

    def model_config(self, vocab_size: int) -> TransformerConfig:
        """The preset for texts of this run's length, cut into so many different tokens."""
        config, seq_len = find_decoder(self.preset), self.training.seq_len
        embedding = config.embedding
        if embedding.max_positions is not None:
            embedding = replace(embedding, max_positions=seq_len)
        return self.model.apply(config.with_(vocab_size=vocab_size, context=seq_len, embedding=embedding))


def find_decoder(name: str) -> TransformerConfig:
    """The configuration of a model that predicts the next token.

    Raises:
        CourseError: there is no model of this name, or it does something else.
    """
    entry = find_model(name)
    config = entry.config
    if isinstance(config, TransformerConfig) and all(layer.attention.pattern.causal for layer in config.layers):
        return config
    raise CourseError(f"{entry.name} does not predict the next token: take a decoder, such as nano.")
