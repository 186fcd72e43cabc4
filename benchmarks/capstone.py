"""Train the capstone's designs, and print a line for each: layers, width, FLOPs of the budget, seed, loss, CPU seconds.

    python benchmarks/capstone.py 6e11 0 1x16 1x24 1x32 1x48 1x64 2x16 2x24 2x32 2x48 4x16 4x24

`lmcourse/chapters/capstone/measured.py` holds what it printed on one thread of a two-core virtual machine.
"""

from __future__ import annotations

import sys
import time

import torch

from lmcourse.chapters.capstone.recipe import Design, train


def main(budget: str, seed: str, *designs: str) -> None:
    """Train each design with this budget and seed."""
    torch.set_num_threads(1)
    for name in designs:
        layers, width = map(int, name.split("x"))
        design, begin = Design(layers, width), time.process_time()
        _, loss = train(design, design.steps(float(budget)), int(seed))
        print(f"({layers}, {width}, {budget}, {seed}, {loss:.4f}),  # {time.process_time() - begin:.0f} s", flush=True)


main(*sys.argv[1:])
