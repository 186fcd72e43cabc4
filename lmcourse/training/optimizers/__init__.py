"""Optimizers: `rules` has SGD, AdaGrad, Adam and AdamW; `muon` has Muon, for matrices."""
