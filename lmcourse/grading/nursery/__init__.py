"""A process with torch loaded, forked for each notebook: a guest is ready in hundredths of a second, and locked in.

The way of a guest:

    the grader                      in bubblewrap (its own files, processes, network)
    `nursery`  the host
      └ `room`   ──── socket ────── `keeper`   has torch; runs our code only
      └ `guest`  watches, ends        └ `cradle`  init: rooms that nobody has used, process 1 in them
                                          └ the guest: no rights, a user of its own, `examination.child.serve`
                  ←─── pipe ─────────         its `witness`

1. `Nursery` starts bubblewrap with a `room`, once. The `keeper` in it keeps the rights to make namespaces, mount, and
   become another user; no learner's code ever runs in it.
2. `start` hands over the end of a connection, a pipe and a user's number (`users`). The keeper forks; `cradle` says
   what a guest is given and what is taken from it, with the calls of `kernel` and of the jail's `enter`: the limits and
   the denied system calls are those of `lmcourse.grading.jail`.
3. The guest answers its examiner. A thread of the grader (`guest`) looks at its memory and hears the witness.
4. `kill`: the keeper kills process 1 of the guest's namespace, with which the kernel kills the rest, and says when all
   are gone. A keeper that does not is killed with everything in its bubblewrap; the next `start` starts another.

What does not hold. A guest begins with a copy of the keeper's memory, in which there is nothing but Python, torch and
the course; the addresses in it are those of every guest of that keeper. The kernel is the machine's own: a hole in it
is a hole in these walls. The witness gives evidence, it prevents nothing (see `witness`). There is no limit on the
network's loopback of a guest, nor on the kernel's own memory beyond what files, processes and descriptors need.
"""

from lmcourse.grading.nursery.nursery import Nursery

__all__ = ["Nursery"]
