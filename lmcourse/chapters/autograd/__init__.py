"""Notebook 03: `exercises` and `figures`."""
