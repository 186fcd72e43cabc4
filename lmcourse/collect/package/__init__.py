"""A transformer made of a learner's own functions: the files that `lmcourse collect` adds to the answers.

They import nothing of the course, since they are copied beside the answers, into a package that runs without it.
"""
