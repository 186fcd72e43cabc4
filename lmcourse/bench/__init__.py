"""Predicted and measured speed on this machine: of a model, of training and decoding steps, of optimizations."""
