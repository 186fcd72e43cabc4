"""The messages between the grader (`server_handle`), the zygote and the fork parents.

The notebook's process has no part in them. They go over a socket, the zygote's standard input, one message each:

    settings of an assignment →         (a parent is forked) ← READY
    {"user": …} with two descriptors →  (a child is forked)
    KILL, if it is not to end itself →
                                        ← the child's exit status, when all of it is gone
    NEXT, before other settings →       (the parent ends)
"""

from __future__ import annotations

READY = b"ready\n"
"""Sent by a parent when everything is loaded, and by a child, over its audit pipe, before it sees the notebook."""

KILL, NEXT = b"kill", b"next"

MAX_MESSAGE_BYTES = 2**16

DATA_DIR = "/assignment"
"""Where the parent has the data files. A child has them in its working folder."""
