"""Published profiles: shares of FLOPs and time by kind of operation."""

from __future__ import annotations

from typing import NamedTuple


class Share(NamedTuple):
    """A kind of operation's percentage of the FLOPs and of the time."""

    flops: float
    time: float


BERT_LAYER = {
    "matrix products": Share(99.80, 61.0),
    "normalisation": Share(0.17, 25.5),
    "element-wise": Share(0.03, 13.5),
}
"""A BERT encoder layer in training on a V100: Ivanov et al., 2021, "Data Movement Is All You Need", table 1."""
