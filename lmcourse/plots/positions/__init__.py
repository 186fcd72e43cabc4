"""Figures of notebook 09: waves, biases, rotations."""
