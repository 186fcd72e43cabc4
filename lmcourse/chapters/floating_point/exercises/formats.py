"""Formats as the inputs of the exercises: two widths each."""

from lmcourse.numerics import FORMATS, FloatFormat

BIAS = "Your bias is 2^(E−1). The right bias is one less: 127 for 8 exponent bits, not 128."


def widths(name: str) -> tuple[int, int]:
    """The exponent and mantissa bits of a format, the arguments of learners' functions."""
    return FORMATS[name].exponent_bits, FORMATS[name].mantissa_bits


def ieee(exponent_bits: int, mantissa_bits: int, has_infinity: bool = True) -> FloatFormat:
    """The format with these widths."""
    return FloatFormat("asked", exponent_bits, mantissa_bits, has_infinity)
