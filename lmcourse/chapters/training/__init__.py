"""Notebook 13: from an empty folder to a model that writes, and what each choice on the way is worth."""
