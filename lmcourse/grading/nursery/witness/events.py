"""Events of Python (its documentation has them under "Audit events") that honest work does not cause.

All solutions of the course were run to find out which those are. Some need a closer look: they stand in `hook`.
"""

from __future__ import annotations

Table = dict[str, tuple[str, str, int | None]]
"""An event's kind of evidence, what it did, and which of the event's arguments tells with what."""

PATHS: Table = {
    event: ("file", doing, which)
    for event, doing, which in (
        ("os.listdir", "listed", 0),
        ("os.scandir", "listed", 0),
        ("os.chdir", "went to", 0),
        ("os.chmod", "changed", 0),
        ("os.chown", "changed", 0),
        ("os.mkdir", "made", 0),
        ("os.remove", "removed", 0),
        ("os.rmdir", "removed", 0),
        ("os.rename", "renamed", 0),
        ("os.truncate", "cut", 0),
        ("os.symlink", "made a link to", 0),
        ("os.link", "made a link to", 0),
    )
}
"""Usual in some places, strange in others."""

NETWORK: Table = {
    **{f"socket.{name}": ("network", f"used a socket ({name})", None) for name in ("connect", "bind", "sendto")},
    "socket.sendmsg": ("network", "used a socket (sendmsg)", None),
    "socket.getaddrinfo": ("network", "looked up a host:", 0),
    "socket.gethostbyname": ("network", "looked up a host:", 0),
    "socket.gethostbyaddr": ("network", "looked up a host:", 0),
}

PROCESSES: Table = {
    "subprocess.Popen": ("process", "started a program:", 0),
    "pty.spawn": ("process", "started a program:", 0),
    "os.fork": ("process", "doubled itself (os.fork)", None),
    "os.forkpty": ("process", "doubled itself (os.forkpty)", None),
    "os.system": ("process", "ran a command (os.system)", None),
    "os.exec": ("process", "became a program:", 0),
    "os.posix_spawn": ("process", "started a program:", 0),
    "os.spawn": ("process", "started a program:", 1),
    "os.kill": ("process", "sent a signal (os.kill)", None),
    "os.killpg": ("process", "sent a signal (os.killpg)", None),
}

INTERPRETER: Table = {
    **{
        f"ctypes.{name}": ("interpreter", "reached into memory with ctypes", None)
        for name in ("addressof", "call_function", "cdata", "cdata/buffer", "PyObj_FromPtr", "string_at", "wstring_at")
    },
    "ctypes.dlopen": ("interpreter", "loaded a library of C:", 0),
    "ctypes.dlsym": ("interpreter", "looked for a function of C:", 1),
    "ctypes.dlsym/handle": ("interpreter", "looked for a function of C:", 1),
    "gc.get_objects": ("interpreter", "looked through all of Python's objects (gc.get_objects)", None),
    "gc.get_referents": ("interpreter", "looked for what an object holds (gc.get_referents)", None),
    "gc.get_referrers": ("interpreter", "looked for what holds an object (gc.get_referrers)", None),
    "sys._current_frames": ("interpreter", "looked at other threads (sys._current_frames)", None),
    "sys._current_exceptions": ("interpreter", "looked at other threads (sys._current_exceptions)", None),
    "sys.addaudithook": ("interpreter", "wanted to hear of every event (sys.addaudithook)", None),
    "code.__new__": ("interpreter", "made code that is no text", None),
}

MODULES = ("_xxsubinterpreters", "_xxinterpchannels", "_testcapi", "_testinternalcapi")
"""Modules of Python that lead to where no audit hook looks."""
