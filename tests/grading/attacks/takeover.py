"""Taking over the connection: answers from a thread, a hook or a signal handler, found where no rule holds.

Whoever reads the questions in place of the process's own program need not have the rules of an exercise enforced. So
each of these does what the exercise rules out, and answers with that. None of it is in the answers themselves.
"""

from __future__ import annotations

from tests.grading.attacks.attack import attack
from tests.grading.attacks.protocol import ANSWER

OWN_PROTOCOL = """
import gc, hmac, json, signal, threading
softmax, ulp = torch.softmax, math.ulp
held = [module for name, module in list(sys.modules.items()) if name.startswith("lmcourse.grading.examination.")]
parts = {name: value for module in held for name, value in vars(module).items()}
decode, encode, Channel = parts["decode"], parts["encode"], parts["Channel"]
done = {"printed": "", "flooded": False, "failure": None}
right = {"failure": None, "printed": "", "warned": [], "changed": [], "forbidden": []}

def found(request):
    "What a question asks for, by functions that its exercise rules out."
    if "rules" in request: return {}
    if "text" in request: return done
    args = request["case"]["args"]
    if request["name"] == "stable_softmax": value = softmax(args[0], -1)
    elif request["name"] == "ulp":
        value = max(ulp(args[0]) * 2.0 ** (52 - args[2]), 2.0 ** (2 - 2 ** (args[1] - 1) - args[2]))
    else: value = 0.0
    return {"value": value} | right

def read(number, count):
    got = b""
    while len(got) < count:
        piece = os.read(number, count - len(got))
        if not piece: raise OSError
        got += piece
    return got

def take(number):
    return read(number, int.from_bytes(read(number, 4), "little")), read(number, 32)

def give(number, message, signature):
    os.write(number, len(message).to_bytes(4, "little") + message + signature)

def connection():
    for number in range(3, 256):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"): return number
        except OSError: pass

def nonce_of(frame):
    while frame:
        for value in list(frame.f_locals.values()):
            if isinstance(value, dict) and "nonce" in value: return value["nonce"]
        frame = frame.f_back

def answer(number, times=10**6):
    "Questions read from a descriptor, and answered there, signed without the key."
    for _ in range(times):
        message, _ = take(number)
        request = decode(message)
        body = encode({"nonce": request["nonce"], "result": found(request)})
        give(number, body, hmac.digest(b"", b"answer 1 " + body, "sha256"))

line = connection()
"""
"""What each of them needs: the format of the messages, and right answers by forbidden means."""

TAKEOVER = [
    attack(
        "thread_reads_first",
        "threads that wait at the connection's descriptor, and answer before the process's own program",
        OWN_PROTOCOL + "for _ in range(8): threading.Thread(target=answer, args=(line,), daemon=True).start()",
        *ANSWER,
    ),
    attack(
        "cell_that_serves",
        "a cell that never ends, reads the questions itself and answers them",
        OWN_PROTOCOL
        + """
body = encode({"nonce": nonce_of(sys._getframe()), "result": done})
give(line, body, bytes(32))
answer(line)
""",
        *ANSWER,
    ),
    attack(
        "deleted_object_serves",
        "the same in `__del__` of an object that goes when the first question comes",
        OWN_PROTOCOL
        + """
class Last:
    def __del__(self): answer(line)
kept = [Last()]
""",
        *ANSWER,
        every="kept.clear(); return 0.0",
    ),
    attack(
        "handler_serves",
        "the same in a signal handler, which strikes while the process's own program waits for a question",
        OWN_PROTOCOL
        + """
signal.signal(signal.SIGVTALRM, lambda *_: answer(line))
threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGVTALRM)).start()
""",
        *ANSWER,
    ),
    attack(
        "collector_serves",
        "the same in a callback of Python's garbage collector, called whenever it runs",
        OWN_PROTOCOL
        + """
gc.set_threshold(1, 1, 1)
gc.callbacks.append(lambda *_: (gc.callbacks.clear(), answer(line)))
""",
        *ANSWER,
    ),
    attack(
        "exit_serves",
        "the same in what Python does when it exits, which every answer makes it do",
        OWN_PROTOCOL + "import atexit\natexit.register(answer, line)",
        *ANSWER,
        every="""
        threading.Thread(target=lambda: (time.sleep(0.1), answer(line))).start()
        raise SystemExit
        """,
    ),
    attack(
        "fork_serves",
        "the same in a fork of the process, while the process itself is stopped",
        OWN_PROTOCOL
        + """
if os.fork() == 0: answer(line)
threading.Thread(target=lambda: (time.sleep(0.05), os.kill(os.getpid(), signal.SIGSTOP))).start()
""",
        *ANSWER,
    ),
    attack(
        "relays_without_rules",
        "another socket in the connection's place, and a thread that passes everything on but the rules",
        OWN_PROTOCOL
        + """
import socket
near, far = socket.socketpair()
real = os.dup(line)
os.dup2(far.fileno(), line)
def inwards():
    while True:
        message, signature = take(real)
        request = decode(message)
        if "rules" in request: message = encode(request | {"rules": []})
        give(near.fileno(), message, signature)
def outwards():
    while True: give(real, *take(near.fileno()))
for each in (inwards, outwards): threading.Thread(target=each, daemon=True).start()
""",
        *ANSWER,
        every="return softmax(args[0], -1) if 'NAME' == 'stable_softmax' else -12345.678",
    ),
    attack(
        "relays_old_rules",
        "the same, but after each question about rules it passes on one of before, which had none",
        OWN_PROTOCOL
        + """
import socket
near, far = socket.socketpair()
real, first = os.dup(line), []
os.dup2(far.fileno(), line)
def inwards():
    give(real, *take(near.fileno()))
    while True:
        message, signature = take(real)
        first.append((message, signature))
        give(near.fileno(), message, signature)
        give(real, *take(near.fileno()))
        if "rules" in decode(message):
            give(near.fileno(), *first[0])
            take(near.fileno())
threading.Thread(target=inwards, daemon=True).start()
""",
        *ANSWER,
        every="return softmax(args[0], -1) if 'NAME' == 'stable_softmax' else -12345.678",
    ),
    attack(
        "channel_from_frames",
        "the program's own end of the connection, and what signs for it, from the frames of its callers",
        OWN_PROTOCOL
        + """
channel, sign, frame = None, None, sys._getframe()
nonce = nonce_of(frame)
while frame:
    channel = frame.f_locals.get("channel", channel)
    sign = frame.f_locals.get("sign", sign)
    frame = frame.f_back
def say(number, nonce, result):
    body = encode({"nonce": nonce, "result": result})
    channel.put(body, sign(b"answer %d " % number + body))
say(1, nonce, done)
for number in range(2, 10**6):
    request = decode(channel.take()[0])
    say(number, request["nonce"], found(request))
""",
        *ANSWER,
    ),
]
"""All attacks of this file."""
