"""The references of notebook 18 against torch, whole layers, and the package's own accounting and models."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.accounting.parallel import (
    Layout,
    all_reduce_bytes,
    max_alive,
    pipeline_orders,
    state_memory,
    tensor_parallel_traffic,
)
from lmcourse.accounting.parameters import count_parameters
from lmcourse.accounting.recipes import find_recipe
from lmcourse.chapters.parallelism import exercises
from lmcourse.chapters.parallelism.exercises.layouts import LLAMA
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import matches
from lmcourse.models.zoo import find_model
from lmcourse.training.parallel.simulated import Run, simulate


def _run(exercise: Exercise, *columns: Any) -> Run:
    return simulate(exercise.reference, *columns, collectives=True)


def _normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("workers", range(1, 18))
def test_a_broadcast_takes_as_many_rounds_as_doubling_does(workers: int) -> None:
    run = simulate(exercises.broadcast.reference, [torch.ones(3)] + [None] * (workers - 1))
    assert [result.tolist() for result in run.results] == [[1.0] * 3] * workers
    assert run.rounds == math.ceil(math.log2(workers))
    assert sum(run.sent) == 12 * (workers - 1)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 6, 12])
def test_the_ring_sends_what_the_accounting_says(workers: int) -> None:
    xs = [torch.arange(12.0) * rank for rank in range(workers)]
    run = simulate(exercises.ring_all_reduce.reference, xs)
    assert run.sent == [all_reduce_bytes(48, workers)] * workers
    assert run.rounds == 2 * (workers - 1)
    assert all(torch.equal(result, torch.stack(xs).sum(0)) for result in run.results)


def test_averaged_gradients_are_those_of_the_whole_batch() -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5)).double()
    weights = list(model.parameters())
    inputs, targets = _normal(9, 4), torch.tensor([0, 1, -100, 3, -100, -100, -100, -100, 2])

    def gradients(at: slice) -> list[Tensor]:
        loss = F.cross_entropy(model(inputs[at]), targets[at], ignore_index=-100)
        return list(torch.autograd.grad(loss, weights))

    shares = [slice(0, 4), slice(4, 8), slice(8, 9)]
    run = _run(exercises.average_gradients, [gradients(at) for at in shares], [3, 0, 1])
    for result in run.results:
        torch.testing.assert_close(result, gradients(slice(None)))


def test_a_sharded_step_is_torchs() -> None:
    weights, gradients = _normal(6), [[_normal(6) for _ in range(3)] for _ in range(4)]
    whole = weights.clone().requires_grad_()
    optimizer = torch.optim.SGD([whole], lr=0.1, momentum=0.9, foreach=False)
    copies, momenta = [weights] * 3, [torch.zeros(2).double()] * 3
    for step in gradients:
        run = _run(exercises.sharded_step, copies, step, momenta, [0.1] * 3, [0.9] * 3)
        copies, momenta = [weights for weights, _ in run.results], [momentum for _, momentum in run.results]
        whole.grad = torch.stack(step).sum(0)
        optimizer.step()
    torch.testing.assert_close(copies, [whole.detach()] * 3)
    torch.testing.assert_close(torch.cat(momenta), optimizer.state[whole]["momentum_buffer"])


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_cut_layer_is_the_whole_one_forward_and_backward(workers: int) -> None:
    x, up, down, dy = _normal(3, 5).requires_grad_(), _normal(8, 5), _normal(5, 8), _normal(3, 5)
    y = F.gelu(x @ up.T) @ down.T
    y.backward(dy)  # type: ignore[no-untyped-call]
    ups, downs = list(up.chunk(workers)), list(down.chunk(workers, 1))
    run = _run(exercises.tensor_parallel_ffn, [x.detach()] * workers, ups, downs, [dy] * workers)
    for result, slope in run.results:
        torch.testing.assert_close(result, y.detach())
        torch.testing.assert_close(slope, x.grad)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_cut_heads_are_the_whole_attention(workers: int) -> None:
    x, qkv, out = _normal(5, 8), _normal(24, 8), _normal(8, 8)
    q, k, v = (part.view(5, 4, 2).transpose(0, 1) for part in (x @ qkv.T).split(8, 1))  # type: ignore[no-untyped-call]
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).flatten(1) @ out.T
    shares = [torch.cat(parts) for parts in zip(*(kind.chunk(workers) for kind in qkv.chunk(3)), strict=True)]
    outs = list(out.chunk(workers, 1))
    run = _run(exercises.tensor_parallel_attention, [x] * workers, shares, outs, [4 // workers] * workers)
    for result in run.results:
        torch.testing.assert_close(result, whole)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_cut_loss_is_torchs(workers: int) -> None:
    logits, targets = 20 * _normal(7, 12), torch.tensor([0, 11, 5, 6, 3, 8, 4])
    run = _run(exercises.vocabulary_parallel_loss, list(logits.chunk(workers, 1)), [targets] * workers)
    assert run.results == [pytest.approx(F.cross_entropy(logits, targets).item(), rel=1e-12)] * workers


def test_cut_tokens_give_the_whole_half_block_for_the_bytes_of_an_all_reduce() -> None:
    x, up, down = _normal(6, 4), _normal(8, 4), _normal(4, 8)
    whole = x + F.gelu(F.rms_norm(x, (4,), eps=1e-6) @ up.T) @ down.T
    run = _run(exercises.sequence_parallel_ffn, list(x.chunk(2)), list(up.chunk(2)), list(down.chunk(2, 1)))
    torch.testing.assert_close(torch.cat(run.results), whole)
    assert run.sent == [all_reduce_bytes(x.numel() * 8, 2)] * 2


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_orders_are_those_of_the_package(schedule: str) -> None:
    for stages in (1, 2, 5):
        for micro in (1, 3, 5, 9):
            orders = [exercises.stage_order.reference(rank, stages, micro, schedule) for rank in range(stages)]
            assert orders == pipeline_orders(stages, micro, schedule)
            assert max(map(max_alive, orders)) == (micro if schedule == "gpipe" else min(stages, micro))


def test_the_share_of_the_wire_is_that_of_the_accounting() -> None:
    config = find_model("llama-3-8b").decoder
    tokens, peak, bandwidth = 100, 989.4e12, 450e9
    blocks = len(config.layers)
    sent = tensor_parallel_traffic(config, 1, tokens, 8)["forward"] / blocks
    flops = 2 * 12 * config.d_model**2 * tokens / 8
    expected = sent / bandwidth / (flops / peak)
    assert exercises.tensor_share.reference(config.d_model, 8, peak, bandwidth) == pytest.approx(expected)
    found = [exercises.tensor_share.reference(d, 8, peak, b) for d, b in ((16384, 450e9), (16384, 50e9), (4096, 450e9))]
    assert [f"{share:.3g}" for share in found] == ["0.313", "2.82", "1.25"]


def test_llama_3_8b_has_thirteen_layouts_on_two_machines() -> None:
    found = exercises.layouts.reference(16, 8, *LLAMA)
    assert (len(found), found[0], found[-1]) == (13, [1, 1, 16], [8, 2, 1])
    config, recipe = find_model("llama-3-8b").decoder, find_recipe("mixed")
    parameters = count_parameters(config).total
    assert (len(config.layers), config.layers[0].attention.key_heads) == LLAMA[:2]
    assert f"{state_memory(parameters, recipe, Layout()).total / 1e9:.1f}" == str(LLAMA[2])
    for data, tensor, pipeline in found:
        assert state_memory(parameters, recipe, Layout(data, tensor, pipeline)).total <= LLAMA[3] * 1e9


@pytest.mark.parametrize("exercise", exercises.EXERCISES, ids=lambda exercise: exercise.name)
def test_no_rule_refuses_what_torch_itself_calls_when_it_imports_its_compiler(exercise: Exercise) -> None:
    assert not matches("torch.distributed.distributed_c10d.Backend.register_backend", exercise.rules)
