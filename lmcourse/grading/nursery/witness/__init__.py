"""A witness in the notebook's own process: what it does that honest work does not, told to the grader over a pipe.

`hook` is the witness, an audit hook (PEP 578) that Python itself calls and that cannot be taken out again. `install`
puts it where the notebook's code has no name for it. `statements` is what the grader makes of what came.

It is evidence and no wall: the jail keeps a notebook from doing harm, and marks come from outside. Whoever writes to
the memory of Python (ctypes, a C extension) can silence it, which is told as long as it was done by ways that Python
announces. So can a signal handler that strikes in the middle of the hook and looks around in its frame. Nor does
Python announce everything: not `os.stat`, not what a library does in C.
"""

from lmcourse.grading.nursery.witness.statements import Statements
from lmcourse.grading.nursery.witness.watching import WitnessedChannel, install, prepare

__all__ = ["Statements", "WitnessedChannel", "install", "prepare"]
