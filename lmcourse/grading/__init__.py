"""Grade with nbgrader: each submission runs in a sandbox, and this package judges it from outside.

`config` registers our parts with nbgrader. To follow a submission, read `intake` (finds it), `restore` (puts the
course's cells back), `submission` and `examine` (run and judge it), `process`, `sandbox` and `child` (the process that
runs it), then `result` (its points and reason). `grader` does this for a class, and `preprocessors` for nbgrader's own
command. `pages`, `class_report`, `export` and `lms` write the results for learners and teachers, and `likeness` and
`rubric` for teachers alone.
"""
