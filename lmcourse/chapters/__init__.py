"""One subpackage per notebook, named by its topic: `exercises` (hidden from graded code) and `figures`.

No chapter imports another: code that two chapters need is in a package of a lower layer.
"""
