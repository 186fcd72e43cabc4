"""Accelerators with round numbers, and accelerators from the notes."""

from __future__ import annotations

from lmcourse.accounting.accelerators import Accelerator

TB = 1e12
A100 = Accelerator("a100", "A100 SXM 80 GB", {"bf16": 312e12}, 2.039 * TB, 80 * 10**9, 600e9, 400.0, ("data sheet",))
H100 = Accelerator("h100", "H100 SXM", {"bf16": 989.5e12}, 3.35 * TB, 80 * 10**9, 900e9, 700.0, ("data sheet",))
ROUND = Accelerator("round", "round numbers", {"bf16": 100.0, "fp32": 50.0}, 10.0, 1000, None, None, ())
"""An accelerator with a ridge point of 10 FLOPs per byte in bf16."""
