"""Grading: nbgrader, with the holes closed through which points or hidden tests escape.

`config` is the list of what is plugged into nbgrader, and where; each plug is a file of its own. Follow a
submission: `reading` (from the disk) → `restore` (the course's cells as they were handed out) → `run` (its
code) → `scores` (what counts as a score) → the gradebook → `display` and `hide` (what a page may show).
`grader` does all of it in a temporary course for `lmcourse grade`.
"""
