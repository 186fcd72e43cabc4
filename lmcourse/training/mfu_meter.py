"""MFU of a run, step by step: the FLOP/s that the model needs as a fraction of the hardware's peak.

Model FLOPs utilisation (Chowdhery et al., 2022, appendix B) needs a peak. For NVIDIA and AMD GPUs in the table, it is
the dense peak from the data sheet in the format of the run's matrix products. For an unknown GPU there is no peak and
no MFU. For a CPU or an Apple GPU, the peak is the best measured speed of torch's matrix product.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn

from lmcourse.accounting.accelerators import present_gpu
from lmcourse.accounting.flops import training_flops
from lmcourse.accounting.formats import Format
from lmcourse.accounting.machine import MEASURED_FORMATS, QUICK_SECONDS, SIZES, matmul_rates
from lmcourse.base import device as hardware
from lmcourse.models.config import TransformerConfig
from lmcourse.training.precision import Precision
from lmcourse.training.training_config import TrainingConfig

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Peak:
    """Peak of one device in dense FLOP/s, and a text with the device, the format and the source of the number."""

    flops_per_second: float
    source: str

    def __str__(self) -> str:
        return f"{self.flops_per_second / 1e12:.4g} TFLOP/s, {self.source}"


class MfuMeter:
    """A meter that turns tokens per second into MFU: model FLOPs per token · tokens per second / (devices · peak)."""

    def __init__(self, flops_per_token: float, peak: Peak, devices: int = 1) -> None:
        self.flops_per_token, self.peak, self.devices = flops_per_token, peak, devices
        self._first = self._plausible = True

    def __call__(self, tokens_per_second: float) -> dict[str, Any]:
        """Return "mfu" of a step, from 0 to 1; the first call also returns "mfu_of", the peak.

        A value above 1 is impossible. It is returned anyway, and the first time a warning says what to check.
        """
        share = self.flops_per_token * tokens_per_second / (self.devices * self.peak.flops_per_second)
        if share > 1 and self._plausible:
            self._plausible = False
            log.warning(
                "an MFU of %.0f %% is impossible. Is the peak right (%s)? If it was measured, "
                "was the machine busy then?",
                100 * share,
                self.peak,
            )
        told = {"mfu": share, "mfu_of": str(self.peak)} if self._first else {"mfu": share}
        self._first = False
        return told


def make_mfu_meter(model: nn.Module, config: TrainingConfig) -> MfuMeter | None:
    """Return the meter of a run, for `Trainer(..., make_meter=make_mfu_meter)`; None, with a line that says why, if
    FLOPs or peak are unknown.

    If the device has to be measured, the first call takes a fraction of a second; the process caches the result.
    """
    device = next(model.parameters()).device
    try:
        flops = flops_per_token(model, config.seq_len)
        if device.type != "cuda" and config.parallel.world_size > 1:
            raise ValueError("processes on one CPU share its peak, which is measured for one process")
        peak = find_peak(device, config.precision)
    except ValueError as error:
        log.warning("MFU is not computed: %s", error)
        return None
    return MfuMeter(flops, peak, config.parallel.world_size)


def flops_per_token(model: nn.Module, seq_len: int) -> float:
    """Return the model FLOPs of forward and backward per token of a window; attention counts all pairs of tokens.

    A model that is not a `Transformer` raises ValueError, because its FLOPs are not known.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, TransformerConfig):
        raise ValueError(f"the FLOPs of a {type(model).__name__} are not known")
    return training_flops(config, 1, seq_len).model.total / seq_len


def find_peak(device: torch.device, precision: Precision) -> Peak:
    """Return a device's peak for matrix products in a precision; raise ValueError if it is not known."""
    if device.type != "cuda":
        return _measured(device, precision, torch.get_num_threads())
    found, notes = present_gpu(device)
    if found is None:
        raise ValueError(" ".join(notes))
    for note in notes:
        log.warning("%s", note)
    number: Format = precision
    if precision == "fp32" and torch.get_float32_matmul_precision() != "highest":
        number = "tf32"
    return Peak(found.peak(number), f"the dense {number} peak of {found.title} ({', '.join(found.sources)})")


@cache
def _measured(device: torch.device, precision: Precision, threads: int) -> Peak:
    """Measure the peak with torch's square matrix product, on `threads` threads of a CPU."""
    if precision not in MEASURED_FORMATS[device.type]:
        raise ValueError(f"{precision} is not measured on a {device.type} device")
    rates = matmul_rates(precision, SIZES[device.type][:2], device=device, seconds=QUICK_SECONDS)
    width, best = max(rates.items(), key=lambda item: item[1])
    shared = f" with {threads} threads" if device.type == "cpu" else ""
    name = hardware.cpu_name()
    return Peak(best, f"measured: {precision} product of {width} × {width} matrices on {name}{shared}")
