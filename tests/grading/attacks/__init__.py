"""Notebooks that want points, other people's files, the network or the machine, made from a real notebook's release.

`test_attacks` hands all of them in at once. To add an attack, add it to the list of one of the files. None of its
answers may be right.
"""

from tests.grading.attacks.attack import Attack
from tests.grading.attacks.connection import CONNECTION
from tests.grading.attacks.files import FILES
from tests.grading.attacks.marks import MARKS
from tests.grading.attacks.notebook_format import FORMAT, PAGES
from tests.grading.attacks.resources import RESOURCES

ATTACKS = [*MARKS, *CONNECTION, *FILES, *RESOURCES, *FORMAT, *PAGES]

__all__ = ["ATTACKS", "PAGES", "Attack"]
