"""From token files to a trained model: optimizers, schedules, the trainer, its checkpoints.

Read `optimizers` and `schedules` beside notebooks 04 and 13; `config`, `step`, `trainer` and `state` are the tool.
`command` is `lmcourse train`, `callbacks` what is called after every step, `parallel` what more than one process needs.
"""
