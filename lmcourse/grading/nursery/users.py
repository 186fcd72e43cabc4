"""A user for each guest whom no other guest is, whichever process of the grader started it."""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import AbstractContextManager, nullcontext

from lmcourse.grading.jail.jail import USERS


def reserve() -> tuple[int | None, AbstractContextManager[object]]:
    """A user's number, and what holds it until it is closed. Only root can become another user, others get None.

    Held by the name of a socket: a name is given once on a machine, and is free again when its holder has died.
    """
    if os.geteuid() != 0:
        return None, nullcontext()
    numbers = list(USERS)
    while numbers:
        number = numbers.pop(secrets.randbelow(len(numbers)))
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(f"\0lmcourse-user-{number}")
        except OSError:
            held.close()
        else:
            return number, held
    raise OSError("all users are taken")
