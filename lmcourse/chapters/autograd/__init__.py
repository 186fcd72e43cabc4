"""Notebook 03, automatic differentiation: a reverse-mode engine, backward passes by hand, what a graph saves."""
