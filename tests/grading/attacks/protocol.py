"""The connection over which a notebook's process is asked: forged, broken, flooded, held up."""

from __future__ import annotations

from lmcourse.grading.examination_result import EvidenceKind
from tests.grading.attacks.attack import attack

CHANNEL = """
import gc, json, pickle, socket, struct
from lmcourse.grading.examination.channel import Channel
channels = [thing for thing in gc.get_objects() if isinstance(thing, Channel)]
child = {}
frame = sys._getframe()
while frame:
    child = frame.f_globals if "Channel" in frame.f_globals and frame.f_globals is not globals() else child
    frame = frame.f_back
right = {"value": 0.0, "failure": None, "printed": "", "warned": [], "changed": [], "forbidden": []}
def sockets():
    for number in range(3, 256):
        try: yield socket.socket(fileno=os.dup(number))
        except OSError: pass
"""
"""What a notebook can get at: the programs that run it, its end of the connection, every open file."""

ANSWER: tuple[EvidenceKind, ...] = ("protocol", "interpreter", "process", "text")

PROTOCOL = [
    attack(
        "forged_points",
        "outcomes with points, a report and a verdict in them",
        CHANNEL
        + """
child["outcome_to_plain"] = lambda outcome: right | {"points": 28, "passed": True, "report": {"points": 28}}
""",
        *ANSWER,
    ),
    attack(
        "forged_outcomes",
        "an error of every kind at once as the outcome of each case",
        CHANNEL
        + """
kinds = ["ValueError", "TypeError", "IndexError", "KeyError", "RuntimeError", "Exception", "BaseException"]
failure = {"kinds": kinds, "number": 0, "message": "", "line": "", "cause": ""}
child["_evaluate_case"] = lambda *_: right | {"value": None, "failure": failure}
""",
        *ANSWER,
    ),
    attack(
        "forged_categories",
        "answers each question with what the question held",
        CHANNEL
        + """
encoded, take, asked = Channel.encoded, Channel.take, []
def hearing(self, *args):
    asked.append(take(self, *args))
    return asked[-1]
def echoing(self, value):
    question = child["decode"](asked[-1][0])
    return encoded(self, value | {"result": question.get("case", question)})
Channel.take, Channel.encoded = hearing, echoing
""",
        *ANSWER,
    ),
    attack(
        "writes_everywhere",
        "raw bytes and JSON on every open file",
        CHANNEL,
        *ANSWER,
        every="""
        for number in range(0, 256):
            for text in (b"\\xff" * 100, b'{"examined": {"reports": {}}}\\n'):
                try: os.write(number, text)
                except OSError: pass
        return 0
        """,
    ),
    attack(
        "passes_files",
        "sends its open files, and messages, through every socket that it inherited",
        CHANNEL
        + """
for line in sockets():
    try:
        line.setblocking(False)
        print("HEARD" if line.recv(100, socket.MSG_PEEK) else "")
    except (OSError, BlockingIOError): pass
    try: socket.send_fds(line, [b"\\0" * 64], [0, 1, 2])
    except OSError: pass
""",
        *ANSWER,
    ),
    attack(
        "floods_the_connection",
        "zeros without end",
        CHANNEL,
        *ANSWER,
        every="""
        line = channels[0].connection
        line.settimeout(None)
        while True: line.sendall(b"\\0" * 2**20)
        """,
    ),
    attack(
        "endless_message",
        "announces a long message and never sends it",
        CHANNEL,
        *ANSWER,
        every="if 'NAME' == 'ulp': channels[0].connection.sendall((2**20).to_bytes(4, 'little')); time.sleep(600)",
    ),
    attack(
        "sends_pickles",
        "a pickle that runs a program where it is loaded",
        CHANNEL
        + """
class Bomb:
    def __reduce__(self): return (os.system, ("touch /tmp/lmcourse-pickle-ran",))
""",
        *ANSWER,
        every="""
        body = pickle.dumps(Bomb())
        channels[0].connection.sendall(len(body).to_bytes(4, "little") + body)
        return Bomb()
        """,
    ),
    attack(
        "silences_the_audit_hook",
        "closes every file but its connection, and overwrites the descriptors of the others",
        CHANNEL
        + """
mine = channels[0].connection.fileno()
for number in range(256):
    if number != mine:
        try: os.dup2(os.open("/dev/null", os.O_WRONLY), number)
        except OSError: pass
import subprocess
try: subprocess.run(["id"])
except OSError: pass
""",
        *ANSWER,
    ),
    attack(
        "forged_testimony",
        "writes evidence of its own making, with scripts and formulas in it, to every open file",
        CHANNEL
        + """
for kind, what in (("file", "<script>document.title='owned'</script>"), ("network", "=1+1"), ("praise", "28 points")):
    for number in range(3, 256):
        if number != channels[0].connection.fileno():
            try: os.write(number, (json.dumps({"kind": kind, "what": what}) + "\\n").encode())
            except OSError: pass
""",
        *ANSWER,
    ),
]
"""All attacks of this file."""
