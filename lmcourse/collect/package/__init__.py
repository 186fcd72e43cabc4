"""A transformer made of one's own functions: the files that `lmcourse collect` adds to a learner's answers.

They import nothing of the course, since they are copied beside the answers, into a package that runs without it.
"""
