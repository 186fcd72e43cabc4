"""From paths to notebooks, whatever was handed in: `submissions` (whose, of which assignment) finds its `files` and
reads a `notebook` of which only what grading uses is left; `exporter` gives it to nbgrader. What a platform gave for
download, `archives` unpacks, and `downloads` knows by its names. `student_ids` says which names are none.
"""
