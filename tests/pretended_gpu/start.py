"""Run `work` on a simulated GPU: python -m tests.pretended_gpu.start GUARD, with the library from guard.cpp."""

from __future__ import annotations

import ctypes
import sys


def main() -> None:
    """Load the guard before torch, whose functions it replaces, and then do the work."""
    ctypes.CDLL(sys.argv[1])
    from tests.pretended_gpu import work

    work.main()


if __name__ == "__main__":
    main()
