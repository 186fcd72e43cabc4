"""The figures of notebook 19: timing, rooflines, and what makes a step faster."""
