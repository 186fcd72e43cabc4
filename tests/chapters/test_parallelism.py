"""Notebook 18: references against independent sources, and what its figures show."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.accounting import step_time as step_time_module
from lmcourse.accounting.parallel import all_reduce_bytes, max_alive, pipeline_orders
from lmcourse.accounting.step_time import candidates, step_time
from lmcourse.chapters.parallelism import exercises, figures
from lmcourse.chapters.parallelism.figures.collectives import after
from lmcourse.chapters.parallelism.figures.overlap import bucket_times
from lmcourse.chapters.parallelism.simulated import Run, simulate
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import matches
from lmcourse.plots import alt_text
from tests.plots.figures import check_figure, said


def _run(exercise: Exercise, *columns: Any) -> Run:
    return simulate(exercise.reference, *columns, collectives=True)


def _normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("workers", [1, 3, 4])
def test_the_ring_sends_the_published_bytes_and_rounds(workers: int) -> None:
    """Patarasuk and Yuan, 2009: 2 (P − 1) / P of the tensor for each worker, in 2 (P − 1) rounds."""
    xs = [torch.arange(12.0) * rank for rank in range(workers)]
    run = simulate(exercises.ring_all_reduce.reference, xs)
    assert run.sent == [2 * (workers - 1) * 48 // workers] * workers
    assert run.rounds == 2 * (workers - 1)
    assert all(torch.equal(result, torch.stack(xs).sum(0)) for result in run.results)


def test_averaged_gradients_match_the_whole_batch() -> None:
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


def test_a_sharded_step_matches_torchs() -> None:
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


def test_a_divided_layer_matches_the_whole_one_in_both_passes() -> None:
    workers = 4
    x, up, down, dy = _normal(3, 5).requires_grad_(), _normal(8, 5), _normal(5, 8), _normal(3, 5)
    y = F.gelu(x @ up.T) @ down.T
    y.backward(dy)  # type: ignore[no-untyped-call]
    ups, downs = list(up.chunk(workers)), list(down.chunk(workers, 1))
    run = _run(exercises.tensor_parallel_ffn, [x.detach()] * workers, ups, downs, [dy] * workers)
    for result, slope in run.results:
        torch.testing.assert_close(result, y.detach())
        torch.testing.assert_close(slope, x.grad)


def test_attention_with_divided_heads_matches_the_whole() -> None:
    workers = 2
    x, qkv, out = _normal(5, 8), _normal(24, 8), _normal(8, 8)
    q, k, v = (part.view(5, 4, 2).transpose(0, 1) for part in (x @ qkv.T).split(8, 1))  # type: ignore[no-untyped-call]
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).flatten(1) @ out.T
    shares = [torch.cat(parts) for parts in zip(*(kind.chunk(workers) for kind in qkv.chunk(3)), strict=True)]
    outs = list(out.chunk(workers, 1))
    run = _run(exercises.tensor_parallel_attention, [x] * workers, shares, outs, [4 // workers] * workers)
    for result in run.results:
        torch.testing.assert_close(result, whole)


def test_a_loss_with_divided_vocabulary_matches_torchs() -> None:
    workers = 3
    logits, targets = 20 * _normal(7, 12), torch.tensor([0, 11, 5, 6, 3, 8, 4])
    run = _run(exercises.vocabulary_parallel_loss, list(logits.chunk(workers, 1)), [targets] * workers)
    assert run.results == [pytest.approx(F.cross_entropy(logits, targets).item(), rel=1e-12)] * workers


def test_sequence_parallelism_matches_the_layer_and_traffic() -> None:
    x, up, down = _normal(6, 4), _normal(8, 4), _normal(4, 8)
    whole = x + F.gelu(F.rms_norm(x, (4,), eps=1e-6) @ up.T) @ down.T
    run = _run(exercises.sequence_parallel_ffn, list(x.chunk(2)), list(up.chunk(2)), list(down.chunk(2, 1)))
    torch.testing.assert_close(torch.cat(run.results), whole)
    assert run.sent == [all_reduce_bytes(x.numel() * 8, 2)] * 2


def test_ring_attention_matches_torchs_and_sends_keys_and_values() -> None:
    q, k, v = (_normal(12, 4) for _ in range(3))
    whole = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    run = simulate(exercises.ring_attention.reference, list(q.chunk(3)), list(k.chunk(3)), list(v.chunk(3)))
    torch.testing.assert_close(torch.cat(run.results), whole, rtol=0, atol=1e-12)
    assert run.sent == [2 * 2 * 4 * 4 * 8] * 3


def test_no_rule_rejects_the_imports_of_torchs_compiler() -> None:
    called = "torch.distributed.distributed_c10d.Backend.register_backend"
    assert [exercise.name for exercise in exercises.EXERCISES if matches(called, exercise.rules)] == []


@pytest.mark.parametrize(("kind", "workers"), [*product(figures.COLLECTIVES, (2, 5))])
def test_every_collective_ends_with_its_result(kind: str, workers: int) -> None:
    held, sent, rounds = after(kind, workers, 100)
    everybody = frozenset(range(workers))
    for r, row in enumerate(held):
        match kind:
            case "broadcast":
                assert row == [frozenset({0})] * workers
            case "all-gather":
                assert row == [frozenset({c}) for c in range(workers)]
            case "reduce-scatter":
                assert [c for c, owners in enumerate(row) if owners == everybody] == [r]
            case _:
                assert row == [everybody] * workers
    if kind == "ring all-reduce":
        assert [float(share) for share in sent] == pytest.approx([all_reduce_bytes(1, workers)] * workers)
        assert rounds == 2 * (workers - 1)
        run = simulate(exercises.ring_all_reduce.reference, [torch.ones(workers)] * workers)
        assert (run.rounds, run.sent) == (rounds, [share * 4 * workers for share in sent])
    if kind == "through rank 0":
        assert (sent[0], set(sent[1:])) == (workers - 1, {1})


def test_the_pictures_match_the_text() -> None:
    assert "21 units of time, stages wait 42.9%" in alt_text(figures.pipeline_schedule(4, 4, "gpipe"))
    assert "21 units of time, stages wait 42.9%" in alt_text(figures.pipeline_schedule(4, 4, "1f1b"))
    assert alt_text(figures.pipeline_schedule(4, 32, "1f1b")).endswith("4, 3, 2, 1")
    explorer = alt_text(figures.layout_explorer())
    assert "4 × 4 × 4, ZeRO 1: 12.25 s a step, MFU 57%" in explorer
    assert explorer.endswith("76.5 GB, fits")
    published = figures.layout_explorer("llama-3.1-405b", "16,384 devices, 2,048 texts", 8, 16, interleave=2)
    assert "MFU 41%" in alt_text(published)
    assert "does not fit" in alt_text(published)
    assert alt_text(figures.layout_explorer(tensor=8, pipeline=16)) == "llama-3-70b: needs 128 devices"
    assert "g is an all-reduce, f is nothing" in alt_text(figures.tensor_parallel_block("forward"))
    assert "f is an all-reduce, g is nothing" in alt_text(figures.tensor_parallel_block("backward"))
    assert "8 devices 13.0 against 4.2" in said(figures.kept_per_device())
    links = {"fast": 450e9, "slow": 50e9}
    assert "fast: 0.31 at 8 devices; slow: 2.82" in said(figures.link_speeds(16384, 989.4e12, links))
    drawn = alt_text(figures.pipeline_times([["F0", "B0"]], backward=1.0))
    assert drawn.startswith("2 units of time, stages wait 0.0%")
    for figure in (figures.ring_bytes(), figures.bubble()):
        check_figure(figure)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_orders_match_the_package(schedule: str) -> None:
    for stages, micro in ((1, 3), (2, 9), (5, 3)):
        orders = [exercises.stage_order.reference(rank, stages, micro, schedule) for rank in range(stages)]
        assert orders == pipeline_orders(stages, micro, schedule)
        assert max(map(max_alive, orders)) == (micro if schedule == "gpipe" else min(stages, micro))


def test_buckets_stick_out_only_where_the_text_says() -> None:
    def sticks_out(tokens: float, bucket: float) -> float:
        backward, spans = bucket_times(tokens, bucket)
        return spans[-1][1] - backward

    assert sticks_out(65536, 25) < 0.01  # only the last bucket is sent after the backward pass
    assert sticks_out(4096, 25) > 0.5
    assert sticks_out(65536, 1) > 0.5
    assert sticks_out(65536, 16_060) == pytest.approx(2 * 16.06e9 / 50e9 + 200e-6)


@pytest.mark.parametrize("case", [case for case in exercises.best_layout.cases if not case.edge])
def test_the_best_layout_is_a_clear_winner(case: Case) -> None:
    """Nearly equal times come from the same parts, and no layout nearly fits, so rounding cannot decide."""
    step, machines = eval(str(case.script).splitlines()[-1].removeprefix("best_layout"), vars(step_time_module))
    priced = [step_time(step, machines, *layout) for layout in candidates(step, machines)]
    assert all(abs(time.memory / machines.memory - 1) > 1e-3 for time in priced)
    fitting = [time for time in priced if time.memory <= machines.memory]
    best = min(time.seconds for time in fitting)
    ties = [time for time in fitting if time.seconds < best * (1 + 1e-6)]
    assert len({time.parts.gradients for time in ties}) == 1
