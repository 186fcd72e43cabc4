"""Processes and the kernel: its own, its parent, its neighbours, and what goes on afterwards."""

from __future__ import annotations

from tests.grading.attacks.attack import COURSE, attack
from tests.grading.attacks.files import TRYING

ENDED = "ended Python|broke off"

LIBC = (
    TRYING
    + """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*args):
    done = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if done < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done
"""
)

PROCESSES = [
    attack("exits", "os._exit(0) in a cell", "os._exit(0)", "crash", "process", "text", reason=ENDED),
    attack("exits_in_answers", "os._exit(0) in every answer", every="os._exit(0)", reason=ENDED),
    attack("quits", "sys.exit() and quit() everywhere", "sys.exit(0)", every="sys.exit(0)"),
    attack("kills_itself", "SIGKILL to itself", "import signal\nos.kill(os.getpid(), 9)", "crash", "process", "text"),
    attack("crashes", "reads memory that is not there", "import ctypes\nctypes.string_at(0)", "crash", "text"),
    attack(
        "stops_itself",
        "SIGSTOP to itself: alive, and silent",
        "import signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "crash",
        "process",
        "text",
        reason="still running|ran longer|stopped|broke off",
    ),
    attack(
        "kills_its_parent",
        "SIGKILL to whoever started it",
        TRYING + "trying(lambda: os.kill(os.getppid(), 9))\ntrying(lambda: os.killpg(os.getpgid(os.getppid()), 9))",
        "process",
        "text",
    ),
    attack(
        "kills_everybody",
        "SIGKILL to every process that it may signal, others' notebooks among them",
        "os.kill(-1, 9)",
        "process",
        "crash",
        "text",
    ),
    attack(
        "stops_everybody",
        "SIGSTOP to every process it can see",
        TRYING
        + """
import signal
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) not in (1, os.getpid()):
        trying(lambda: os.kill(int(name), signal.SIGSTOP))
""",
        "process",
        "text",
    ),
    attack(
        "writes_into_others",
        "ptrace, process_vm_writev and /proc/PID/mem of its parent and of everybody",
        LIBC
        + """
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) != os.getpid():
        trying(lambda: call(101, 16, int(name), 0, 0))
        trying(lambda: open(f"/proc/{name}/mem", "r+b"))
        trying(lambda: print("HEARD" if b"=" in open(f"/proc/{name}/environ", "rb").read() else ""))
        trying(lambda: print(os.listdir(f"/proc/{name}/fd"), os.readlink(f"/proc/{name}/exe")))
""",
        "process",
        "file",
        "text",
    ),
    attack(
        "forks_without_end",
        "forks until the system says no (here at most 300 times)",
        TRYING
        + """
for _ in range(300):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    except OSError as error:
        print(error)
        break
else:
    print("DONE")
""",
        "process",
        "crash",
        "text",
    ),
    # No evidence: honest code starts threads as well.
    attack(
        "threads_without_end",
        "starts threads until the system says no (here at most 2000)",
        """
        import threading
        for _ in range(2000):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        print("DONE")
        """,
    ),
    attack(
        "leaves_a_daemon",
        "a daemon, out of its session, that raises everybody's marks later",
        f"""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                end = time.time() + 60
                while time.time() < end:
                    for place in ("../../..", {COURSE!r}):
                        try: open(place + "/left-behind.txt", "a").write("still here")
                        except OSError: pass
                    time.sleep(0.1)
            os._exit(0)
        """,
        "process",
        "text",
    ),
    attack(
        "thread_that_goes_on",
        "a thread that goes on after its cell and sets `check` and the answers again and again",
        """
        import threading
        def again():
            while True:
                globals()["check"] = lambda *args, **kwargs: "28"
                sys.modules["lmcourse.notebook"].check = globals()["check"]
                time.sleep(0.001)
        threading.Thread(target=again, daemon=True).start()
        """,
        "process",
        "interpreter",
        "builtins",
        "text",
    ),
    attack(
        "deaf_loop",
        "a loop that swallows KeyboardInterrupt and every other exception",
        "while True:\n    try: sum(range(10**7))\n    except BaseException: pass",
        reason="still running|ran longer|could not be stopped",
    ),
    attack(
        "deaf_to_signals",
        "blocks all signals and sleeps in C",
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(10_000)",
        "interpreter",
        "process",
        "text",
        "crash",
        reason="still running|ran longer|could not be stopped",
    ),
    attack(
        "escapes",
        "unshare, mount, chroot, setns, bpf, io_uring, keyctl, userfaultfd, memfd_create, open_by_handle_at",
        LIBC
        + """
calls = [(272, 0x10000000), (272, 0x40000000), (165, 0, 0, 0, 0, 0), (161, ctypes.c_char_p(b"/proc/1/root"))]
calls += [(321, 0, 0, 0), (425, 8, 0), (250, 0, -3, 0), (323, 0), (319, ctypes.c_char_p(b"x"), 0), (304, -100, 0, 0)]
for one in (*calls, (155, 0, 0), (308, 0, 0)): trying(lambda: call(*one))
for act in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.nice(-20), lambda: os.chroot("/proc/1/root")):
    trying(act)
import resource
for kind in (resource.RLIMIT_NPROC, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
    trying(lambda: resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
""",
        "process",
        "file",
        "interpreter",
        "text",
    ),
    attack(
        "runs_programs",
        "a shell: what is installed, who is there, what is mounted",
        """
        import subprocess
        for line in ("id", "mount", "ps aux", "env", "cat /proc/1/cmdline", "ls -la / /root /home /tmp"):
            try: print(subprocess.run(line, shell=True, capture_output=True, timeout=5, text=True).stdout)
            except Exception as error: print(error)
        """,
        "process",
        "text",
    ),
]
"""All attacks of this file."""
