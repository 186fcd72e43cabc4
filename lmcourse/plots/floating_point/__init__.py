"""Figures of notebook 01: bits, ranges, rounding, softmax."""
