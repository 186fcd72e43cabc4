"""A sandbox for code that nobody has read: one program, run under bubblewrap.

Inside there is no network, no other process, no user's rights, and nothing to read but the system, Python, this
package and the assignment's data files. The one place to write is an empty folder in memory.

Follow a launch: `isolation` (is there a bubblewrap that works?) → `sandbox` (the command) with `filesystem` (what may
be read) → `drop_privileges` (the first program inside: the resource `limits`, the user, and by `seccomp` the system
calls it may not make) → the program. For many notebooks there is `lmcourse.grading.fork_server`: the same walls around
forks of one process that has torch loaded.

The sandbox is a command, for a `Popen` of your own; time, output and the memory of the whole tree are yours to limit:

    command = Sandbox(data=(text,)).command([sys.executable, "-m", "some.module"], keep_fds=(fd,))
    Popen(command, pass_fds=(fd,), stdin=PIPE, stdout=PIPE)

Three things to know. SIGKILL to that process ends everything inside. The sandbox also ends with the *thread* that
started it, so that thread must outlive it. What comes out is a stranger's: read it as bytes with a limit, and
never unpickle it.
"""

from lmcourse.grading.sandbox.filesystem import WORK_DIR
from lmcourse.grading.sandbox.isolation import PROCESS_ISOLATION_WARNING, Isolation, choose_isolation
from lmcourse.grading.sandbox.limits import ResourceLimits
from lmcourse.grading.sandbox.sandbox import Sandbox

__all__ = ["PROCESS_ISOLATION_WARNING", "WORK_DIR", "Isolation", "ResourceLimits", "Sandbox", "choose_isolation"]
