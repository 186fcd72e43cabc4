"""The red team: notebooks that want points, secrets or the machine, made from the student's copy of a real one.

`test_attacks` hands all of them in to our grader at once; `python -m tests.grading.attacks` compares with nbgrader
alone and writes docs/attacks.md. To add an attack, add it to the list of one of the files; none of its
answers may be right.
"""

from tests.grading.attacks.exhaustion import EXHAUSTION
from tests.grading.attacks.guesses import GUESSES
from tests.grading.attacks.hooks import HOOKS
from tests.grading.attacks.out_of_turn import OUT_OF_TURN
from tests.grading.attacks.parsers import PARSERS
from tests.grading.attacks.protocol import PROTOCOL
from tests.grading.attacks.references import REFERENCES
from tests.grading.attacks.takeover import TAKEOVER

from tests.grading.attacks.answers import ANSWERS
from tests.grading.attacks.attack import Attack
from tests.grading.attacks.comparison import COMPARISON
from tests.grading.attacks.files import FILES
from tests.grading.attacks.imports import IMPORTS
from tests.grading.attacks.interpreter import INTERPRETER
from tests.grading.attacks.notebook_format import FORMAT
from tests.grading.attacks.pages import PAGES
from tests.grading.attacks.processes import PROCESSES
from tests.grading.attacks.resources import RESOURCES
from tests.grading.attacks.scores import SCORES

BY_AIM = {
    "scores": SCORES,
    "the comparison": COMPARISON,
    "the interpreter": [*INTERPRETER, *HOOKS],
    "imports": IMPORTS,
    "the answers": [*ANSWERS, *REFERENCES, *GUESSES],
    "files and the network": FILES,
    "processes": PROCESSES,
    "the connection": [*PROTOCOL, *OUT_OF_TURN, *TAKEOVER],
    "resources": [*RESOURCES, *EXHAUSTION],
    "the pages": PAGES,
    "the file": [*FORMAT, *PARSERS],
}
"""All attacks by what they aim at."""

ATTACKS = [attack for attacks in BY_AIM.values() for attack in attacks]

__all__ = ["ATTACKS", "BY_AIM", "PAGES", "Attack"]
