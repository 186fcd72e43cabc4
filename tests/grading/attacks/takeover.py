"""Taking over the connection: answers from a thread, a hook or a signal handler, found where no rule holds.

Whoever reads the questions in place of the process's own program need not have the rules of an exercise enforced. So
each of these does what the exercise rules out, and answers with that. None of it is in the answers themselves.
"""

from __future__ import annotations

from tests.grading.attacks.attack import attack
from tests.grading.attacks.protocol import ANSWER

OWN_PROTOCOL = """
import gc, json, signal, socket, threading
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

def connections():
    for number in range(3, 256):
        try: family = socket.socket(fileno=os.dup(number)).getpeername()
        except OSError: continue
        yield number

def answer(number, times=10**6):
    "Questions read from a descriptor, and answered there."
    for _ in range(times):
        request = decode(read(number, int.from_bytes(read(number, 4), "little")))
        body = encode({"nonce": request["nonce"], "result": found(request)})
        os.write(number, len(body).to_bytes(4, "little") + body)
"""
"""What each of them needs: the format of the messages, and right answers by forbidden means."""

KEEP_AWAY = """
import select
class Elsewhere:
    def __getattr__(self, name): return lambda *args: time.sleep(600)
"""

TAKEOVER = [
    attack(
        "thread_reads_first",
        "a thread that waits at the connection's descriptor, and answers before the process's own program",
        OWN_PROTOCOL
        + """
for number in connections():
    for _ in range(8): threading.Thread(target=answer, args=(number,), daemon=True).start()
""",
        *ANSWER,
    ),
    attack(
        "cell_that_serves",
        "a cell that never ends, reads the questions itself and answers them",
        OWN_PROTOCOL
        + """
for number in connections():
    frame, nonce = sys._getframe(), ""
    while frame:
        nonce = frame.f_locals.get("request", {}).get("nonce", nonce) if isinstance(frame.f_locals.get("request"), dict) else nonce
        frame = frame.f_back
    body = encode({"nonce": nonce, "result": done})
    os.write(number, len(body).to_bytes(4, "little") + body)
    answer(number)
""",
        *ANSWER,
    ),
    attack(
        "channel_from_frames",
        "the program's own end of the connection, from the frames of its callers, used in its place",
        OWN_PROTOCOL
        + """
channel, nonce, frame = None, "", sys._getframe()
while frame:
    for value in list(frame.f_locals.values()):
        channel = value if isinstance(value, Channel) else channel
        nonce = value["nonce"] if isinstance(value, dict) and "nonce" in value else nonce
    frame = frame.f_back
if channel:
    channel.send({"nonce": nonce, "result": done})
    while True:
        request = channel.receive()
        channel.send({"nonce": request["nonce"], "result": found(request)})
""",
        *ANSWER,
    ),
]
"""All attacks of this file."""
