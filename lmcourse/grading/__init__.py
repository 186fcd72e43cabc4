"""Grading with nbgrader: each submission runs in a sandbox, and this package judges it from outside.

`config` lists what is plugged into nbgrader, and where. To follow a submission, read `intake` (finds it), `restore`
(puts the course's cells back), `submission` and `examine` (have it run, and judge it), `process`, `sandbox` and `child`
(the process that runs it), then `result` (its points and reason). `grader` does this for a class, `preprocessors` for
nbgrader's own command. `pages`, `class_report`, `export` and `lms` write what people read.
"""
