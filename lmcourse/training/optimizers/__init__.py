"""Optimisers, written to be read: what is done to one parameter, line by line as in its paper.

Read `rule` (what all share), then `sgd`, `adagrad`, `adam`, `adamw`. They compute what `torch.optim` computes, bit for
bit on a CPU; torch's own handle many parameters per kernel and are the ones to train large models with.
"""
