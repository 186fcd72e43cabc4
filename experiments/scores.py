"""Compute what notebook 21 stores: the scores of the shipped model, and with --train also the losses of small models.

    python experiments/scores.py --train

The losses are printed; they stand in `lmcourse/chapters/data_and_scores/stored.py`.
"""

from __future__ import annotations

import sys

from safetensors.torch import save_file

from lmcourse.chapters.data_and_scores.leaks import leaked_losses, repeated_losses
from lmcourse.chapters.data_and_scores.questions import STORED, store
from lmcourse.chapters.data_and_scores.stored import LEAKED, REPEATED

if __name__ == "__main__":
    save_file(store(), STORED)
    print(f"{STORED.name}: {STORED.stat().st_size:,} bytes")
    if "--train" in sys.argv[1:]:
        for name, seed in LEAKED:
            print(name, seed, leaked_losses(name, seed))
        for count in REPEATED:
            print(count, repeated_losses(count))
