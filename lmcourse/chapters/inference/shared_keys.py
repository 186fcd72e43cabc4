"""Losses of small models whose heads share keys; `benchmarks/shared_keys.py` trains them again."""

from dataclasses import replace

from lmcourse.models.config import TransformerConfig
from lmcourse.models.zoo import find_model

HEADS, WINDOW = 8, 128
"""Query heads, and tokens of a window."""

LOSSES = {8: (1.2446, 1.2376, 1.2376), 2: (1.2411, 1.2563, 1.2555), 1: (1.2437, 1.2681, 1.2465)}
"""Key heads → the losses of three seeds, in nats per character of held-out help texts of Python 3.11."""


def config_of(key_heads: int, vocab_size: int = 256) -> TransformerConfig:
    """Return `nano` with eight query heads of 8 features, and this many key heads."""
    nano = find_model("nano").decoder
    layers = tuple(
        replace(layer, attention=replace(layer.attention, heads=HEADS, kv_heads=key_heads)) for layer in nano.layers
    )
    return nano.with_(layers=layers, vocab_size=vocab_size, context=WINDOW)
