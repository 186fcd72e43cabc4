"""From token files to a trained model: optimisers, schedules, the trainer, its checkpoints.

Read `optimisers` and `schedules` beside notebooks 04 and 13; `config`, `trainer` and `checkpoint` are the tool.
"""
