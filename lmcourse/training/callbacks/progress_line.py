"""The numbers of a step in a line of text, for whoever watches a run."""

from __future__ import annotations

from collections import deque

from lmcourse.training.metrics import Record

STEPS = 20
"""Over how many steps the loss is averaged."""


class ProgressLine:
    """Running state of the progress text: recent losses and the last validation loss."""

    def __init__(self) -> None:
        self._losses: deque[float] = deque(maxlen=STEPS)
        self._validation: float | None = None

    def update(self, record: Record) -> None:
        """Update with the record of a step."""
        self._losses.append(record["loss"])
        self._validation = record.get("validation_loss", self._validation)

    def format(self, record: Record) -> str:
        """The mean training loss of the last steps, the last validation loss, tokens/s and MFU of this step: what is
        known of them. Losses are in nats per token."""
        mean, count = sum(self._losses) / len(self._losses), len(self._losses)
        parts = [f"loss {mean:.3f} (mean of {count} step{'s' * (count > 1)})"]
        if self._validation is not None:
            parts.append(f"validation {self._validation:.3f}")
        parts.append(f"{record['tokens_per_second']:,.0f} tokens/s")
        if "mfu" in record:
            parts.append(f"MFU {record['mfu']:.1%}")
        return " · ".join(parts)
