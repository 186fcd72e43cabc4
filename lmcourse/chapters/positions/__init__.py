"""Notebook 09: `exercises` and `figures`."""
