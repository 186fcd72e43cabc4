"""The command as people type it: torchrun starts the processes, and they find each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmcourse.errors import CourseError
from lmcourse.training.command.main import main
from tests.training import runs

pytestmark = [pytest.mark.prove, pytest.mark.usefixtures("one_thread")]


def flags(folder: Path, text: Path, *more: str) -> list[str]:
    """With AdamW: Muon magnifies what two processes round otherwise than one."""
    plain = ["--preset", "nano", "--tokenizer", "bytes", "--steps", "4", "--batch", "4", "--seq-len", "16"]
    return [*plain, "--recipe", "adamw", "--corpus", str(text), "--out", str(folder), *more]


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Two processes on this machine. `--standalone` takes a port that is free."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command += ["-m", "lmcourse.training", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)


def test_two_processes_match_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin, one process goes on, and the losses are those of one process from the start."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{number} bottles stand on the wall. " for number in range(400)))
    two, one = tmp_path / "two", tmp_path / "one"
    done = torchrun(*flags(two, text, "--data-parallel", "2", "--max-tokens", str(2 * 64)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Go on: ") == 1  # one of them speaks
    assert main(flags(one, text), "train") == 0
    assert main(["--resume", "--out", str(two), "--data-parallel", "1", "--max-tokens", "none"], "train") == 0
    assert len(runs.losses(two)) == 4
    assert runs.losses(two) == pytest.approx(runs.losses(one), rel=1e-6)

    with pytest.raises(CourseError, match=r"the run is for 2 processes .* and 1 were started"):
        main(["--resume", "--out", str(two), "--data-parallel", "2"], "train")
