"""Compare the cluster model of a training step with other counts of the package and a simulated pipeline."""

from __future__ import annotations

import pytest

from lmcourse.accounting.parallel import (
    Layout,
    data_parallel_traffic,
    pipeline_orders,
    run_pipeline,
    state_memory,
    tensor_parallel_traffic,
)
from lmcourse.accounting.recipes import find_recipe
from lmcourse.accounting.step_time import Machines, TrainingStep, candidates, step_parts, step_time
from lmcourse.models.zoo import find_model

LLAMA = find_model("llama-3-8b").decoder
STEP = TrainingStep.of(LLAMA, texts=64, seq_len=4096)
MACHINES = Machines(64)


def test_one_device_computes_six_flops_a_parameter_and_token() -> None:
    time = step_time(STEP, Machines(1), 1, 1, 1, 0, 8)
    assert time.seconds == pytest.approx(STEP.flops / (0.7 * 989.4e12))
    assert time.mfu(STEP, Machines(1)) == pytest.approx(0.7)


@pytest.mark.parametrize("zero", [0, 1, 3])
def test_state_and_traffic_agree_with_the_counts_for_one_micro_batch(zero: int) -> None:
    parts = step_parts(STEP, MACHINES, 8, 8, 1, zero, 8)  # type: ignore[arg-type]
    layout, mixed = Layout(8, 8, 1, zero), find_recipe("mixed-16-bit-gradients")  # type: ignore[arg-type]
    whole = 8 * STEP.parameters / STEP.layers / 8 if zero == 3 else 0  # of a layer, two weights and two gradients
    assert parts.state == pytest.approx(state_memory(STEP.parameters, mixed, layout).total + whole)
    assert parts.gradients * 50e9 == pytest.approx(data_parallel_traffic(STEP.parameters, mixed, layout).total)
    assert parts.tensor * 450e9 == pytest.approx(tensor_parallel_traffic(LLAMA, 8, 4096, 8).total)


def test_divided_gradients_and_weights_are_sent_for_each_micro_batch() -> None:
    def sent(zero: int) -> float:
        return step_parts(STEP, MACHINES, 8, 8, 1, zero, 1).gradients  # type: ignore[arg-type]

    assert [sent(zero) / sent(0) for zero in (1, 2, 3)] == pytest.approx([1, 9 / 2, 24 / 2])


@pytest.mark.parametrize("pipeline", [2, 4, 8])
def test_the_bubble_matches_a_simulated_pipeline(pipeline: int) -> None:
    layout = (64 // (pipeline * 4), 4, pipeline, 0, 1)
    time = step_time(STEP, MACHINES, *layout)  # type: ignore[arg-type]
    micro = time.parts.micro_batches
    tasks = run_pipeline(pipeline_orders(pipeline, micro, "1f1b"))
    busy = time.parts.arithmetic + time.parts.tensor + time.parts.border
    assert (busy + time.bubble) / busy == pytest.approx(max(task.end for task in tasks) / (3 * micro))
    half = step_time(STEP, MACHINES, *layout, interleave=2)  # type: ignore[arg-type]
    busy_half = half.parts.arithmetic + half.parts.tensor + half.parts.border
    assert half.bubble / busy_half == pytest.approx(time.bubble / busy / 2)


def test_recomputation_trades_a_third_more_arithmetic_for_memory() -> None:
    kept, again = (step_time(STEP, MACHINES, 16, 4, 1, 0, 1, recompute=recompute) for recompute in (False, True))
    assert again.parts.arithmetic == pytest.approx(4 / 3 * kept.parts.arithmetic)
    assert again.parts.activations == pytest.approx(kept.parts.activations * (2 * 32 + 34) / (34 * 32))


def test_candidates_use_all_devices_and_whole_heads_layers_and_texts() -> None:
    found = list(candidates(STEP, MACHINES))
    assert len(set(found)) == len(found)
    assert (8, 8, 1, 0, 1) in found
    for data, tensor, pipeline, zero, micro in found:
        assert data * tensor * pipeline == 64
        assert tensor in (1, 2, 4, 8)
        assert pipeline <= 32
        assert 64 % (data * micro) == 0
        assert zero == 0 or data > 1
        step_parts(STEP, MACHINES, data, tensor, pipeline, zero, micro)


def test_an_impossible_layout_is_rejected() -> None:
    with pytest.raises(ValueError, match="not the number of devices"):
        step_parts(STEP, MACHINES, 8, 4, 1, 0, 1)
    with pytest.raises(ValueError, match="cannot be divided into micro-batches"):
        step_parts(STEP, MACHINES, 8, 8, 1, 0, 3)


def test_the_published_layout_is_as_fast_as_measured_with_interleaving() -> None:
    """Llama Team (2024), table 4: 128 copies x 8 x 16 reach 400 TFLOP/s a device, 40 % of the peak."""
    step, machines = TrainingStep.of(find_model("llama-3.1-405b").decoder, 2048), Machines(16_384)
    assert step_time(step, machines, 128, 8, 16, 1, 1, interleave=2).mfu(step, machines) == pytest.approx(
        0.40, abs=0.01
    )
