"""Model FLOPs utilisation (MFU) and hardware FLOPs utilisation (HFU).

Model FLOPs utilisation (Chowdhery et al., 2022, appendix B) counts what a training step has to compute; hardware FLOPs
utilisation also what is computed a second time to save memory. A share above 1 is impossible, so it is an error here:
something was measured, counted or looked up wrongly.
"""

from __future__ import annotations

from lmcourse.accounting.accelerator import Accelerator
from lmcourse.accounting.formats import Format


def mfu(flops: float, seconds: float, accelerator: Accelerator, precision: Format, *, devices: int = 1) -> float:
    """FLOPs / (seconds · peak · devices), a share between 0 and 1.

    Args:
        flops: model FLOPs of the work, on all devices together.
        seconds: that it took.
        accelerator: the hardware; its peaks are dense.
        precision: the format of the matrix products.
        devices: how many accelerators worked.

    Raises:
        ValueError: the share is above 1, which cannot be; the message lists what to look for. Or FLOPs are negative,
            time or devices not positive, or the accelerator has no such format.
    """
    if flops < 0 or seconds <= 0 or devices < 1:
        raise ValueError(f"{flops:g} FLOPs in {seconds:g} s on {devices} devices: these cannot be")
    peak = accelerator.peak(precision) * devices
    share = flops / seconds / peak
    if share > 1:
        raise ValueError(
            f"{share:.0%} of the {precision} peak of {accelerator.title} ({peak / 1e12:g} TFLOP/s) cannot be. Is it "
            "the right accelerator and variant? Does it compute in another format? Was the clock stopped before the "
            "device was done (synchronise)? Are FLOPs counted twice, or those of all devices against the peak of one? "
            "If the peak was measured: was the machine busy then?"
        )
    return share


def throughput_mfu(
    tokens_per_second: float,
    flops_per_token: float,
    accelerator: Accelerator,
    precision: Format,
    *,
    devices: int = 1,
) -> float:
    """MFU from a rate: (F/(B·S)) · τ / (devices · peak).

    τ counts tokens, so F must be per token, too: a step's FLOPs divided by its B·S tokens.

    Args:
        tokens_per_second: τ, of all devices together.
        flops_per_token: model FLOPs of training with one token, about 6 per parameter.
        accelerator, precision, devices: as in `mfu`.

    Raises:
        ValueError: as in `mfu`.
    """
    return mfu(flops_per_token * tokens_per_second, 1.0, accelerator, precision, devices=devices)
