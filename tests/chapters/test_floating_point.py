"""Notebook 01: references against independent sources, and what its figures show."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle

from lmcourse import plots
from lmcourse.chapters.floating_point import figures, four_bits
from lmcourse.chapters.floating_point.exercises import loss_scale
from lmcourse.chapters.floating_point.exercises.four_bits import powers_of_two_by_chance
from lmcourse.chapters.floating_point.exercises.rounding import round_to as rounding
from lmcourse.chapters.floating_point.figures import BitExplorer
from lmcourse.chapters.floating_point.figures.bit_explorer import readout_html
from lmcourse.chapters.floating_point.tiny_run import exact, tiny_run
from lmcourse.exercises.open_task import Unfit
from lmcourse.numerics import BF16, FORMATS, FP16, FP32, FloatFormat, decode
from tests.plots.figures import check_figure

RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def test_the_grid_shows_every_code_and_outlines_one() -> None:
    name, special = "e5m2", 8
    figure = figures.code_grid(name, 0xC5)
    axes = figure.axes[0]
    shown = {text.get_position(): text.get_text() for text in axes.texts}
    values = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(FORMATS[name].torch_dtype).double()
    for code, value in enumerate(values.tolist()):
        text = shown[code % 16, code // 16]
        assert float(text.replace("×10", "e").translate(RAISED)) == pytest.approx(value, rel=0.05, nan_ok=True)
    assert f"{special} of them NaN or infinity" in plots.alt_text(figure)
    (outline,) = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert outline.get_xy() == (4.5, 11.5)


def test_running_sums_end_where_they_should() -> None:
    figure = figures.running_sums()
    ends = {line.get_label(): line.get_ydata()[-1] for line in figure.axes[0].lines}
    check_figure(figure)
    assert [f"{end:.4f}" for end in ends.values()] == ["10.0000", "10.0001", "9.9531", "4.0000"]
    assert "bf16: 4" in ends


def test_the_lost_fraction_matches_torchs_cast() -> None:
    scale = 2.0**10
    gradients = torch.from_numpy(10 ** np.random.default_rng(0).normal(-9, 1.5, 10_000))
    lost = ((gradients * scale).half() == 0).double().mean().item()
    figure = figures.gradient_histogram([gradients, torch.zeros(2, 3)], [4.0, 2.0**20], scale)
    check_figure(figure)
    assert f"lost: {100 * lost:.1f} %" in plots.alt_text(figure)
    assert "your scales for fp16: 2^2 to 2^20" in plots.alt_text(figure)


def test_reference_scales_are_the_largest_that_torchs_cast_accepts() -> None:
    gradients = tiny_run(exact, steps=1).gradients
    smallest, largest = loss_scale.loss_scales.reference(gradients, 5, 10)
    values = torch.cat([gradient.flatten().double() for gradient in gradients])
    values = values[values != 0]

    def lost(scale: float) -> float:
        return ((values * scale).half() == 0).double().mean().item()

    assert lost(smallest) <= 0.01 < lost(smallest / 2)
    assert (values * largest).half().isfinite().all()
    assert not (values * 2 * largest).half().isfinite().all()


def test_tensors_are_rounded_like_torchs_casts() -> None:
    values = torch.randn(2000, generator=torch.Generator().manual_seed(0)) * torch.logspace(-9, 5, 2000)
    for widths, dtype in (((5, 10), torch.half), ((8, 7), torch.bfloat16), ((5, 2), torch.float8_e5m2)):
        assert torch.equal(rounding.reference(values.double(), *widths), values.to(dtype).double())


def test_a_run_in_a_format_is_drawn_beside_the_exact_run() -> None:
    figure = figures.loss_in_format(rounding.variants[0].answer, 5, 2, 2.0**23)  # type: ignore[arg-type]
    check_figure(figure)
    assert "(5, 2), 8 bits, loss scale 2^23: ends at 0.7" in plots.alt_text(figure)


@pytest.fixture(scope="module")
def learned() -> list[torch.Tensor]:
    """The weights at the end of an exact run."""
    stored: list[torch.Tensor] = []

    def keep(x: torch.Tensor, role: str) -> torch.Tensor:
        stored.extend([x.clone()] * (role == "weight"))
        return x

    tiny_run(keep)
    return stored[-3:]


def test_a_store_that_knows_the_end_of_the_run_is_refused(learned: list[torch.Tensor]) -> None:
    def my_store(x: torch.Tensor, role: str) -> torch.Tensor:
        (known,) = [each for each in learned if role == "weight" and each.shape == x.shape] or [x]
        return powers_of_two_by_chance(known, role)

    with pytest.raises(Unfit, match="A tensor of weights that you return is not like x"):
        four_bits.measure_store(my_store, [0])


def test_a_store_that_enlarges_the_activations_is_refused() -> None:
    def my_store(x: torch.Tensor, role: str) -> torch.Tensor:
        return powers_of_two_by_chance(x, role) * (1.5 if role == "activation" else 1)

    with pytest.raises(Unfit, match=r"activations that you return is 1\.5\d times as large as x"):
        four_bits.measure_store(my_store, [0])


def test_a_store_with_gradients_of_its_own_is_refused(learned: list[torch.Tensor]) -> None:
    weights: dict[torch.Size, torch.Tensor] = {}

    def my_store(x: torch.Tensor, role: str) -> torch.Tensor:
        if role == "weight":
            weights[x.shape] = x.clone()
        elif role == "gradient" and x.shape in weights:
            (known,) = [each for each in learned if each.shape == x.shape]
            towards = weights[x.shape] - known
            x = x + x.norm() * towards / towards.norm()
        return powers_of_two_by_chance(x, role)

    with pytest.raises(Unfit, match="Even on average"):
        four_bits.measure_store(my_store, [0])


def test_quantisation_errors_match_a_direct_cast() -> None:
    samples = torch.randn(4096, generator=torch.Generator().manual_seed(0)) * 1e-3
    error = (samples.to(torch.float8_e4m3fn).float() - samples).norm() / samples.norm()
    assert f"e4m3 {100 * error:.1f} %" in plots.alt_text(figures.quantisation_error(scale=1e-3))


@pytest.mark.parametrize("format", [FP16, BF16, FP32], ids=lambda format: format.name)
def test_softmax_outcomes_match_torch(format: FloatFormat) -> None:
    for logit, count in itertools.product((-120.0, -17.0, 0.0, 10.0, 11.2, 88.0, 89.0), (1, 1000)):
        exps = torch.full((count,), logit, dtype=format.torch_dtype).double().exp().to(format.torch_dtype)
        total = exps.double().sum().to(format.torch_dtype)
        weight = (exps / total)[0].item()
        outcome = figures.naive_softmax_outcome(logit, count, format)
        expected = "the sum overflows: all weights are 0" if weight == 0 else "fine"
        assert "NaN" in outcome if math.isnan(weight) else outcome == expected


@pytest.mark.parametrize("bit", [0, 10, 15])
def test_toggling_a_bit_of_fp16_flips_it_in_the_code(bit: int) -> None:
    explorer = BitExplorer("fp16", 1.0)
    explorer.bits[bit].value = not explorer.bits[bit].value
    expected = 0x3C00 ^ 1 << bit
    assert explorer.code == expected
    assert explorer.value == decode(expected, FP16) or math.isnan(explorer.value)
    assert explorer.readout.value == readout_html(expected, FP16)
    assert explorer.bits[bit].description == f"{explorer.bits[bit].tooltip}: {int(explorer.bits[bit].value)}"
    explorer.bits[bit].value = not explorer.bits[bit].value
    assert explorer.code == 0x3C00


@pytest.mark.parametrize(
    ("start", "code", "text"),
    [(1.0, 0x3C01, "1.0009765625"), (math.nan, 0x7E01, "nan"), (-0.0, 0x8001, "-5.960464477539063e-08")],
)
def test_clicking_a_bit_writes_the_value_and_a_change_of_format_keeps_it(start: float, code: int, text: str) -> None:
    explorer = BitExplorer("fp16", start)
    explorer.bits[0].value = True
    assert (explorer.code, explorer.entry.value) == (code, text)
    explorer.formats.value = "fp32"
    assert math.isnan(explorer.value) if text == "nan" else explorer.value == decode(code, FP16)


def test_typing_nonsense_is_shown_and_changes_nothing() -> None:
    explorer = BitExplorer("bf16", 2.0)
    explorer.entry.value = "<two>"
    assert "ValueError: could not convert string to float: &#x27;&lt;two&gt;&#x27;" in explorer.readout.value
    assert explorer.value == 2.0
