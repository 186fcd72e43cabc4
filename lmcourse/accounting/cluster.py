"""Days, device-hours and energy of a training run on a cluster of equal accelerators."""

from __future__ import annotations

from dataclasses import dataclass

from lmcourse.accounting.accelerator import Accelerator
from lmcourse.accounting.formats import Format

DAY, HOUR = 86_400, 3600
JOULES_PER_KWH = 3_600_000


@dataclass(frozen=True)
class Cluster:
    """Accelerators of one kind that train one model.

    Attributes:
        accelerator: which.
        devices: how many.
        mfu: which share of their peak goes into model FLOPs (Chowdhery et al., 2022, appendix B). Published runs reach
            0.3 to 0.6; `latency.roofline_mfu` predicts what no run can exceed.
        precision: the format whose peak counts.
    """

    accelerator: Accelerator
    devices: int
    mfu: float
    precision: Format = "bf16"

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise ValueError(f"a cluster has at least one device, not {self.devices}")
        if not 0 < self.mfu <= 1:
            raise ValueError(f"MFU is a share of the peak, above 0 and at most 1, not {self.mfu}")

    @property
    def rate(self) -> float:
        """Model FLOP/s of all devices together."""
        return self.devices * self.mfu * self.accelerator.peak(self.precision)

    def days(self, flops: float) -> float:
        """Days that so many model FLOPs take."""
        return flops / self.rate / DAY

    def device_hours(self, flops: float) -> float:
        """Hours of one device that so many model FLOPs take: what is paid for, however many devices there are."""
        return flops / self.rate * self.devices / HOUR

    def tokens(self, days: float, flops_per_token: float) -> float:
        """How many tokens can be trained on in so many days."""
        return days * DAY * self.rate / flops_per_token

    def energy(self, flops: float) -> float:
        """kWh that the devices draw if they run at their power limit: without hosts, network and cooling.

        Raises:
            ValueError: the limit is not known.
        """
        if self.accelerator.power is None:
            raise ValueError(f"the power limit of {self.accelerator.title} is not known")
        return flops / self.rate * self.devices * self.accelerator.power / JOULES_PER_KWH
