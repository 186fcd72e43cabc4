"""Commands as an ordinary user, for tests that root runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import lmcourse
from lmcourse.grading.sandbox import filesystem

ROOT = Path(lmcourse.__file__).parents[1]

NOBODY = 65534
"""The user, who has no rights but everybody's."""


def as_ordinary_user(command: Sequence[str]) -> list[str]:
    """The command, run by an ordinary user who can read Python and the tests, wherever these lie."""
    bwrap, setpriv = (str(shutil.which(name)) for name in ("bwrap", "setpriv"))
    become = [setpriv, "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    become += ["--inh-caps=-all", "--ambient-caps=-all"]
    return [bwrap, "--dev-bind", "/", "/", *_readable_mounts(), "--cap-add", "ALL", "--", *become, *command]


def _readable_mounts() -> Iterator[str]:
    """bubblewrap's arguments that let everybody see Python and the tests."""
    places = [*filesystem.python_folders(), ROOT]
    closed = {above for place in places for above in place.parents if not above.stat().st_mode & 0o001}
    for folder in sorted(closed):
        yield from ("--perms", "0755", "--tmpfs", str(folder))
    for place in (place for place in places if closed & {*place.parents}):
        for folder in reversed(place.parents):
            yield from ("--perms", "0755", "--dir", str(folder))
        yield from ("--ro-bind", str(place), str(place))
