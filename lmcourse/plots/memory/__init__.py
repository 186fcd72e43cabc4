"""The figures of notebook 14: what training keeps in memory, and what fits."""
