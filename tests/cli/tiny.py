"""A run that is small enough for every test of the commands."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from lmcourse.data.grammar import story_grammar
from lmcourse.training.metrics import read_metrics

STEPS = 8
FLAGS = f"--recipe adamw --tokenizer bytes --seq-len 16 --batch 2 --warmup-steps 2 --steps {STEPS}".split()
ONE_CPU = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
"""Environment for comparable runs: one thread and no GPU, because the order of sums changes their rounding."""


def write_corpus(folder: Path) -> Path:
    """Write stories into separate files; one has letters of two, three and four bytes."""
    folder.mkdir()
    source = random.Random(1)
    for index in range(12):
        (folder / f"{index:02}.txt").write_text(story_grammar().generate(source), encoding="utf-8")
    (folder / "unicode.txt").write_text("é ñ – € 漢字 😀 " * 8, encoding="utf-8")
    return folder


def command(*words: str | Path) -> list[str]:
    """Return the command that runs `lmcourse words...` with this Python."""
    return [sys.executable, "-m", "lmcourse", *map(str, words)]


def environment(course: Path) -> dict[str, str]:
    """Return an environment in which the package is found from any folder."""
    return os.environ | ONE_CPU | {"PYTHONPATH": str(course), "COLUMNS": "80"}


def typed(course: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `lmcourse words...` as a user would, and return the result."""
    start = command(*words)
    return subprocess.run(
        start, capture_output=True, text=True, cwd=course, env=environment(course), timeout=120, check=False
    )


def losses(folder: Path) -> list[tuple[int, float]]:
    """Return number and loss of every step."""
    return [(record["step"], record["loss"]) for record in read_metrics(folder / "metrics.jsonl")]


def settings(folder: Path) -> dict[str, Any]:
    """Return the saved settings of a run."""
    found: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return found
