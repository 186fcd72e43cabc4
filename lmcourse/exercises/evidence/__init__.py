"""Detectors of mistakes that can happen in any exercise: what the cases that fail have in common.

A detector takes `Evidence` and returns a sentence, or an empty text. Its sentence is true of every failing case that it
was given: first what was seen, then, as a possibility, what it often comes from. `diagnosis` has their order.
"""
