"""Compare MFU, days and energy with published numbers, and reject impossible values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.mfu import Cluster, mfu, throughput_mfu
from tests.accounting.hardware import A100, H100, ROUND


def test_mfu_of_round_numbers_is_exact() -> None:
    assert mfu(50, 2.0, ROUND, "bf16") == 0.25
    assert mfu(50, 2.0, ROUND, "fp32") == 0.5
    assert mfu(50, 2.0, ROUND, "bf16", devices=5) == 0.05
    assert mfu(100, 1.0, ROUND, "bf16") == 1.0


def test_palm_reached_46_percent() -> None:
    """Chowdhery et al. (2022), appendix B: 238.3e3 tokens/s on 6144 TPU v4 with 6·N + 12·L·H·Q·T FLOPs each."""
    flops = 6 * 540.35e9 + 12 * 118 * 48 * 256 * 2048
    share = throughput_mfu(238.3e3, flops, find_accelerator("tpu-v4"), "bf16", devices=6144)
    assert share == pytest.approx(0.462, abs=0.0005)


def test_an_mfu_above_1_is_an_error_with_likely_causes() -> None:
    with pytest.raises(
        ValueError, match=r"200% of the bf16 peak of round numbers .* is impossible\. .*synchronise"
    ) as error:
        mfu(200, 1.0, ROUND, "bf16")
    for cause in ("variant", "format", "twice", "busy"):
        assert cause in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="is impossible"):
        throughput_mfu(101.0, 1.0, ROUND, "bf16")


@pytest.mark.parametrize(("flops", "seconds", "devices"), [(-1, 1, 1), (1, 0, 1), (1, -1, 1), (1, 1, 0)])
def test_impossible_measurements_are_rejected(flops: float, seconds: float, devices: int) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        mfu(flops, seconds, ROUND, "bf16", devices=devices)


def test_llama_7b_training_time_matches_the_paper() -> None:
    """Touvron et al. (2023), LLaMA, table 15: 82,432 A100-hours and 36 MWh for a trillion tokens, with a power usage
    effectiveness of 1.1; so 400 W is what they count."""
    hours, tokens, parameters = 82_432, 1e12, 6.7e9
    share = 6 * parameters * tokens / (hours * 3600 * 312e12)
    cluster = Cluster(A100, 2048, share)
    assert cluster.device_hours(6 * parameters * tokens) == pytest.approx(hours)
    assert round(1.1 * cluster.energy(6 * parameters * tokens) / 1000) == 36


def test_throughput_and_days_agree() -> None:
    cluster = Cluster(H100, 8, 0.4)
    tokens = cluster.tokens(1, 6e9)
    assert throughput_mfu(tokens / 86_400, 6e9, H100, "bf16", devices=8) == pytest.approx(0.4)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="at least one device"):
        Cluster(A100, 0, 0.4)
    for share in (0, 1.1):
        with pytest.raises(ValueError, match="fraction of the peak"):
            Cluster(A100, 1, share)
    with pytest.raises(ValueError, match="power limit of A100 SXM 80 GB is not known"):
        Cluster(replace(A100, power=None), 1, 0.4).energy(1.0)
