"""One subpackage per notebook, named by its topic: `exercises` (hidden from graded code) and `figures`.

No chapter imports another: what two of them need is below, in the rooms that know of no course.
"""
