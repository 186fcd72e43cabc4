"""Tell JupyterLab that a check runs, for its line on a check that takes long.

The message is of a kind that Jupyter's front ends ignore, and no output: nothing is shown elsewhere, saved or compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.getipython import get_ipython

CHECK = "lmcourse.check"
"""The id of the comm, which our JupyterLab extension knows, too."""


@contextmanager
def announced(seconds: float) -> Iterator[None]:
    """Tell JupyterLab, if this is a kernel, that a check with this time limit for a case runs, and when it ends."""
    kernel: Any = getattr(get_ipython(), "kernel", None)
    if kernel is None:
        yield
        return
    kernel.send_response(kernel.iopub_socket, "comm_msg", {"comm_id": CHECK, "data": {"seconds": seconds}})
    try:
        yield
    finally:
        kernel.send_response(kernel.iopub_socket, "comm_msg", {"comm_id": CHECK, "data": {}})
