"""Attacks on the connection to a notebook's process: other senders, forged messages, breaks, floods, delays.

A lost process is replaced, which takes two seconds of CPU time, so most of these attack only one exercise. `MESSAGES`
are bytes that our own program never sends; `test_attacks` passes them to the grader's reader.
"""

from __future__ import annotations

from tests.grading.attacks.attack import attack

CHANNEL = """
import gc, json, pickle, signal, socket, threading
from lmcourse.exercises.failure import Failure
from lmcourse.exercises.outcome import Outcome
from lmcourse.grading.wire import Channel, decode, encode, outcome_to_plain
gc.unfreeze()  # otherwise the objects made before the notebook are not listed
channel = [thing for thing in gc.get_objects() if isinstance(thing, Channel)][0]
right = outcome_to_plain(Outcome(0.0))
done = {"printed": "", "failure": None, "result": "28"}
kinds = ["ValueError", "TypeError", "IndexError", "KeyError", "RuntimeError", "ZeroDivisionError", "Exception"]
failed = outcome_to_plain(Outcome(failure=Failure(tuple(kinds), "")))
def sockets():
    for number in range(3, 256):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"): yield number
        except OSError: pass
line = socket.socket(fileno=os.dup(next(sockets())))
line.settimeout(None)
def raw(text, numbers=b"", length=None):
    body = len(text).to_bytes(4, "little") + text + numbers
    line.sendall((len(body) if length is None else length).to_bytes(4, "little") + body)
def say(value): raw(encode(value)[4:])
def read(count):
    got = b""
    while len(got) < count:
        got += line.recv(count - len(got)) or sys.exit()
    return got
def answer(times=10**6):
    "Read questions in place of the process's own program, and answer them."
    for _ in range(times):
        request = decode(read(int.from_bytes(read(4), "little")))
        say({"forbidden": [], "case": right, "cell": done}.get(request["do"], True))
"""
"""Code to reach the program that runs the notebook, all sockets, and the message format."""


def _header(shape: str, end: int = 0, more: str = "") -> bytes:
    head = f'{{"t0":{{"dtype":"F32","shape":{shape},"data_offsets":[0,{end}]}}{more}}}'.encode()
    return len(head).to_bytes(8, "little") + head


def _message(text: bytes, numbers: bytes = b"") -> bytes:
    return len(text).to_bytes(4, "little") + text + numbers


_TENSOR = b'{"tensor":"t0","order":[0,1],"grad":false}'
_MANY = "".join(f',"t{number}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for number in range(1, 100_000))
_KEYS = b",".join(b"[%d,0]" % (number * (2**61 - 1)) for number in range(20_000))

MESSAGES = {
    "nothing": b"",
    "a length that lies": (2**31).to_bytes(4, "little") + b"0",
    "deep JSON": _message(b"[" * 100_000 + b"]" * 100_000),
    "a number of a million digits": _message(b"1" * 10**6),
    "a million lists": _message(b"[" + b"[]," * 10**6 + b"0]"),
    "keys that have one hash": _message(b'{"dict":[' + _KEYS + b"]}"),
    "half a surrogate pair": _message(b'"\\ud800"'),
    "no UTF-8": _message(b'"\xff\xfe"'),
    "a pickle": _message(b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."),
    "a tensor that is not there": _message(_TENSOR),
    "a tensor twice": _message(b"[" + _TENSOR + b"," + _TENSOR + b"]", _header("[0,1]")),
    "a header of 2**62 bytes": _message(_TENSOR, (2**62).to_bytes(8, "little") + b"{}"),
    "numbers that are not there": _message(_TENSOR, _header("[2,2]", 16)),
    "a shape that overflows": _message(_TENSOR, _header(f"[{2**62},4]")),
    "a shape of 2**40 empty rows": _message(_TENSOR, _header(f"[{2**40},0]")),
    "axes that are not there": _message(b'{"tensor":"t0","order":[7,-1],"grad":false}', _header("[1,1]", 4) + bytes(4)),
    "a hundred thousand tensors": _message(_TENSOR, _header("[0,1]", 0, _MANY)),
}
"""Bytes without a plain value, or with a value that takes much time or memory to read."""

CONNECTION = [
    attack(
        "answers_in_advance",
        "fifty replies before anything was asked, outcomes among them",
        CHANNEL + "for _ in range(50): say(done | {'points': 28, 'report': {'points': 28}})\n",
        every="for _ in range({'round_to': 1, 'ulp': 2}.get('NAME', 0)): say(right)\nreturn -1.5",
    ),
    attack(
        "answers_for_later",
        "a thread replies to each question before the program does, with every kind of error at once",
        CHANNEL,
        every="""
        if 'NAME' == 'ulp':
            for _ in range(30): say(failed)
        return -1.5
        """,
    ),
    attack(
        "serves_itself",
        "threads, a signal handler and a fork read the questions from the inherited socket, and answer them",
        CHANNEL
        + """
for _ in range(4): threading.Thread(target=answer, daemon=True).start()
signal.signal(signal.SIGVTALRM, lambda *_: answer())
threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGVTALRM)).start()
if os.fork() == 0: answer()
""",
    ),
    attack(
        "grandchild_speaks",
        "a grandchild, in a session of its own, answers in the place of its stopped parent",
        CHANNEL
        + """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(0.5); say(done); answer()
    os._exit(0)
threading.Thread(target=lambda: (time.sleep(0.2), os.kill(os.getpid(), signal.SIGSTOP))).start()
time.sleep(1)
""",
    ),
    attack(
        "forged_outcomes",
        "the process's own program sends points, reports and every kind of error at once",
        CHANNEL
        + """
program = next(frame for frame in gc.get_objects() if type(frame) is dict and "run_case" in frame and "_send" in frame)
program["run_case"] = program["outcome_to_plain"] = lambda *_, **__: failed
program["_disable_checks"] = lambda: None
""",
        reason="^0 of 11 exercises",  # not "sent an invalid answer": the forged records must be valid
    ),
    attack(
        "lying_tensors",
        "a tensor of 2**40 empty rows, straight into the socket, and as a result",
        CHANNEL,
        every="""
        head = b'{"t0":{"dtype":"F32","shape":[1099511627776,0],"data_offsets":[0,0]}}'
        tree = {"dict": [[k, v] for k, v in (right | {"warned": [], "value": "V"}).items()]}
        text = json.dumps(tree).replace('"V"', '{"tensor":"t0","order":[0,1],"grad":false}').encode()
        if 'NAME' == 'ulp': raw(text, len(head).to_bytes(8, "little") + head)
        return torch.zeros(2**40, 0)
        """,
        value="torch.zeros(2**40, 0)",
    ),
    attack(
        "writes_everywhere",
        "raw bytes, JSON and a pickle on every open file, and its open files through every socket",
        CHANNEL
        + """
class Bomb:
    def __reduce__(self): return (os.system, ("touch /tmp/lmcourse-pickle-ran",))
""",
        every="""
        for number in range(0, 256) if 'NAME' == 'ulp' else ():
            for text in (b"\\xff" * 100, pickle.dumps(Bomb()), b'{"examined": {"reports": {}}}\\n'):
                try: os.write(number, text)
                except OSError: pass
        if 'NAME' == 'ulp': socket.send_fds(line, [b"\\0" * 64], [0, 1, 2])
        return Bomb()
        """,
        value="Bomb()",
    ),
    attack(
        "floods_the_connection",
        "announces 4 GB, and sends zeros without end",
        CHANNEL,
        every="""
        while 'NAME' == 'ulp': line.sendall(b"\\xff" * 4 + b"\\0" * 2**20)
        return -1.5
        """,
    ),
    attack(
        "drips",
        "announces a message, and sends a byte of it now and then while its children fill the memory",
        CHANNEL,
        every="""
        if 'NAME' == 'ulp':
            line.sendall((2**20).to_bytes(4, "little"))
            for _ in range(10):
                if os.fork() == 0:
                    kept = bytearray(b"x") * (900 * 2**20)
                    time.sleep(60)
            while True: line.sendall(b"0"); time.sleep(0.1)
        return -1.5
        """,
        reason="more than 5 GiB|longer than",
    ),
    attack("hangs_up", "closes the connection", CHANNEL, every="'NAME' == 'ulp' and line.shutdown(2); return -1.5"),
]
"""All attacks of this file."""
