"""Compare memory, traffic and pipeline schedules with published tables, simulated collectives and formulas."""

from __future__ import annotations

import pytest

from lmcourse.accounting.parallel import (
    SCHEDULES,
    Layout,
    ZeroStage,
    all_gather_bytes,
    all_reduce_bytes,
    data_parallel_traffic,
    idle_share,
    max_alive,
    pipeline_bubble_fraction,
    pipeline_orders,
    run_pipeline,
    state_memory,
    tensor_parallel_traffic,
)
from lmcourse.accounting.recipes import find_recipe
from lmcourse.models.zoo import find_model

MIXED = find_recipe("mixed-16-bit-gradients")


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_zero_memory_matches_the_paper(stage: ZeroStage, gigabytes: float) -> None:
    """Rajbhandari et al. (2020), figure 1: 7.5 billion parameters on 64 devices."""
    memory = state_memory(7_500_000_000, MIXED, Layout(data=64, zero=stage))
    assert round(memory.total / 1e9, 1) == gigabytes


def test_tensor_and_pipeline_divide_everything() -> None:
    whole = state_memory(10_000, MIXED, Layout())
    for layout in (Layout(tensor=8), Layout(pipeline=8), Layout(tensor=2, pipeline=4)):
        assert {part: 8 * size for part, size in state_memory(10_000, MIXED, layout)} == dict(whole.parts)
        assert layout.devices == 8
    assert state_memory(10_000, MIXED, Layout(data=8)) == whole


@pytest.mark.parametrize(("stage", "times"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_zero_sends_2_or_3_times_the_parameters(stage: ZeroStage, times: int) -> None:
    """Rajbhandari et al. (2020), §7.2, in numbers of 2 bytes each; n − 1 of n parts are sent."""
    sent = data_parallel_traffic(1000, MIXED, Layout(data=10, zero=stage)).total
    assert sent == pytest.approx(times * 2 * 1000 * 9 / 10)


def test_tensor_parallel_traffic_matches_the_papers() -> None:
    """4 all-reduces of b·s·h numbers per layer (Shoeybi et al., 2019, figure 4)."""
    gpt = find_model("gpt-2").decoder
    size = 3 * 100 * 768 * 2
    assert tensor_parallel_traffic(gpt, 3, 100, 4).total == 12 * 4 * all_reduce_bytes(size, 4)
    more = tensor_parallel_traffic(gpt, 3, 100, 4, sequence_parallel=True)
    assert more["backward, inputs again"] == 12 * 2 * all_gather_bytes(size, 4)
    falcon = find_model("falcon-7b").decoder
    assert tensor_parallel_traffic(falcon, 1, 1, 2).total == 32 * 2 * all_reduce_bytes(4544 * 2, 2)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="at least 1 device"):
        Layout(tensor=0)
    with pytest.raises(ValueError, match="stage must be from 0 to 3, not 4"):
        Layout(zero=4)  # type: ignore[arg-type]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("stages", "micro", "backward"), [(1, 5, 2.0), (2, 1, 1.0), (4, 32, 2.5), (8, 3, 2.0)])
def test_both_schedules_take_the_same_time(schedule: str, stages: int, micro: int, backward: float) -> None:
    orders = pipeline_orders(stages, micro, schedule)
    tasks = run_pipeline(orders, 1.0, backward)
    assert max(task.end for task in tasks) == (micro + stages - 1) * (1 + backward)
    assert idle_share(tasks, stages) == pytest.approx(pipeline_bubble_fraction(stages, micro))
    assert sorted((task.stage, task.name) for task in tasks) == sorted(
        (stage, f"{kind}{i}") for stage in range(stages) for kind in "FB" for i in range(micro)
    )


def test_1f1b_holds_fewer_micro_batches() -> None:
    assert [max_alive(order) for order in pipeline_orders(4, 32, "gpipe")] == [32] * 4
    assert [max_alive(order) for order in pipeline_orders(4, 32, "1f1b")] == [4, 3, 2, 1]
    assert [max_alive(order) for order in pipeline_orders(4, 2, "1f1b")] == [2, 2, 2, 1]


def test_no_pass_starts_before_its_inputs_exist() -> None:
    tasks = {(task.stage, task.name): task for task in run_pipeline(pipeline_orders(3, 4, "1f1b"), 1.0, 3.0)}
    for (stage, name), task in tasks.items():
        before = (stage - 1, name) if name[0] == "F" else (stage + 1, name)
        if before in tasks:
            assert task.start >= tasks[before].end
        if name[0] == "B":
            assert task.start >= tasks[stage, f"F{name[1:]}"].end
    for stage in range(3):
        mine = sorted(task.start for key, task in tasks.items() if key[0] == stage)
        ends = sorted(task.end for key, task in tasks.items() if key[0] == stage)
        assert all(start >= end for start, end in zip(mine[1:], ends, strict=False))


def test_deadlocked_orders_are_reported() -> None:
    waiting = "deadlock: these steps wait for a result that never arrives: stage 0 for B0, stage 1 for F1"
    with pytest.raises(ValueError, match=waiting):
        run_pipeline([["F0", "B0", "F1", "B1"], ["F0", "F1", "B0", "B1"]])
    with pytest.raises(ValueError, match="there is no schedule 'zigzag'; choose from gpipe, 1f1b"):
        pipeline_orders(2, 2, "zigzag")
