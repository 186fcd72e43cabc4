"""A process with torch loaded, forked for each notebook: a fork is ready in hundredths of a second, and sandboxed.

The way of a notebook's process:

    the grader                              in bubblewrap (its own files, processes, network)
    `fork_server`
      └ `server_handle`  ──── socket ─────  `zygote`  has torch; runs our code only
      └ `sandboxed_process`                   └ `fork_parent`  has what an assignment needs; runs our code only
            watches, kills                        └ `child_setup`  init: namespaces of their own, process 1 in them
                                                      └ the notebook's process: no rights, a user of its own,
                         ←──── pipe ──────                `examination.child.serve`, its `audit_hook`

1. `ForkServer` starts bubblewrap with a `zygote`, once, and holds it by a `ServerHandle`. For each assignment the
   zygote forks a `fork_parent`, which loads the rest, and ends before the next one begins. Both keep the capabilities
   to make namespaces, mount, and become another user; no learner's code ever runs in them.
2. `ForkServer.start` hands over the end of a connection, a pipe and a user id. The parent forks; `child_setup` says
   what a child is given and what is taken from it, with the system calls of `linux` and with `drop_privileges`: the
   limits and the denied system calls are those of `lmcourse.grading.sandbox`.
3. The child answers its examiner. A thread of the grader (`sandboxed_process`) checks its memory and reads what its
   audit hook reports (see `audit`).
4. `SandboxedProcess.kill`: the parent kills process 1 of the child's namespace, with which the kernel kills the rest,
   and says when all are gone. A parent that does not is killed with everything in its bubblewrap; the next `start`
   starts another.

What does not hold. A child begins with a copy of the parent's memory, in which there is nothing but Python, torch and
the course; the addresses in it are those of every child of that zygote. The kernel is the machine's own: a hole in it
is a hole in these walls. The audit hook gives evidence, it prevents nothing. There is no limit on a child's loopback
network, nor on the kernel's own memory beyond what files, processes and descriptors need.
"""

from lmcourse.grading.fork_server.fork_server import ForkServer

__all__ = ["ForkServer"]
