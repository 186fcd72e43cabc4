"""Who is told of every step: a progress bar for terminals (`progress_bar`), scalars for TensorBoard (`tensorboard`).

A live plot for notebooks is `lmcourse.widgets.LivePlot`. Each is called with the record that goes into metrics.jsonl.
"""
