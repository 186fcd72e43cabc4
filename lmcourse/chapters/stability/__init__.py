"""Notebook 16: `exercises` and `figures`."""
