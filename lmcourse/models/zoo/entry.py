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
        name: the name for `find_model`, such as "llama-3-8b".
        year: the year of its first publication.
        source: the paper, report or configuration file that the numbers come from.
        config: its architecture, with the dropout of pre-training.
        published_parameters: the published number of parameters, with the published digits: 175_000_000_000 stands for
            "175B". None if no number was published.
        note: the parts that were not published, or that are left out here.
        count_difference: the reason if our count differs from the published number.
        survey_overrides: values that a survey of models shows instead of the configuration's, such as Gopher's
            positions.
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
        """The model's configuration, or the decoder's in an encoder–decoder."""
        return self.config.decoder if isinstance(self.config, EncoderDecoderConfig) else self.config

    def build(self) -> Transformer | EncoderDecoder:
        """Build the model with random weights. Large models need `with torch.device("meta")`."""
        if isinstance(self.config, EncoderDecoderConfig):
            return EncoderDecoder(self.config)
        return Transformer(self.config)
