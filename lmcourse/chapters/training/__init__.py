"""Notebook 13: from an empty folder to a model that writes, and the gain of each choice on the way."""
