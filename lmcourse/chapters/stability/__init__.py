"""Notebook 16, training stability: logits, norms, clipping, loss scaling, spikes."""
