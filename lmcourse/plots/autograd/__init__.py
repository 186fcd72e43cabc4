"""Figures of notebook 03: computation graphs, gradients, what is kept for them."""
