"""Notebook 19, timing on a GPU: the clock, the roofline, what limits a kernel."""
