"""Compare bytes per parameter with the tensors that torch's optimizers keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting.breakdown import Breakdown
from lmcourse.accounting.costs import account
from lmcourse.accounting.flops import muon_flops
from lmcourse.accounting.parameters import block_weights, count_parameters
from lmcourse.accounting.recipes import RECIPES, find_recipe
from lmcourse.accounting.workload import Workload
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.training.distributed_context import SINGLE_PROCESS
from lmcourse.training.param_groups import make_optimizer
from lmcourse.training.training_config import TrainingConfig

CONFIG = find_model("nano").decoder


def nbytes(tensors: Iterable[Any]) -> int:
    return sum(tensor.nbytes for tensor in tensors if isinstance(tensor, Tensor))


def predicted(name: str, model: nn.Module) -> Breakdown[int]:
    assert count_parameters(CONFIG).total == sum(parameter.numel() for parameter in model.parameters())
    return RECIPES[name].memory(count_parameters(CONFIG).total)


def backward(model: nn.Module) -> None:
    tokens = torch.randint(256, (2, 9))
    next_token_loss(model(tokens[:, :-1]), tokens[:, 1:]).backward()


def state(optimizer: Optimizer) -> int:
    """Return the bytes of an optimizer's state, without its step counters."""
    return nbytes(each[name] for each in optimizer.state.values() for name in each if name != "step")


@pytest.mark.parametrize(
    ("name", "make", "dtype"),
    [
        ("fp32", lambda parameters: AdamW(parameters, fused=True), torch.float32),
        ("fp32", lambda parameters: AdamW(parameters, foreach=True), torch.float32),
        ("bf16", lambda parameters: AdamW(parameters, fused=True), torch.bfloat16),
        ("sgd", lambda parameters: SGD(parameters, lr=0.1), torch.float32),
        ("momentum", lambda parameters: SGD(parameters, lr=0.1, momentum=0.9), torch.float32),
    ],
)
def test_a_step_leaves_the_predicted_bytes(
    name: str, make: Callable[[Iterable[nn.Parameter]], Optimizer], dtype: torch.dtype
) -> None:
    model = Transformer(CONFIG).to(dtype)
    optimizer = make(model.parameters())
    backward(model)
    optimizer.step()
    memory = predicted(name, model).parts
    assert memory["weights"] == nbytes(model.parameters())
    assert memory["gradients"] == nbytes(parameter.grad for parameter in model.parameters())
    assert memory.get("optimizer moments", 0) == state(optimizer)
    assert RECIPES[name].dtype == dtype


@pytest.mark.parametrize(("name", "gradients"), [("mixed-16-bit-gradients", torch.bfloat16), ("mixed", torch.float32)])
def test_master_weights_take_the_predicted_bytes(name: str, gradients: torch.dtype) -> None:
    """Mixed precision by hand: the optimizer steps on an fp32 copy of bf16 weights."""
    model = Transformer(CONFIG).to(torch.bfloat16)
    master = [parameter.detach().float() for parameter in model.parameters()]
    optimizer = AdamW(master, fused=True)
    backward(model)
    kept = [parameter.grad.to(gradients) for parameter in model.parameters() if parameter.grad is not None]
    for copy, gradient in zip(master, kept, strict=True):
        copy.grad = gradient.float()
    optimizer.step()
    assert dict(predicted(name, model).parts) == {
        "weights": nbytes(model.parameters()),
        "gradients": nbytes(kept),
        "master weights": nbytes(master),
        "optimizer moments": state(optimizer),
    }


def test_autocast_leaves_weights_and_gradients_in_fp32() -> None:
    model = Transformer(CONFIG)
    with torch.autocast("cpu", torch.bfloat16):
        backward(model)
    memory = predicted("autocast", model)
    assert memory["weights"] == nbytes(model.parameters())
    assert memory["gradients"] == nbytes(parameter.grad for parameter in model.parameters())
    assert RECIPES["autocast"].autocast
    assert not RECIPES["mixed"].autocast


def test_bytes_per_parameter_match_published_numbers() -> None:
    """Rajbhandari et al. (2020), §3.1: 16 Ψ; with fp32 gradients 18."""
    published = {"fp32": 16, "mixed-16-bit-gradients": 16, "mixed": 18, "autocast": 16, "sgd": 8, "momentum": 12}
    assert {name: find_recipe(name).per_parameter for name in published} == published
    assert find_recipe("inference").per_parameter == 2


def test_a_scale_per_block_of_2048_makes_8_bit_moments_larger_than_2() -> None:
    memory = find_recipe("adam-8bit").memory(2048 * 10)
    assert memory["optimizer moments"] == 2 * (2048 * 10 + 10 * 4)


def test_muon_keeps_one_moment_and_its_products_are_counted() -> None:
    """Compare with the trainer's optimizer: its state, and the FLOPs of its step."""
    model = Transformer(CONFIG)
    optimizer = make_optimizer(model, TrainingConfig(1, 1, 8, optimizer="muon"), SINGLE_PROCESS)
    backward(model)
    with FlopCounterMode(display=False) as counter:
        optimizer.step()
    matrices, total = block_weights(CONFIG), count_parameters(CONFIG).total
    memory = find_recipe("muon").memory(total, matrices=matrices)
    assert memory["optimizer moments"] == state(optimizer)
    assert matrices == sum(p.numel() for p in optimizer.state if "b" in optimizer.state[p])
    assert counter.get_total_flops() == muon_flops(CONFIG)
    count = account(Workload(CONFIG, 1, 128, find_recipe("muon")))
    assert count.optimizer_flops == muon_flops(CONFIG)
    assert count.training is not None
    assert count.training["optimizer moments"] == memory["optimizer moments"]
    assert account(Workload(CONFIG, 1, 128, find_recipe("fp32"))).optimizer_flops == 0
