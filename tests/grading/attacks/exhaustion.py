"""More of the grader's own time than a notebook is worth: results and texts that are dear to read or to compare."""

from __future__ import annotations

from nbformat import NotebookNode

from lmcourse.grading.cells import new_code_cell
from tests.grading.attacks.attack import Attack, attack

_LONG = "\n".join(f"    x{number} = x{number - 1} * {number} + a[{number % 7}]" for number in range(1, 600))


def _long_answers(letter: str) -> Attack:
    body = f"a, x0 = [1] * 7, 0\n{_LONG.replace('    x', 'x').replace('a[', f'{letter}[').replace('= a', '= a')}"
    return attack(
        f"long_answers_{letter}",
        "an answer of six hundred lines, that is compared with an accomplice's",
        every=body.replace("a, x0", f"{letter}, x0") + "\nreturn -1.0",
    )


def _requests(nb: NotebookNode) -> None:
    lines = "\n".join(f"regrade 01 ulp: =cmd|' /C calc'!A{number} <script>{number}</script>" for number in range(900))
    nb.cells += [NotebookNode(cell_type="markdown", id="requests", metadata={}, source=lines)]
    nb.cells += [new_code_cell(f"'''\n{lines}\n'''")]


EXHAUSTION = [
    attack(
        "keys_that_collide",
        "a dict of keys that all have one hash",
        every="return {number * (2**61 - 1): 0 for number in range(20_000)}",
    ),
    attack("many_small_results", "a list of a million numbers", every="return [1.5] * 1_000_000"),
    attack("many_tensors", "a list of ten thousand tensors", every="return [torch.zeros(1)] * 10_000"),
    attack(
        "many_warnings",
        "a warning for each of a million steps",
        every="""
        import warnings
        for number in range(10**6): warnings.warn(str(number))
        """,
    ),
    attack(
        "takes_the_processor",
        "asks for real time, all processors, locked memory and limits of its own",
        """
        import resource
        for act in (lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99)), lambda: os.nice(-20),
                    lambda: os.setpriority(os.PRIO_PROCESS, 0, -20), lambda: os.sched_setaffinity(0, range(64)),
                    *(lambda kind=kind: resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2) for kind in range(16)),
                    lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)),
                    lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))):
            try: act()
            except (OSError, ValueError): pass
        """,
        "interpreter",
        "text",
    ),
    attack(
        "dumps_core",
        "ends with all of its memory in a file",
        """
        import resource
        try: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
        except (OSError, ValueError): pass
        kept = bytearray(b"x") * 2**28
        os.abort()
        """,
        "crash",
        "interpreter",
        "process",
    ),
    _long_answers("b"),
    _long_answers("c"),
    attack("asks_again", "asks 900 times to be graded again, with formulas and scripts", edit=_requests),
    Attack("hundred_megabytes", "a notebook of 100 MB", lambda _: b'{"cells": [{"source": "' + b"x" * 10**8 + b'"}]}'),
    Attack("deep_archive", "a zip that calls itself a notebook", lambda _: b"PK\x03\x04" + b"\0" * 10**6),
]
"""All attacks of this file."""
