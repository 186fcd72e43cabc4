"""Notebook 01, floating point: formats, rounding, underflow, a stable softmax, bytes."""
