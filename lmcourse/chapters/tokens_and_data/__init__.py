"""Notebook 07: byte pairs, the cost of a vocabulary for different texts, and the path from a text to batches."""
