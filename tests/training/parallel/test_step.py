"""Test the sums and the random numbers of a step on many processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.tensor import DTensor
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from lmcourse.data.batch import IGNORE_INDEX, Batch
from lmcourse.training.evaluation import evaluate
from lmcourse.training.parallel.process_group import make_context
from lmcourse.training.parallel.split_linear import find_fused
from lmcourse.training.precision import MixedPrecision, Precision
from lmcourse.training.state import seed_all
from lmcourse.training.step import accumulate_gradients
from lmcourse.training.trainer import Trainer
from lmcourse.training.training_config import ONE_PROCESS, Parallelism, TrainingConfig
from tests.training import runs
from tests.training.parallel.real_processes import all_returned, model, run_processes, split_tensor, trainer

pytestmark = [pytest.mark.prove, pytest.mark.usefixtures("one_thread")]

CPU = torch.device("cpu")
TWO = Parallelism(data_parallel=2)


def uneven_batches(dp_rank: int, dp_size: int) -> list[Batch]:
    """Return four micro-batches of four rows. Rows have different numbers of targets, and some have none."""
    generator = torch.Generator().manual_seed(4)
    windows = torch.randint(0, 256, (16, 17), generator=generator)
    ignored = torch.rand(16, 16, generator=generator) < torch.linspace(0, 1.1, 16)[:, None]
    targets = windows[:, 1:].masked_fill(ignored, IGNORE_INDEX)
    batches = zip(windows[:, :-1].split(4), targets.split(4), strict=True)
    return [Batch(inputs.chunk(dp_size)[dp_rank], outputs.chunk(dp_size)[dp_rank]) for inputs, outputs in batches]


def uneven(parallel: Parallelism) -> tuple[float, dict[str, Tensor]]:
    """Return the loss and this process's gradients."""
    distributed = make_context(parallel, CPU)
    part, call = distributed.parallelize(
        model("four layers"), TrainingConfig(1, 4, 16, grad_accum_steps=4, parallel=parallel)
    )
    loss = accumulate_gradients(
        call, uneven_batches(distributed.dp_rank, distributed.dp_size), MixedPrecision("fp32", CPU), 0.01, distributed
    )
    cuts, found = find_fused(part), {}
    for name, p in part.named_parameters():
        assert p.grad is not None
        whole = p.grad.full_tensor() if isinstance(p.grad, DTensor) else p.grad
        found.update(split_tensor(name, whole.clone(), cuts))
    return loss.item(), found


@pytest.mark.parametrize(
    "parallel",
    [
        TWO,
        Parallelism(fsdp=2),
        Parallelism(tensor_parallel=2, sequence_parallel=True),
        Parallelism(pipeline_parallel=2),
        Parallelism(pipeline_parallel=2, data_parallel=2),
    ],
    ids=str,
)
def test_every_target_has_the_same_weight(parallel: Parallelism, tmp_path: Path) -> None:
    """A mean of the processes' means would be wrong, because their numbers of targets differ."""
    loss, gradients = uneven(ONE_PROCESS)
    for ours, found in all_returned(run_processes(parallel, tmp_path, uneven, parallel)):
        assert ours == pytest.approx(loss, rel=1e-6)
        for name, gradient in found.items():
            scale = gradients[name].abs().max().item()
            torch.testing.assert_close(gradient, gradients[name], rtol=1e-5, atol=2e-6 * scale)


def count_exchanges(folder: Path) -> int:
    run = trainer(folder, TWO, grad_accum_steps=4)
    assert isinstance(run.model, DistributedDataParallel)
    exchanges = []

    def exchange(group: dist.ProcessGroup, bucket: dist.GradBucket) -> Future[Tensor]:
        exchanges.append(bucket.is_last())
        return allreduce_hook(group, bucket)

    run.model.register_comm_hook(run.model.process_group, lambda group, bucket: exchange(group, bucket))
    run.run()
    return sum(exchanges)


def test_gradients_are_all_reduced_once_per_step(tmp_path: Path) -> None:
    """They are not all-reduced after every micro-batch."""
    assert all_returned(run_processes(TWO, tmp_path, count_exchanges, tmp_path / "run")) == [3, 3]


def validate(parallel: Parallelism, lengths: list[int]) -> list[float]:
    distributed = make_context(parallel, CPU)
    config = TrainingConfig(1, 4, 16, grad_accum_steps=4, parallel=parallel)
    _, call = distributed.parallelize(model("four layers"), config)
    return [evaluate(call, runs.text(seq_len), 4, 16, MixedPrecision("fp32", CPU), distributed) for seq_len in lengths]


@pytest.mark.parametrize(
    "parallel",
    [Parallelism(fsdp=4), Parallelism(data_parallel=2, fsdp=2), Parallelism(pipeline_parallel=2, data_parallel=2)],
    ids=str,
)
def test_evaluation_reads_every_token_once(parallel: Parallelism, tmp_path: Path) -> None:
    """This includes a last batch with fewer rows than processes."""
    lengths = [2, 17, 50, 66, 82, 150]
    losses = validate(ONE_PROCESS, lengths)
    for found in all_returned(run_processes(parallel, tmp_path, validate, parallel, lengths)):
        assert found == pytest.approx(losses, rel=1e-6)


def start_unlike(parallel: Parallelism) -> float:
    distributed, built = make_context(parallel, CPU), model()
    if not distributed.is_main:
        torch.nn.init.normal_(built.embedding.tokens.weight)
    _, call = distributed.parallelize(built, TrainingConfig(1, 4, 16, parallel=parallel))
    return evaluate(call, runs.text(100), 4, 16, MixedPrecision("fp32", CPU), distributed)


@pytest.mark.parametrize("parallel", [TWO, Parallelism(fsdp=2)], ids=str)
def test_all_processes_start_with_rank_0s_weights(parallel: Parallelism, tmp_path: Path) -> None:
    expected = start_unlike(ONE_PROCESS)
    assert all_returned(run_processes(parallel, tmp_path, start_unlike, parallel)) == pytest.approx(
        [expected] * 2, rel=1e-6
    )


def draw(parallel: Parallelism) -> float:
    distributed = make_context(parallel, CPU)
    seed_all(7, distributed.rng_stream)
    return torch.rand(()).item()


def test_only_tensor_parallel_ranks_share_random_numbers(tmp_path: Path) -> None:
    """The first rank draws the same numbers as a single process."""
    torch.manual_seed(7)
    alone = torch.rand(()).item()
    for parallel in (TWO, Parallelism(fsdp=2), Parallelism(pipeline_parallel=2)):
        first, second = all_returned(run_processes(parallel, tmp_path, draw, parallel))
        assert first == alone
        assert second != alone
    assert all_returned(
        run_processes(Parallelism(tensor_parallel=2), tmp_path, draw, Parallelism(tensor_parallel=2))
    ) == [
        alone,
        alone,
    ]


def train_in(precision: Precision, parallel: Parallelism, folder: Path, activation_checkpointing: bool) -> None:
    trainer(
        folder, parallel, "untied GPT-2", precision=precision, activation_checkpointing=activation_checkpointing
    ).run()


@pytest.mark.parametrize(
    ("precision", "parallel"),
    [
        ("bf16", TWO),
        ("fp16", TWO),
        ("bf16", Parallelism(fsdp=2)),
        ("bf16", Parallelism(tensor_parallel=2, sequence_parallel=True)),
        ("bf16", Parallelism(pipeline_parallel=2)),
    ],
)
def test_mixed_precision_works_with_recomputed_blocks(
    precision: Precision, parallel: Parallelism, tmp_path: Path
) -> None:
    """It matches one process within 16-bit rounding, because partial products are rounded before they are added."""
    all_returned(run_processes(parallel, tmp_path, train_in, precision, parallel, tmp_path / "run", True))
    train_in(precision, ONE_PROCESS, tmp_path / "alone", False)
    ours, theirs = (runs.records(tmp_path / name) for name in ("run", "alone"))
    close = 1e-6 if parallel.tensor_parallel == 1 else 2**-9
    assert [record["loss"] for record in ours] == pytest.approx([record["loss"] for record in theirs], rel=2**-9)
    assert ours[0]["loss"] == pytest.approx(theirs[0]["loss"], rel=close)
    assert ours[0]["gradient_norm"] == pytest.approx(theirs[0]["gradient_norm"], rel=2**-7)


def train_bigrams(folder: Path, parallel: Parallelism) -> None:
    torch.manual_seed(0)
    config = replace(runs.BASE, steps=3, warmup_steps=0, batch=4, parallel=parallel)
    bigrams = torch.nn.Sequential(torch.nn.Embedding(256, 16), torch.nn.Linear(16, 256))
    Trainer(bigrams, config, runs.text(), folder).run()


@pytest.mark.parametrize("parallel", [TWO, Parallelism(fsdp=2)], ids=str)
def test_models_without_blocks_are_sharded_too(parallel: Parallelism, tmp_path: Path) -> None:
    all_returned(run_processes(parallel, tmp_path, train_bigrams, tmp_path / "run", parallel))
    train_bigrams(tmp_path / "alone", ONE_PROCESS)
    assert runs.losses(tmp_path / "run") == pytest.approx(runs.losses(tmp_path / "alone"), rel=1e-6)
