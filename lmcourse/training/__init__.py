"""From token files to a trained model: optimisers, schedules, the trainer, its checkpoints.

Read `optimisers` and `schedules` beside notebooks 04 and 13; `config`, `step`, `trainer` and `checkpoint` are the tool.
`command` is `lmcourse train`, `callbacks` who is told of every step, `parallel` what more than one process needs.
"""
