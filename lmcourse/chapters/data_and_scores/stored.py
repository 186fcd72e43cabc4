"""Losses of trained models that notebook 21 shows, in nats a letter; `experiments/scores.py` trains them."""

from __future__ import annotations

LEAKED = {
    ("A", 0): (0.455, 0.446, 0.459),
    ("A", 1): (0.521, 0.513, 0.520),
    ("A", 2): (0.451, 0.444, 0.455),
    ("B", 0): (0.435, 0.396, 0.445),
    ("B", 1): (0.537, 0.500, 0.544),
    ("B", 2): (0.452, 0.415, 0.461),
}
"""By model and seed: the loss on 260 new paragraphs, on the first 60, and on the others. B has read the 60."""

REPEATED = {
    5: (0.699, 0.755, 0.721),
    10: (0.566, 0.627, 0.581),
    30: (0.457, 0.544, 0.455),
    80: (0.431, 0.471, 0.440),
}
"""The loss with seeds 0, 1 and 2, by the paragraphs of each place from which 60,000 letters are made."""
