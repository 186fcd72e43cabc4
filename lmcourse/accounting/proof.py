"""`python -m lmcourse.accounting.proof`: every model of the zoo, predicted by arithmetic and counted by torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch._subclasses.fake_tensor import FakeTensorMode

from lmcourse.accounting.activations import predict_saved_bytes
from lmcourse.accounting.counter import counted_flops
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.saved import saved_tensors
from lmcourse.accounting.training_flops import training_flops
from lmcourse.models.config import EncoderDecoderConfig, TransformerConfig
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import all_models
from lmcourse.models.zoo.entry import Entry

BATCH = 2
SEQ_LEN = 128
WIDTH = 108
"""Columns of text that the table needs: a number cut short proves nothing."""


@dataclass(frozen=True)
class CountCheck:
    """Predicted parameters, FLOPs and bytes of a model, and those that torch counts.

    Attributes:
        name: the model's.
        predicted_parameters, measured_parameters: by formula, and of the model built on the meta device.
        predicted_flops, measured_flops: of forward and backward on BATCH × SEQ_LEN tokens through one layer of each
            kind and the head.
        predicted_saved_bytes, measured_saved_bytes: what autograd saves of the same forward pass in fp32, and of its
            loss; None for an encoder–decoder, which `predict_saved_bytes` leaves out.
    """

    name: str
    predicted_parameters: int
    measured_parameters: int
    predicted_flops: int
    measured_flops: int
    predicted_saved_bytes: int | None
    measured_saved_bytes: int | None

    @property
    def agrees(self) -> bool:
        """Whether every prediction equals its count."""
        predicted = (self.predicted_parameters, self.predicted_flops, self.predicted_saved_bytes)
        return predicted == (self.measured_parameters, self.measured_flops, self.measured_saved_bytes)


def check_counts(entry: Entry) -> CountCheck:
    """Predict parameters, FLOPs and saved bytes of a model of the zoo, and count them with torch."""
    config = _one_of_each(entry.config)
    source = SEQ_LEN if isinstance(config, EncoderDecoderConfig) else None
    predicted = training_flops(config, BATCH, SEQ_LEN, source=source)
    counted = counted_flops(config, BATCH, SEQ_LEN, source=source, backward=True)
    parameters = count_parameters(entry.config).total
    saved, measured = None, None
    if isinstance(config, TransformerConfig):
        saved, measured = predict_saved_bytes(config, BATCH, SEQ_LEN).total, measure_saved_bytes(config)
    return CountCheck(entry.name, parameters, entry.parameters, predicted.model.total, counted.total, saved, measured)


def measure_saved_bytes(config: TransformerConfig) -> int:
    """Bytes that autograd keeps of a pass of BATCH × SEQ_LEN tokens, by torch's hooks. The tensors are fake, without
    memory, so that the largest models fit."""
    with FakeTensorMode():
        model = Transformer(config).train()
        tokens, targets = (torch.zeros(BATCH, SEQ_LEN, dtype=torch.long) for _ in range(2))
        return saved_tensors(lambda: next_token_loss(model(tokens), targets), model, without=[tokens, targets]).total


def check_table(checks: Sequence[CountCheck]) -> Table:
    """A rich table of predictions and their differences from the counts."""
    tokens = f"{BATCH} × {SEQ_LEN} tokens"
    step = f"FLOPs of forward and backward, and bytes kept in between: {tokens}, each kind of layer once."
    table = Table(title=f"Predicted, and how far off torch's count.\n{step}", title_style="", box=SIMPLE)
    table.add_column("model", no_wrap=True)
    for column in ("parameters", "off by", "FLOPs", "off by", "bytes kept", "off by"):
        table.add_column(column, justify="right", no_wrap=True)
    for check in checks:
        pairs = (
            (check.predicted_parameters, check.measured_parameters),
            (check.predicted_flops, check.measured_flops),
            (check.predicted_saved_bytes, check.measured_saved_bytes),
        )
        table.add_row(check.name, *(cell for pair in pairs for cell in _cells(*pair)))
    return table


def _cells(predicted: int | None, true: int | None) -> tuple[str, str]:
    """A prediction, and how far it is off."""
    if predicted is None or true is None:
        return "–", "–"
    return f"{predicted:,}", f"{predicted - true:,}"


def _one_of_each(config: TransformerConfig | EncoderDecoderConfig) -> TransformerConfig | EncoderDecoderConfig:
    """The same model with one layer of each kind that it has."""
    if isinstance(config, EncoderDecoderConfig):
        encoder, decoder = (half.with_(layers=half.layers[:1]) for half in (config.encoder, config.decoder))
        return EncoderDecoderConfig(encoder, decoder)
    return config.with_(layers=tuple(dict.fromkeys(config.layers)))


if __name__ == "__main__":
    progress = track(all_models(), "Counting", transient=True, console=Console(stderr=True))
    checks = [check_counts(entry) for entry in progress]
    Console(width=max(WIDTH, Console().width)).print(check_table(checks))
    sys.exit(not all(check.agrees for check in checks))
