"""Notebook 08: `exercises` and `figures`."""
