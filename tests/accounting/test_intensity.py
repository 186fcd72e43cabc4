"""Arithmetic intensity in closed form, against corrected figures of the notes and whole models."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmcourse.accounting.latency import (
    compute_bound_tokens,
    decode_attention_intensity,
    elementwise_intensity,
    forward_operations,
    matmul_intensity,
)
from lmcourse.models.zoo import find_model
from tests.accounting.hardware import A100, ROUND

A100_OF_THE_NOTES = replace(A100, bandwidth=2.0e12)
A100_40 = replace(A100, bandwidth=1.6e12)
V100_OF_THE_NOTES = replace(A100, peaks={"bf16": 130e12}, bandwidth=1.1e12)


@pytest.mark.parametrize(("tokens", "intensity"), [(1, 1.0), (200, 190.7), (2048, 1365)])
def test_square_products(tokens: int, intensity: float) -> None:
    assert matmul_intensity(tokens, 8192, 8192) == pytest.approx(intensity, abs=0.5 if tokens == 2048 else 0.05)


def test_training_saturates_at_half_the_width() -> None:
    assert round(matmul_intensity(2**22, 12_288, 12_288)) == 6135
    assert matmul_intensity(2**40, 12_288, 12_288) == pytest.approx(12_288 / 2)


@pytest.mark.parametrize(
    ("accelerator", "tokens"), [(A100_OF_THE_NOTES, 162), (A100_40, 205), (V100_OF_THE_NOTES, 122)]
)
def test_batch_that_saturates(accelerator: object, tokens: int) -> None:
    assert round(compute_bound_tokens(8192, accelerator)) == tokens  # type: ignore[arg-type]


def test_at_the_saturating_batch_intensity_is_the_ridge() -> None:
    for width in (50, 8192):
        tokens = compute_bound_tokens(width, ROUND)
        assert matmul_intensity(1000 * width, width, width) > ROUND.ridge("bf16")
        assert 2 / 2 * tokens * width / (2 * tokens + width) == pytest.approx(ROUND.ridge("bf16"))
    assert compute_bound_tokens(20, ROUND) == float("inf")


def test_elementwise() -> None:
    assert elementwise_intensity(8) == 2
    assert elementwise_intensity(8, "fp32") == 1


@pytest.mark.parametrize("name", ["llama-2-7b", "llama-3-8b", "falcon-7b"])
def test_attention_of_a_whole_model_in_decoding(name: str) -> None:
    """Long texts: queries and results no longer count beside the cache."""
    config = find_model(name).decoder
    attention = config.layers[0].attention
    work = forward_operations(config, 4, 1, past=200_000)["attention"]
    assert work.intensity == pytest.approx(decode_attention_intensity(attention.heads // attention.key_heads), rel=1e-3)
