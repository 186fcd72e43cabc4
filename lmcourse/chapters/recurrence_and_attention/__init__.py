"""Notebook 06: recurrent networks, the information that they lose, and attention, which looks it up."""
