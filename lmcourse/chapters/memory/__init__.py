"""Notebook 14, memory: parameters, optimizer states, activations, many devices."""
