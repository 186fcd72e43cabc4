"""Notebook 11, feed-forward layers: activations, gated units, parameter matching."""
