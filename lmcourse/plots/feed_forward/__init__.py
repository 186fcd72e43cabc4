"""Figures of notebook 11: activations, gates, widths."""
