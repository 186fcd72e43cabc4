"""Test the real command: torchrun starts the processes, and they connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmcourse.base.errors import CourseError
from lmcourse.training.command.main import main
from tests.training import runs

pytestmark = [pytest.mark.prove, pytest.mark.usefixtures("one_thread")]


def flags(folder: Path, text: Path, *more: str) -> list[str]:
    """Return flags with AdamW, because Muon amplifies rounding differences between one and two processes."""
    plain = ["--preset", "nano", "--tokenizer", "bytes", "--steps", "4", "--batch", "4", "--seq-len", "16"]
    return [*plain, "--recipe", "adamw", "--corpus", str(text), "--out", str(folder), *more]


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run two processes on this machine; `--standalone` chooses a free port."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command += ["-m", "lmcourse.training", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)


def test_two_processes_match_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes begin, one process resumes, and the losses match a run on one process."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{number} bottles stand on the wall. " for number in range(400)))
    two, one = tmp_path / "two", tmp_path / "one"
    done = torchrun(*flags(two, text, "--data-parallel", "2", "--max-tokens", str(2 * 64)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Continue: ") == 1  # only one process prints
    assert main(flags(one, text), "train") == 0
    assert main(["--resume", "--out", str(two), "--data-parallel", "1", "--max-tokens", "none"], "train") == 0
    assert len(runs.losses(two)) == 4
    assert runs.losses(two) == pytest.approx(runs.losses(one), rel=1e-6)

    with pytest.raises(CourseError, match=r"the run is for 2 processes .*, but 1 were started"):
        main(["--resume", "--out", str(two), "--data-parallel", "2"], "train")
