"""What is plugged into nbgrader (`lmcourse.grading.config` says where): `restore` puts the course's cells back,
`examine_notebook` has a notebook examined, or `run` has a kernel run it, `scores` says what counts as a score, and
`stubs` helps to make the students' copy.
"""
