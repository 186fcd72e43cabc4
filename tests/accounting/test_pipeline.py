"""Pipeline schedules: times, idle shares and what is alive, against their formulas."""

from __future__ import annotations

import pytest

from lmcourse.accounting.parallel import (
    SCHEDULES,
    idle_share,
    max_alive,
    pipeline_bubble_fraction,
    pipeline_orders,
    run_pipeline,
)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("stages", "micro"), [(1, 1), (1, 5), (2, 1), (3, 2), (4, 4), (4, 32), (8, 3)])
@pytest.mark.parametrize("backward", [1.0, 2.0, 2.5])
def test_both_schedules_take_the_same_time(schedule: str, stages: int, micro: int, backward: float) -> None:
    orders = pipeline_orders(stages, micro, schedule)
    tasks = run_pipeline(orders, 1.0, backward)
    assert max(task.end for task in tasks) == (micro + stages - 1) * (1 + backward)
    assert idle_share(tasks, stages) == pytest.approx(pipeline_bubble_fraction(stages, micro))
    assert sorted((task.stage, task.name) for task in tasks) == sorted(
        (stage, f"{kind}{i}") for stage in range(stages) for kind in "FB" for i in range(micro)
    )


def test_1f1b_keeps_fewer_alive() -> None:
    assert [max_alive(order) for order in pipeline_orders(4, 32, "gpipe")] == [32] * 4
    assert [max_alive(order) for order in pipeline_orders(4, 32, "1f1b")] == [4, 3, 2, 1]
    assert [max_alive(order) for order in pipeline_orders(4, 2, "1f1b")] == [2, 2, 2, 1]


def test_no_pass_starts_before_what_it_needs() -> None:
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


def test_orders_that_wait_for_each_other_are_told() -> None:
    with pytest.raises(ValueError, match="deadlock, what they need never comes: stage 0 for B0, stage 1 for F1"):
        run_pipeline([["F0", "B0", "F1", "B1"], ["F0", "F1", "B0", "B1"]])
    with pytest.raises(ValueError, match="there is no schedule 'zigzag': there are gpipe, 1f1b"):
        pipeline_orders(2, 2, "zigzag")
