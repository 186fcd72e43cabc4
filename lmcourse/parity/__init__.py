"""Parity checks: compare logits and gradients of every model family with its implementation in `transformers`.

`python -m lmcourse.parity` prints the table. It needs the `parity` extra.
"""
