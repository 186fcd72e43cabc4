"""Notebook 06: recurrent networks, what they lose, and the attention that looks it up."""
