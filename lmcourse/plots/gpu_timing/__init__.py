"""Figures of notebook 19: clocks, rooflines, and what makes a step faster."""
