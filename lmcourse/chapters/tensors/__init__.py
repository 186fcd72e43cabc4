"""Notebook 02: a tensor is a row of numbers in memory, plus a few notes on how to read them."""
