"""The floating-point formats of deep learning, each described by two widths.

A binary float is a sign bit, `exponent_bits` bits of exponent and `mantissa_bits` bits of fraction.
All other properties (largest value, smallest value, spacing) follow from the two widths and from one question: is the
highest exponent reserved for infinity and NaN? In IEEE formats it is; E4M3 uses it for numbers and has no infinity.

Sources: IEEE 754-2019, §3.4 (fp64, fp32, fp16); Kalamkar et al. 2019, "A study of BFLOAT16 for deep learning
training"; Micikevicius et al. 2022, "FP8 formats for deep learning" (E4M3, E5M2); NVIDIA 2020, "A100
whitepaper" (TF32).
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format: 1 sign bit, then the exponent, then the fraction ("mantissa").

    `has_infinity` says whether the all-ones exponent is reserved for infinity and NaN (IEEE 754). If not, only one
    magnitude is NaN (all ones in exponent and fraction), and there is no infinity. `torch_dtype` is None if PyTorch has
    no tensors of this type. Raises ValueError for widths that leave no normal numbers.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool = True
    torch_dtype: torch.dtype | None = None

    def __post_init__(self) -> None:
        if self.exponent_bits < 2 or self.mantissa_bits < 1:
            raise ValueError(f"{self.name}: a format needs at least 2 exponent bits and 1 mantissa bit")

    @property
    def bits(self) -> int:
        """The width of one number in bits."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        """The number subtracted from the exponent field, so that it can express negative exponents."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number, shared by all subnormals."""
        return 1 - self.bias

    @property
    def max_exponent(self) -> int:
        """Exponent of the largest finite number."""
        highest_field = (1 << self.exponent_bits) - (2 if self.has_infinity else 1)
        return highest_field - self.bias

    @property
    def max_finite(self) -> float:
        """Largest finite value."""
        steps_below_two = 1 if self.has_infinity else 2
        return math.ldexp(2 - steps_below_two * self.epsilon, self.max_exponent)

    @property
    def min_normal(self) -> float:
        """Smallest positive value with full precision."""
        return math.ldexp(1.0, self.min_exponent)

    @property
    def min_subnormal(self) -> float:
        """The smallest positive value, which is also the gap between neighbours around zero."""
        return math.ldexp(1.0, self.min_exponent - self.mantissa_bits)

    @property
    def epsilon(self) -> float:
        """Gap between 1 and the next larger value, as in `torch.finfo(dtype).eps`."""
        return math.ldexp(1.0, -self.mantissa_bits)


FP64 = FloatFormat("fp64", 11, 52, torch_dtype=torch.float64)
FP32 = FloatFormat("fp32", 8, 23, torch_dtype=torch.float32)
TF32 = FloatFormat("tf32", 8, 10)
FP16 = FloatFormat("fp16", 5, 10, torch_dtype=torch.float16)
BF16 = FloatFormat("bf16", 8, 7, torch_dtype=torch.bfloat16)
E4M3 = FloatFormat("e4m3", 4, 3, has_infinity=False, torch_dtype=torch.float8_e4m3fn)
E5M2 = FloatFormat("e5m2", 5, 2, torch_dtype=torch.float8_e5m2)

FORMATS: dict[str, FloatFormat] = {f.name: f for f in (FP64, FP32, TF32, FP16, BF16, E4M3, E5M2)}


def find_format(format: FloatFormat | str) -> FloatFormat:
    """Return the format with this short name, or a FloatFormat unchanged; raise ValueError if it is unknown."""
    if isinstance(format, FloatFormat):
        return format
    if format in FORMATS:
        return FORMATS[format]
    nearest = difflib.get_close_matches(format.lower(), FORMATS, n=3, cutoff=0.5) or list(FORMATS)
    raise ValueError(f"unknown float format {format!r}; did you mean {', '.join(nearest)}?")
