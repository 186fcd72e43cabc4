"""Notebook 07: byte pairs, what a vocabulary costs whom, and the way from a text to batches."""
