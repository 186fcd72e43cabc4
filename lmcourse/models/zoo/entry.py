"""The record of one published model: its configuration, source and parameter count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.encoder_decoder import EncoderDecoder
from lmcourse.models.transformer import Transformer


@dataclass(frozen=True)
class Entry:
    """A published model.

    Attributes:
        name: by which it is found: "llama-3-8b".
        year: of its first publication.
        source: the paper, report or configuration file the numbers are from.
        config: its architecture. Dropout is that of pre-training.
        published_parameters: how many parameters it is said to have, with the digits that were published:
            175_000_000_000 stands for "175B". None if nobody says.
        note: what is not published, or left out here.
        count_difference: why our count and the published one disagree, where they do.
        survey_overrides: what a survey of models shows in place of the configuration, such as Gopher's positions.
    """

    name: str
    year: int
    source: str
    config: TransformerConfig | EncoderDecoderConfig
    published_parameters: int | None = None
    note: str = ""
    count_difference: str = ""
    survey_overrides: Mapping[str, str] = field(default_factory=dict)

    @property
    def decoder(self) -> TransformerConfig:
        """The configuration, or the decoder's if there is an encoder, too."""
        return self.config.decoder if isinstance(self.config, EncoderDecoderConfig) else self.config

    def build(self) -> Transformer | EncoderDecoder:
        """The model, with random weights. The large ones need `with torch.device("meta")`."""
        if isinstance(self.config, EncoderDecoderConfig):
            return EncoderDecoder(self.config)
        return Transformer(self.config)
