"""`python -m lmcourse.accounting.proof`: every model of the zoo, predicted by arithmetic and counted by torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from lmcourse.accounting.counter import counted_flops
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.training_flops import training_flops
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.zoo.entry import Entry
from lmcourse.models.zoo.find import all_models

BATCH = 2
LENGTH = 128


@dataclass(frozen=True)
class Proof:
    """A prediction beside what torch says.

    Attributes:
        name: the model's.
        parameters, built: predicted, and of the model built on the meta device.
        flops, counted: of forward and backward on BATCH × LENGTH tokens through one layer of each kind and the head.
    """

    name: str
    parameters: int
    built: int
    flops: int
    counted: int

    @property
    def agrees(self) -> bool:
        return self.parameters == self.built and self.flops == self.counted


def prove(entry: Entry) -> Proof:
    """Count a model of the zoo both ways."""
    config = _one_of_each(entry.config)
    source = LENGTH if isinstance(config, EncoderDecoderConfig) else None
    predicted = training_flops(config, BATCH, LENGTH, source=source)
    counted = counted_flops(config, BATCH, LENGTH, source=source, backward=True)
    parameters = count_parameters(entry.config).total
    return Proof(entry.name, parameters, entry.parameters, predicted.model.total, counted.total)


def proof_table(proofs: Sequence[Proof]) -> Table:
    """The proofs for people to read."""
    step = f"FLOPs: forward and backward of {BATCH} × {LENGTH} tokens through one layer of each kind and the head."
    table = Table(title=f"Predicted, and how far off torch's count.\n{step}", title_style="", box=SIMPLE)
    table.add_column("model", no_wrap=True)
    for column in ("parameters", "off by", "FLOPs", "off by"):
        table.add_column(column, justify="right", no_wrap=True)
    for proof in proofs:
        sizes = (proof.parameters, proof.parameters - proof.built, proof.flops, proof.flops - proof.counted)
        table.add_row(proof.name, *(f"{size:,}" for size in sizes))
    return table


def _one_of_each(config: TransformerConfig | EncoderDecoderConfig) -> TransformerConfig | EncoderDecoderConfig:
    """The same model with one layer of each kind that it has."""
    if isinstance(config, EncoderDecoderConfig):
        encoder, decoder = (half.with_(layers=half.layers[:1]) for half in (config.encoder, config.decoder))
        return EncoderDecoderConfig(encoder, decoder)
    return config.with_(layers=tuple(dict.fromkeys(config.layers)))


if __name__ == "__main__":
    progress = track(all_models(), "Counting", transient=True, console=Console(stderr=True))
    proofs = [prove(entry) for entry in progress]
    Console().print(proof_table(proofs))
    sys.exit(not all(proof.agrees for proof in proofs))
