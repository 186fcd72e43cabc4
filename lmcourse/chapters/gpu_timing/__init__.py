"""Notebook 19, timing on a GPU: the clock, the roofline, and the limits of a kernel."""
