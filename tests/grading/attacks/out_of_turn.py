"""Answers to other questions than were asked: too early, twice, again, by somebody else, or by the references."""

from __future__ import annotations

from tests.grading.attacks.attack import attack
from tests.grading.attacks.protocol import ANSWER, CHANNEL

OUT_OF_TURN = [
    attack(
        "answers_in_advance",
        "outcomes before anything was asked",
        CHANNEL + 'for _ in range(50): channels[0].send({"nonce": "0" * 32, "result": right})\n',
        *ANSWER,
    ),
    attack(
        "answers_twice",
        "each answer twice, the second time with another outcome",
        CHANNEL
        + """
encoded, put = Channel.encoded, Channel.put
def twice(self, message, *args):
    put(self, message, *args)
    put(self, encoded(self, {"nonce": "0" * 32, "result": right}), *args)
Channel.put = twice
""",
        *ANSWER,
    ),
    attack(
        "repeats_an_answer",
        "the first answer, with its number, to every question",
        CHANNEL
        + """
encoded, first = Channel.encoded, []
def again(self, value):
    first.append(encoded(self, value))
    return first[0]
Channel.encoded = again
""",
        *ANSWER,
    ),
    attack(
        "grandchild_speaks",
        "a grandchild that answers in its place",
        CHANNEL
        + """
if os.fork() == 0:
    for _ in range(200):
        try: channels[0].send({"nonce": "0" * 32, "result": right})
        except OSError: break
        time.sleep(0.01)
    os._exit(0)
""",
        *ANSWER,
    ),
    attack("hangs_up", "closes the connection", CHANNEL, *ANSWER, every="channels[0].connection.close()"),
    attack(
        "serves_itself",
        "reads the questions itself and answers with the reference of the installed package",
        CHANNEL
        + """
from lmcourse.exercises.registry import all_exercises
from lmcourse.grading.examination.messages import case_from_plain, outcome_to_plain
from lmcourse.exercises.outcome import run_case
channel, first = channels[0], True
known = all_exercises()
while True:
    frame = sys._getframe()
    while frame and "request" not in frame.f_locals: frame = frame.f_back
    done = {"printed": "", "flooded": False, "failure": None}
    if first and frame: channel.send({"nonce": frame.f_locals["request"]["nonce"], "result": done})
    first = False
    request = channel.receive()
    result = done
    if "case" in request:
        exercise = known[request["name"]]
        result = outcome_to_plain(run_case(exercise.reference, case_from_plain(request["case"]), name=exercise.name))
    channel.send({"nonce": request["nonce"], "result": result})
""",
        *ANSWER,
    ),
]
"""All attacks of this file."""
