"""Callbacks: called after every step with its record in metrics.jsonl.

`progress_bar` shows a run in a terminal, `tensorboard` writes scalars; `lmcourse.widgets.LivePlot` draws in notebooks.
"""
