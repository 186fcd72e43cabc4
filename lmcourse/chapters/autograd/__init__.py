"""Notebook 03, automatic differentiation: a reverse-mode engine, backward passes by hand, the tensors that a graph
saves."""
