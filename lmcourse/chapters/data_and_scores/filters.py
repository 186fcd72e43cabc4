"""Filters for documents that need nothing but a little trusted text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise


def bigram_score(document: str, trusted: Sequence[str]) -> float:
    """Return the mean log-probability of a document's letters, in nats, by the trusted text's pairs of letters."""
    text = "".join(trusted)
    pairs, firsts = Counter(pairwise(text)), Counter(text[:-1])
    scores = [math.log((pairs[a, b] + 0.1) / (firsts[a] + 12.8)) for a, b in pairwise(document)]
    return math.fsum(scores) / len(scores)
