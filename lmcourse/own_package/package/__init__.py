"""A transformer made of a learner's own functions: files that `lmcourse package` adds to the answers.

They do not import the course, because they become part of a package that runs without it.
"""
