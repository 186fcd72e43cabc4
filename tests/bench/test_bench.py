"""Compare predictions and measurements on a machine with round numbers and a fake clock."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from rich.console import Console
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.base.errors import CourseError
from lmcourse.bench.bench import WARMUP, Bench, bench, predict_training
from lmcourse.cli import tables
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model

FAST = Accelerator("fast", "a fast machine", {"fp32": 1e12, "bf16": 2e12}, 1e10, 2**30, None, None, ("made up",))
HALF = 0.5


def half_a_second(function: Callable[[], object]) -> float:
    function()
    return HALF


def small(**options: object) -> Bench:
    settings = {"batch": 2, "seq_len": 16, "steps": 3, "device": "cpu", "machine": FAST, "stopwatch": half_a_second}
    return bench("nano", **(settings | options))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found() -> Bench:
    return small()


def test_step_flops_match_torchs_count(found: Bench) -> None:
    """This is counted on the meta device, where attention consists of matrix products."""
    config = find_model("nano").config
    with torch.device("meta"):
        model, tokens = Transformer(config), torch.zeros(2, 16, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        model(tokens).sum().backward()
    assert found.training.flops == counter.get_total_flops()
    assert found.mfu == found.training.flops / HALF / 1e12


def test_rates_use_the_given_clock(found: Bench) -> None:
    assert found.training.measured.seconds == (HALF,) * 3
    assert found.training.tokens_per_second == 2 * 16 / HALF
    assert found.decoding.tokens_per_second == 2 / HALF
    assert found.training.share == found.training.predicted / HALF
    assert found.bandwidth_share == found.decoding.moved / HALF / 1e10


def test_decoding_is_predicted_for_the_cache_of_the_middle_step(found: Bench) -> None:
    """After a prompt of 11 tokens and two warm-up runs, the middle of three timed runs has 15 tokens in its cache."""
    model = Transformer(find_model("nano").config)
    weights = sum(parameter.numel() for parameter in model.parameters() if parameter.ndim == 2)
    layers, width, texts = 2, 64, 2
    assert found.decoding.flops == texts * (2 * weights + 4 * layers * width * 15)
    longer = small(seq_len=17).decoding
    assert longer.moved - found.decoding.moved == texts * 2 * layers * width * 4


def test_training_includes_the_optimizer(found: Bench) -> None:
    """With infinitely fast arithmetic, the time depends only on the bytes, including seven numbers per parameter."""
    config = find_model("nano").config
    endless = replace(FAST, peaks={"fp32": 1e30})
    moved, seconds = predict_training(config, 2, 16, endless, "fp32")
    assert moved == found.training.moved
    assert seconds == pytest.approx(moved / 1e10, rel=1e-9)
    parameters = sum(parameter.numel() for parameter in Transformer(config).parameters())
    assert moved > 3 * 4 * parameters + 7 * 4 * parameters


def test_bytes_autograd_keeps_are_predicted_exactly(found: Bench) -> None:
    assert found.saved_counted == found.saved_predicted > 0


def test_the_peak_of_a_training_step_is_predicted(found: Bench) -> None:
    assert found.peak_measured == pytest.approx(found.peak_predicted, rel=0.05)


def test_decoding_stays_within_the_sequence_length() -> None:
    """Prompt, warm-up and timed steps have `seq_len` tokens together; a longer text would not fit into the cache."""
    assert small(seq_len=WARMUP + 20 + 1, steps=20).decoding.measured.count == 20


def test_low_precision_formats_are_used_in_computation() -> None:
    found = small(precision="bf16")
    assert found.precision == "bf16"
    assert found.saved_counted == found.saved_predicted < small().saved_counted
    assert found.mfu == found.training.flops / HALF / 2e12


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"seq_len": 129}, "a context of 128 tokens, not 129"),
        ({"seq_len": 3 + WARMUP}, "--seq-len must be above"),
        ({"batch": 0}, "must be at least 1, not 3 and 0"),
        ({"precision": "nonsense"}, "nonsense is not measured on a cpu device"),
        ({"machine": replace(FAST, memory=10**6)}, "Use a smaller model"),
        ({"batch": 10**15, "machine": None}, "Use a smaller model, --batch or --seq-len"),
        ({"machine": replace(FAST, peaks={"fp32": 1.0})}, "is impossible"),
    ],
)
def test_mistakes_are_reported_in_one_line(options: dict[str, object], told: str) -> None:
    with pytest.raises(CourseError, match=told) as error:
        small(**options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("model", ["bert-base", "transformer-base"])
def test_only_a_decoder_decodes(model: str) -> None:
    with pytest.raises(CourseError, match="use a decoder"):
        bench(model, device="cpu", machine=FAST)


def test_json_is_one_document(found: Bench) -> None:
    document = json.loads(json.dumps(found.to_json()))
    assert document["machine"]["peaks"] == {"fp32": 1e12, "bf16": 2e12}
    assert document["training"]["measured"] == [HALF] * 3
    assert document["training"]["quartiles"] == [HALF, HALF]
    assert document["decoding"]["tokens_per_second"] == 4.0
    assert document["known_accelerator"] is None


def test_the_table_fits_80_columns_and_explains_the_cache(found: Bench) -> None:
    cached = replace(found, bandwidth_share=1.5, notes=("[b]nota bene[/b]",))
    shown = io.StringIO()
    Console(file=shown, width=80).print(tables.bench(cached))
    text = shown.getvalue()
    for part in ("a fast machine", "1,000 GFLOP/s", "10.0 GB/s", "500.0 ms", "decoding 150%", "cache", "[b]nota bene"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this test needs an NVIDIA GPU")
def test_a_gpu_is_measured_and_below_its_peak() -> None:
    found = bench("course-124m", steps=3, device="cuda")
    assert 0 < found.mfu < 1
    assert all(share <= 1 for share in found.peak_shares.values())
