"""A locked room for code that nobody has read: one program, run under bubblewrap.

Inside there is no network, no other process, no user's rights, and nothing to read but the system, Python, this
package and the assignment's data files. The one place to write is an empty folder in memory.

Follow a launch: `isolation` (is there a bubblewrap that works?) → `view` (what may be read) → `bubblewrap` and `jail`
(the command) → `enter` (the first program inside: limits, user, the `syscalls` it may not make) → the program.
`run` waits for its end, watches its `memory`, and says in one sentence why it ended. For many notebooks there is
`lmcourse.grading.nursery`: the same walls around forks of one process that has torch loaded.

A program that answers once:

    choose_isolation("bubblewrap")
    ended = run(Jail(data=(text,)), [sys.executable, "-m", "some.module"], input=questions, seconds=120)
    ended.ok, ended.output, ended.reason

A conversation over pipes of your own, which keep their numbers inside (read and write their other ends in
threads; `run` returns when the program has ended, and then close them):

    run(jail, [sys.executable, "-m", "some.module", str(fd)], keep=(fd,), seconds=900)

With a `Popen` of your own, the jail is a prefix and nothing else; then time, output and the memory of the whole
tree are yours to limit:

    Popen(jail.command([sys.executable, "-m", "some.module"], keep=(fd,)), pass_fds=(fd,), stdin=PIPE, stdout=PIPE)

Three things to know. SIGKILL to that process ends everything inside. The jail also ends with the *thread* that
started it, so that thread must outlive it. What comes out is a stranger's: read it as bytes with a limit, and
never unpickle it.
"""

from lmcourse.grading.jail.bubblewrap import WORK
from lmcourse.grading.jail.ended import Ended
from lmcourse.grading.jail.isolation import PROCESS_PROTECTS_LITTLE, Isolation, choose_isolation
from lmcourse.grading.jail.jail import Jail
from lmcourse.grading.jail.limits import Limits
from lmcourse.grading.jail.run import run

__all__ = ["PROCESS_PROTECTS_LITTLE", "WORK", "Ended", "Isolation", "Jail", "Limits", "choose_isolation", "run"]
