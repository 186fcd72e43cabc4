"""Predicted and measured speed on this machine: of a model, of its training and decoding steps, of single optimizations."""
