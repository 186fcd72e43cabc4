"""Notebook 02: a tensor is a row of numbers in memory, and a few notes on how to read it."""
