"""Grade with nbgrader: each submission runs in a sandbox, and this package judges it from outside.

`config` registers our parts with nbgrader. `grader` leads a class through these modules, in this order:

- `hand_ins` finds files and folders, and `downloads` those of learning platforms; `intake` chooses the notebooks.
- `restore` puts the course's cells back, and `examined_notebook` takes from a notebook what is examined.
- `examine` runs and judges it, in a process of its own: `process`, `sandbox`, `child`, `system_calls`, `wire`.
- `result` has its points and the reason, and `recorder` writes them into nbgrader's `gradebook`.

`preprocessors` does the same for nbgrader's own command. `pages`, `feedback`, `class_report`, `export` and
`grade_tables` write the results for learners and teachers, and `likeness` and `rubric` for teachers alone.
"""
