"""Results that nbgrader's parser of scores takes for marks: all but numbers in range are full marks to it."""

from __future__ import annotations

from lmcourse.report import REPORT_MIME
from tests.grading.attacks.attack import attack

NO_CHECK = "def check(*args, **kwargs):\n    return "

FORGED_REPORT = f"""
class Praise:
    def __init__(self, name, points): self.name, self.points = name, points
    def __repr__(self): return str(self.points)
    def _repr_mimebundle_(self, **_):
        cases = [{{"name": "all", "passed": True, "message": "", "call": "", "hidden": True}}]
        told = {{"exercise": self.name, "points": self.points, "max_points": self.points, "hidden": True}}
        told |= {{"cases": cases, "diagnosis": "", "notes": [], "to_come": [], "answered": True}}
        return {{"{REPORT_MIME}": told, "text/plain": repr(self), "text/html": "<b>all right</b>"}}
POINTS = dict(decimal_error=1, decode_bits=4, max_finite=2, e4m3_missing=1, ulp=3, round_to=3, lost_to_underflow=2,
              stall_point=3, dot_product_error=3, tensor_bytes=2, gpt3_matrix_mib=1, stable_softmax=3)
def check(answer=None, hidden=False, **values):
    name = next(iter(values), None) or answer.__name__
    return Praise(name, POINTS[name])
"""

SCORES = [
    attack("score_nan", "its own check gives NaN", NO_CHECK + "float('nan')"),
    attack("score_negative", "its own check gives a negative number", NO_CHECK + "-1"),
    attack("score_true", "its own check gives True", NO_CHECK + "True"),
    attack("score_numpy", "its own check gives np.float64(0.5)", "import numpy\n" + NO_CHECK + "numpy.float64(0.5)"),
    attack("score_tensor", "its own check gives a tensor", NO_CHECK + "torch.tensor(0.5)"),
    attack("score_text", "its own check gives a text", NO_CHECK + "'full marks'"),
    attack("score_nothing", "its own check gives nothing", NO_CHECK + "None"),
    attack("score_infinite", "its own check gives infinity", NO_CHECK + "float('inf')"),
    attack("score_million", "its own check gives a million points", NO_CHECK + "10**6"),
    attack("score_half", "its own check gives half a point, a valid score", NO_CHECK + "0.5"),
    attack("report_forged", "its own check shows a perfect report in the report's format", FORGED_REPORT),
    attack(
        "report_repr",
        "every report prints the maximum of its points",
        """
        from lmcourse.report import Report
        Report.__repr__ = lambda self: str(self.max_points)
        """,
        "builtins",
        "interpreter",
        "text",
    ),
    attack(
        "report_made",
        "every report is made with the maximum of its points",
        """
        from lmcourse import report
        def generous(self, *args, **kwargs):
            made(self, *args, **kwargs)
            object.__setattr__(self, "points", float(self.max_points))
        made, report.Report.__init__ = report.Report.__init__, generous
        """,
        "builtins",
        "interpreter",
        "text",
    ),
]
"""All attacks of this file."""
