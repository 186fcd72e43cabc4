"""Notebook 18, parallelism: collectives, and the cuts of data, tensor, sequence and pipeline parallelism."""
