"""Notebook 10, normalization and blocks: norms and their places, residual streams, serial and parallel blocks."""
