"""Start real processes that communicate through gloo, in a few hundredths of a second."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmcourse.models.initialize import initialize
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.course import modern
from lmcourse.models.zoo.styles import LAYER_NORM, gpt_like, llama_like, window
from lmcourse.nn.embedding import EmbeddingConfig, HeadConfig
from lmcourse.nn.position_bias import AlibiConfig
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.nn.rotary import RotaryConfig
from lmcourse.training.parallel.process_group import process_group
from lmcourse.training.parallel.split_linear import FusedLinears
from lmcourse.training.trainer import Trainer
from lmcourse.training.training_config import Parallelism
from tests.training import runs

PATIENCE = 60.0
"""Seconds until a waiting process gives up, far longer than any test takes."""

Work = Callable[..., Any]


class Ended(Exception):  # noqa: N818  # it need not be an error
    """A process did not return; the message says how it ended."""


def run_processes(parallel: Parallelism, folder: Path, work: Work, *args: Any, started: int | None = None) -> list[Any]:
    """Run a function in each process; return its plain values and tensors, or how the process ended.

    Args:
        parallel: the parallelism of the run.
        folder: the folder in which the processes connect.
        work: the function.
        args: the arguments of the function.
        started: the number of started processes, if it differs from the run's.
    """
    # torch imports this module when it first saves
    importlib.import_module("torch.distributed.checkpoint._fsspec_filesystem")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "init_method").unlink(missing_ok=True)
    number = parallel.world_size if started is None else started
    context = multiprocessing.get_context("fork")
    children = [
        context.Process(target=_child, args=(parallel, folder, rank, number, work, args)) for rank in range(number)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(2 * PATIENCE)
        assert child.exitcode is not None, "a process hangs"
    return [_result(folder / f"result-{rank}.pt", child.exitcode) for rank, child in enumerate(children)]


def _child(parallel: Parallelism, folder: Path, rank: int, number: int, work: Work, args: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(number))
    init_method, timeout = (folder / "init_method").as_uri(), timedelta(seconds=PATIENCE)
    (folder / f"result-{rank}.pt").unlink(missing_ok=True)
    try:
        with process_group(parallel, torch.device("cpu"), init_method=init_method, timeout=timeout):
            result = work(*args)
    except BaseException as error:
        result = Ended(f"{type(error).__name__}: {error}")
        if not isinstance(error, SystemExit):
            traceback.print_exc()
    torch.save(result, folder / f"result-{rank}.pt")


def _result(path: Path, code: int) -> Any:
    return torch.load(path, weights_only=False) if path.exists() else Ended(f"exit code {code}")


def all_returned(results: list[Any]) -> list[Any]:
    """Return the results, after checking that every process has one."""
    assert not [result for result in results if isinstance(result, Ended)], results
    return results


SIZES: dict[str, Any] = {"vocab_size": 256, "context": 64}

MODELS = {
    "modern": modern(2, 32, 4, 64),
    "untied": modern(2, 32, 4, 64).with_(head=HeadConfig(tied=False)),
    "four layers": modern(4, 32, 4, 64).with_(head=HeadConfig(tied=False)),
    "four tied layers": modern(4, 32, 4, 64),
    "GPT-2": gpt_like(2, 32, 4, **SIZES),
    "untied GPT-2": gpt_like(2, 32, 4, head=HeadConfig(tied=False, bias=True), **SIZES),
    "Qwen 3": llama_like(2, 32, 4, 96, kv_heads=2, qk_norm=QKNormConfig(), tied=True, **SIZES),
    "Gemma 2": llama_like(
        2,
        32,
        4,
        96,
        kv_heads=2,
        soft_cap=5.0,
        layer_pattern=window(8, 2),
        block={"placement": "double"},
        head=HeadConfig(tied=False, soft_cap=3.0),
        embedding=EmbeddingConfig(scale=6.0),
        **SIZES,
    ),
    "GPT-NeoX": gpt_like(2, 32, 4, block={"branches": "parallel_two_norms"}, rotary=RotaryConfig(), **SIZES),
    "BLOOM": gpt_like(2, 32, 4, embedding=EmbeddingConfig(norm=LAYER_NORM), **SIZES).with_(position_bias=AlibiConfig()),
    "post-norm": gpt_like(2, 32, 4, block={"placement": "post"}, head=HeadConfig(tied=False), **SIZES),
}


def model(name: str = "modern") -> Transformer:
    """Return a small model without dropout, because its random numbers depend on the number of processes."""
    built = Transformer(MODELS[name])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        initialize(built)
    return built


def trainer(folder: Path, parallel: Parallelism, name: str = "modern", **changes: Any) -> Trainer:
    """Return the trainer of a run whose few steps change the weights strongly."""
    plain = {
        "steps": 3,
        "batch": 4,
        "learning_rate": 0.01,
        "warmup_steps": 0,
        "evaluate_every": 2,
        "checkpoint_every": None,
    }
    config = replace(runs.BASE, parallel=parallel, **{**plain, **changes})
    return Trainer(model(name), config, runs.text(), folder, validation=runs.text(180))


def split_tensor(name: str, value: Tensor, fused: FusedLinears) -> Iterator[tuple[str, Tensor]]:
    """Return the parts of a parameter-sized tensor under the parameter's names after `unfuse`."""
    layer, _, leaf = name.rpartition(".")
    if layer not in fused:
        yield name, value
        return
    parts = value.split(list(fused[layer].values()))
    yield from ((f"{layer}.{part}.{leaf}", rows) for part, rows in zip(fused[layer], parts, strict=True))
