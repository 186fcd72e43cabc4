"""For every division of a step, losses and gradients match one process up to rounding."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from lmcourse.training.parallel.split_linear import find_fused
from lmcourse.training.trainer import Trainer
from lmcourse.training.training_config import ONE_PROCESS, Parallelism
from tests.training import runs
from tests.training.parallel.real_processes import all_returned, run_processes, split_tensor, trainer

pytestmark = [pytest.mark.prove, pytest.mark.usefixtures("one_thread")]

CLIP = 0.5
"""Clipping limit below the norms of these runs, so that a step depends on all gradients."""

SMALL = 0.15
"""Largest fraction of weights that tensor parallelism does not divide: norms, biases, learned positions."""

WAYS = {
    "DDP on 4": Parallelism(data_parallel=4),
    "FSDP2 on 4": Parallelism(fsdp=4),
    "HSDP on 2 × 2": Parallelism(data_parallel=2, fsdp=2),
    "tensor and sequence on 2": Parallelism(tensor_parallel=2, sequence_parallel=True),
    "replicated tensor on 2 × 2": Parallelism(data_parallel=2, tensor_parallel=2),
    "FSDP2 × tensor and sequence on 2 × 2": Parallelism(fsdp=2, tensor_parallel=2, sequence_parallel=True),
    "GPipe on 4": Parallelism(pipeline_parallel=4, pipeline_schedule="gpipe"),
    "1F1B on 4": Parallelism(pipeline_parallel=4),
    "1F1B × DDP on 2 × 2": Parallelism(pipeline_parallel=2, data_parallel=2),
    "1F1B × FSDP2 on 2 × 2": Parallelism(pipeline_parallel=2, fsdp=2),
    "1F1B × tensor and sequence on 2 × 2": Parallelism(pipeline_parallel=2, tensor_parallel=2, sequence_parallel=True),
}


def whole(value: Tensor) -> Tensor:
    """Return the whole tensor, gathered from all processes."""
    return (value.full_tensor() if isinstance(value, DTensor) else value).detach().clone()


def first_gradients(run: Trainer) -> dict[str, Tensor]:
    """Return a dictionary that gets the clipped gradients of the first step."""
    found: dict[str, Tensor] = {}
    weights = run.state.model

    def look(*_: Any) -> None:
        if not found:
            cuts = find_fused(weights)
            for name, p in weights.named_parameters():
                assert p.grad is not None
                found.update(split_tensor(name, whole(p.grad), cuts))

    run.state.optimizer.register_step_pre_hook(look)
    return found


def work(folder: Path, parallel: Parallelism, name: str) -> tuple[dict[str, Tensor], int]:
    """Do two steps with evaluations; return the gradients of the first and the number of this process's weights."""
    micro_batches = 4 if name.startswith("four") else 2
    changes = {"grad_clip": CLIP, "grad_accum_steps": micro_batches, "steps": 2, "evaluate_every": 1}
    run = trainer(folder, parallel, name, **changes)
    run.state.best_loss = -math.inf  # so that only the last step is saved, because saving takes as long as training
    gradients = first_gradients(run)
    run.run()
    own = (p.to_local() if isinstance(p, DTensor) else p for p in run.state.model.parameters())
    return gradients, sum(p.numel() for p in own)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Any:
    """Return metrics, gradients of the first step and number of weights for the same run on one process."""

    @cache
    def run(name: str) -> tuple[list[dict[str, Any]], dict[str, Tensor], int]:
        folder = tmp_path_factory.mktemp("alone")
        gradients, weights = work(folder, ONE_PROCESS, name)
        return runs.records(folder), gradients, weights

    return run


TENSOR = WAYS["tensor and sequence on 2"]
TIED = ("BLOOM", "four tied layers")
"""Models whose first and last stage both hold the embedding."""

CASES = [
    *(("four layers" if way.pipeline_parallel > 1 else "modern", way) for way in WAYS.values()),
    *((name, TENSOR) for name in ("GPT-2", "Qwen 3", "Gemma 2", "GPT-NeoX", "post-norm")),
    *((name, Parallelism(pipeline_parallel=2)) for name in ("untied GPT-2", "Gemma 2", "post-norm", "BLOOM")),
    *(
        ("four tied layers", WAYS[way])
        for way in ("1F1B on 4", "1F1B × FSDP2 on 2 × 2", "1F1B × tensor and sequence on 2 × 2")
    ),
]


@pytest.mark.parametrize(("name", "parallel"), CASES, ids=str)
def test_parallel_runs_match_one_process(name: str, parallel: Parallelism, alone: Any, tmp_path: Path) -> None:
    records, gradients, weights = alone(name)
    results = all_returned(run_processes(parallel, tmp_path, work, tmp_path / "run", parallel, name))

    same_records(runs.records(tmp_path / "run"), records)
    for found, _ in results:
        for part, gradient in found.items():
            # The total norm is CLIP. The gradient of a key's bias is 0, because a softmax ignores a constant in all
            # scores.
            atol = max(2e-6 * gradients[part].abs().max().item(), 1e-9)
            torch.testing.assert_close(gradient, gradients[part], rtol=1e-5, atol=atol)
    assert set().union(*(found for found, _ in results)) == gradients.keys()

    copies = sum(own for _, own in results) / (weights + (name in TIED) * 256 * 32)
    assert copies == pytest.approx(parallel.data_parallel, rel=SMALL if parallel.tensor_parallel > 1 else 0)


def same_records(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Check that two runs have the same records up to rounding."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.keys() == other.keys()
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-6)
        assert one["gradient_norm"] == pytest.approx(other["gradient_norm"], rel=1e-5)
        assert one["gradient_norm"] > CLIP
        assert one.get("validation_loss", 0) == pytest.approx(other.get("validation_loss", 0), rel=1e-6)


MUON = [
    Parallelism(data_parallel=2),
    Parallelism(fsdp=2, tensor_parallel=2, sequence_parallel=True),
    Parallelism(pipeline_parallel=2, fsdp=2),
]
"""Runs with whole matrices, matrices that are sharded twice, and stages with sharded matrices."""


def muon(folder: Path, parallel: Parallelism) -> dict[str, Tensor]:
    """Train with Muon and return the weights."""
    changes = {"optimizer": "muon", "grad_accum_steps": 4, "muon_learning_rate": 0.002, "evaluate_every": None}
    run = trainer(folder, parallel, "untied", **changes)
    run.run()
    model = run.state.model
    cuts, named = find_fused(model), model.named_parameters()
    return {part: value for name, p in named for part, value in split_tensor(name, whole(p), cuts)}


@pytest.fixture(scope="module")
def muon_alone(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> tuple[list[float], dict[str, Tensor]]:
    folder = tmp_path_factory.mktemp("muon")
    weights = muon(folder, ONE_PROCESS)
    return runs.losses(folder), weights


@pytest.mark.parametrize("parallel", MUON, ids=str)
def test_parallel_muon_steps_match_one_process(parallel: Parallelism, muon_alone: Any, tmp_path: Path) -> None:
    """Rounding of a gradient can change bits of a bf16 product, especially for small singular values. So the weights
    match one process only up to 1/50 of the change in three steps."""
    losses, weights = muon_alone
    results = all_returned(run_processes(parallel, tmp_path, muon, tmp_path / "run", parallel))
    assert runs.losses(tmp_path / "run") == pytest.approx(losses, rel=1e-4)
    for found in results:
        for name, value in found.items():
            if "blocks" in name and value.dim() == 2:
                moved = 3 * 0.002 * max(value.shape) ** 0.5
                assert (value - weights[name]).norm() < moved / 50
    assert set().union(*results) == weights.keys()
