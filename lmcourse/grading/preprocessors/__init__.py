"""The preprocessors of nbgrader's converters that this course adds; `lmcourse.grading.config` says where each is used.

Of a submission: `restore_cells` puts the course's cells back, `examine_notebook` has a notebook examined (or
`run_notebook` has a kernel run it) and `strict_scores` says what counts as a score. Of a release: `drop_stubs`.
"""
