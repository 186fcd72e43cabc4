"""Days and energy of training runs, against corrected figures of the notes and published runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmcourse.accounting.mfu import Cluster, throughput_mfu
from tests.accounting.hardware import A100, H100


def test_70_billion_parameters_on_15_trillion_tokens() -> None:
    cluster = Cluster(H100, 1024, 0.5)
    flops = 6 * 70e9 * 15e12
    assert flops == 6.3e24
    assert round(cluster.days(flops), 1) == 143.9
    assert cluster.tokens(cluster.days(flops), 6 * 70e9) == pytest.approx(15e12)


def test_hours_do_not_depend_on_how_many() -> None:
    one, many = Cluster(A100, 1, 0.4), Cluster(A100, 1000, 0.4)
    assert one.device_hours(1e24) == pytest.approx(many.device_hours(1e24))
    assert one.days(1e24) == pytest.approx(1000 * many.days(1e24))
    assert one.days(1e24) * 24 == pytest.approx(one.device_hours(1e24))


def test_llama_7b_as_published() -> None:
    """Touvron et al. (2023), LLaMA, table 15: 82,432 A100-hours and 36 MWh for a trillion tokens, with a power usage
    effectiveness of 1.1; so 400 W is what they count."""
    hours, tokens, parameters = 82_432, 1e12, 6.7e9
    mfu = 6 * parameters * tokens / (hours * 3600 * 312e12)
    cluster = Cluster(A100, 2048, mfu)
    assert cluster.device_hours(6 * parameters * tokens) == pytest.approx(hours)
    assert round(1.1 * cluster.energy(6 * parameters * tokens) / 1000) == 36


def test_throughput_and_days_agree() -> None:
    cluster = Cluster(H100, 8, 0.4)
    tokens = cluster.tokens(1, 6e9)
    assert throughput_mfu(tokens / 86_400, 6e9, H100, "bf16", devices=8) == pytest.approx(0.4)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="at least one device"):
        Cluster(A100, 0, 0.4)
    for mfu in (0, 1.1):
        with pytest.raises(ValueError, match="share of the peak"):
            Cluster(A100, 1, mfu)
    with pytest.raises(ValueError, match="power limit of A100 SXM 80 GB is not known"):
        Cluster(replace(A100, power=None), 1, 0.4).energy(1.0)
