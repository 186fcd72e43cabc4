"""Notebook 18: references against independent sources, and what its figures show."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmcourse.accounting import step_time as step_time_module
from lmcourse.accounting.parallel import max_alive, pipeline_orders
from lmcourse.accounting.step_time import candidates, step_time
from lmcourse.chapters.parallelism import exercises
from lmcourse.chapters.parallelism.fastest import (
    inspect_all_reduce,
    through_rank_0,
    times_the_least,
)
from lmcourse.chapters.parallelism.simulated import Run, simulate
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import matches
from lmcourse.exercises.open_task import Unfit


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


def test_a_loss_with_divided_vocabulary_matches_torchs() -> None:
    workers = 3
    logits, targets = 20 * _normal(7, 12), torch.tensor([0, 11, 5, 6, 3, 8, 4])
    run = _run(exercises.vocabulary_parallel_loss, list(logits.chunk(workers, 1)), [targets] * workers)
    assert run.results == [pytest.approx(F.cross_entropy(logits, targets).item(), rel=1e-12)] * workers


def test_divided_experts_match_the_whole_mixture() -> None:
    x, router = _normal(8, 4), _normal(4, 6)
    gate, value, down = (_normal(6, 4, 4) for _ in range(3))
    for k in (1, 2):
        p, chosen = (x @ router).softmax(1).topk(k)
        share = torch.zeros(8, 6).double().scatter(1, chosen, p / p.sum(1, keepdim=True) if k > 1 else p)
        whole = sum(share[:, e, None] * ((F.silu(x @ gate[e]) * (x @ value[e])) @ down[e]) for e in range(6))
        parts = [list(each.chunk(2)) for each in (x, gate, value, down)]
        run = _run(exercises.experts, parts[0], [router] * 2, *parts[1:], [k] * 2)
        torch.testing.assert_close(torch.cat(run.results), whole)


def test_a_fit_finds_the_line_that_made_the_times() -> None:
    sizes = [4, 1000, 80_000]
    found = exercises.fit_wire.reference(sizes, [1e-3 + 2e-8 * size for size in sizes])
    assert found == pytest.approx((1e-3, 2e-8))


def test_the_best_all_reduces_stay_near_the_least_for_any_wire() -> None:
    ideas = {idea.name: idea for idea in exercises.my_all_reduce.ideas}
    halving = ideas["halving while it pays"].written
    for alpha, beta in ((1e-3, 1e-6), (3e-5, 1e-8)):
        assert max(times_the_least(halving, alpha, beta).values()) == pytest.approx(1.26, abs=0.01)
    assert max(times_the_least(lambda worker, x, *_: through_rank_0(worker, x), 1e-3, 1e-6).values()) > 7


shared: list[Tensor] = []


def _by_a_shared_list(worker: Any, x: Tensor, alpha: float, beta: float) -> Tensor:
    shared.append(x)
    return torch.stack(shared).sum(0)


def _without_a_clock(worker: Any, x: Tensor, alpha: float, beta: float) -> Tensor:
    worker.now = worker.seconds = 0.0
    result = through_rank_0(worker, x)
    worker.now = worker.seconds = 0.0
    return result


def _in_half_precision(worker: Any, x: Tensor, alpha: float, beta: float) -> Tensor:
    return through_rank_0(worker, x.half().float())


@pytest.mark.parametrize("trick", [_by_a_shared_list, _in_half_precision])
def test_an_all_reduce_by_other_means_is_unfit(trick: Any) -> None:
    with pytest.raises(Unfit):
        inspect_all_reduce(trick)


def test_the_clock_is_not_the_workers_to_set() -> None:
    assert max(times_the_least(_without_a_clock, 2e-4, 1e-7).values()) > 7


def test_ring_attention_matches_torchs_and_sends_keys_and_values() -> None:
    q, k, v = (_normal(12, 4) for _ in range(3))
    whole = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    run = simulate(exercises.ring_attention.reference, list(q.chunk(3)), list(k.chunk(3)), list(v.chunk(3)))
    torch.testing.assert_close(torch.cat(run.results), whole, rtol=0, atol=1e-12)
    assert run.sent == [2 * 2 * 4 * 4 * 8] * 3


def test_no_rule_rejects_the_imports_of_torchs_compiler() -> None:
    called = "torch.distributed.distributed_c10d.Backend.register_backend"
    assert [exercise.name for exercise in exercises.EXERCISES if matches(called, exercise.rules)] == []


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_orders_match_the_package(schedule: str) -> None:
    for stages, micro in ((1, 3), (2, 9), (5, 3)):
        orders = [exercises.stage_order.reference(rank, stages, micro, schedule) for rank in range(stages)]
        assert orders == pipeline_orders(stages, micro, schedule)
        assert max(map(max_alive, orders)) == (micro if schedule == "gpipe" else min(stages, micro))


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
