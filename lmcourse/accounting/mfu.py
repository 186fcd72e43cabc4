"""Model FLOPs utilisation (MFU), and the days, device-hours and energy of a training run on a cluster.

MFU (Chowdhery et al., 2022, appendix B) counts only the FLOPs that a training step needs, not repeated computations. A
value above 1 is impossible, so it raises an error: something was measured, counted or looked up wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.accelerators import Accelerator
from lmcourse.accounting.formats import Format


def mfu(flops: float, seconds: float, accelerator: Accelerator, precision: Format, *, devices: int = 1) -> float:
    """Return FLOPs / (seconds · peak · devices), a fraction between 0 and 1.

    Raises ValueError if the MFU is above 1, which is impossible (the message lists likely causes), if FLOPs are
    negative, if time or devices are not positive, or if the accelerator lacks the format.

    Args:
        flops: model FLOPs of the work, on all devices together.
        seconds: the time that it took.
        accelerator: the hardware; its peaks are dense.
        precision: the format of the matrix products.
        devices: the number of accelerators that worked.
    """
    if flops < 0 or seconds <= 0 or devices < 1:
        raise ValueError(
            f"{flops:g} FLOPs in {seconds:g} s on {devices} devices: FLOPs must not be negative, and seconds and "
            "devices must be above 0"
        )
    peak = accelerator.peak(precision) * devices
    share = flops / seconds / peak
    if share > 1:
        raise ValueError(
            f"{share:.0%} of the {precision} peak of {accelerator.title} ({peak / 1e12:g} TFLOP/s) is impossible. Is "
            "it the right accelerator and variant? Does it compute in another format? Was the clock stopped before the "
            "device was done (synchronise)? Are FLOPs counted twice, or are the FLOPs of all devices compared with the "
            "peak of one? If the peak was measured: was the machine busy then?"
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
    """Return the MFU from a rate: (F/(B·S)) · τ / (devices · peak).

    τ counts tokens, so F must be per token, too: a step's FLOPs divided by its B·S tokens.

    Args:
        tokens_per_second: τ, the rate of all devices together.
        flops_per_token: model FLOPs of training per token, about 6 per parameter.
        accelerator, precision, devices: as in `mfu`, which also raises the errors.
    """
    return mfu(flops_per_token * tokens_per_second, 1.0, accelerator, precision, devices=devices)


DAY, HOUR = 86_400, 3600
JOULES_PER_KWH = 3_600_000


@dataclass(frozen=True)
class Cluster:
    """Accelerators of one kind that train one model.

    Attributes:
        accelerator: the hardware.
        devices: the number of accelerators.
        mfu: the fraction of the peak that goes into model FLOPs (Chowdhery et al., 2022, appendix B). Published runs
            reach 0.3 to 0.6; `latency.roofline_mfu` predicts an upper limit.
        precision: the format of the matrix products, which determines the peak.
    """

    accelerator: Accelerator
    devices: int
    mfu: float
    precision: Format = "bf16"

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise ValueError(f"a cluster has at least one device, not {self.devices}")
        if not 0 < self.mfu <= 1:
            raise ValueError(f"MFU is a fraction of the peak, above 0 and at most 1, not {self.mfu}")

    @property
    def rate(self) -> float:
        """Model FLOP/s of all devices together."""
        return self.devices * self.mfu * self.accelerator.peak(self.precision)

    def days(self, flops: float) -> float:
        """Return the days that this many model FLOPs take."""
        return flops / self.rate / DAY

    def device_hours(self, flops: float) -> float:
        """Return the device-hours, the hours you pay for, that this many model FLOPs take."""
        return flops / self.rate * self.devices / HOUR

    def tokens(self, days: float, flops_per_token: float) -> float:
        """Return the number of tokens that the cluster can train on in this many days."""
        return days * DAY * self.rate / flops_per_token

    def energy(self, flops: float) -> float:
        """Return the energy in kWh of the devices at their power limit, without hosts, network and cooling.

        If the power limit is not known, ValueError is raised.
        """
        if self.accelerator.power is None:
            raise ValueError(f"the power limit of {self.accelerator.title} is not known")
        return flops / self.rate * self.devices * self.accelerator.power / JOULES_PER_KWH
