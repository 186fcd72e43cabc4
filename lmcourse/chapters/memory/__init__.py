"""Notebook 14, memory: parameters, optimizer states, activations, several devices."""
