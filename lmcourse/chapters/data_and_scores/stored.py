"""Losses of trained models that notebook 21 shows, in nats a letter; `benchmarks/scores.py` trains them."""

from __future__ import annotations

LEAKED = {
    "A": [(0.455, 0.446, 0.459), (0.521, 0.513, 0.520), (0.451, 0.444, 0.455)],
    "B": [(0.435, 0.396, 0.445), (0.537, 0.500, 0.544), (0.451, 0.444, 0.455)],
}
"""For seeds 0, 1 and 2: the loss on 260 new paragraphs, on 60 of them, and on the others. B has read the 60."""

REPEATED: dict[int, list[float]] = {}
"""The loss with seeds 0, 1 and 2, by the paragraphs of each place from which 60,000 letters are made."""
