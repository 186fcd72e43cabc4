"""What lies beside a notebook: nbgrader copies it on to the graded submission and to the learner's feedback."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path


def remove_links(*, assignment: str, student: str, notebooks: Sequence[str]) -> None:
    """Remove links and pipes beside notebooks, and in folders below. It is a hook for `Autograde.pre_convert_hook`.

    nbgrader follows a link, so that one to the solutions, or to another student's work, would come back as a file with
    the feedback; a link to a device, or a pipe, it would read for ever. Neither is anybody's work. The notebooks
    themselves stay: whoever reads them gives the reason.

    Args:
        assignment, student: what nbgrader works on.
        notebooks: the files that it is about to convert.
    """
    kept = {Path(notebook) for notebook in notebooks}
    for folder in {notebook.parent for notebook in kept if not notebook.parent.is_symlink()}:
        for place, folders, files in os.walk(folder):
            for path in (Path(place, name) for name in (*folders, *files)):
                mode = path.lstat().st_mode
                if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and path not in kept:
                    path.unlink()
