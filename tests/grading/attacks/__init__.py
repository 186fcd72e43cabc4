"""Malicious notebooks that try to get points, other people's files, the network or the machine.

They are made from a real notebook's release, and `test_attacks` submits all of them at once. To add an attack, add it
to the list in one of the files. None of its answers may be right.
"""

from tests.grading.attacks.attack import Attack
from tests.grading.attacks.connection import CONNECTION
from tests.grading.attacks.files import FILES
from tests.grading.attacks.marks import MARKS
from tests.grading.attacks.notebook_format import FORMAT, PAGES
from tests.grading.attacks.resources import RESOURCES

ATTACKS = [*MARKS, *CONNECTION, *FILES, *RESOURCES, *FORMAT, *PAGES]

__all__ = ["ATTACKS", "PAGES", "Attack"]
