"""Looking for the right answers: in files, in the installed package, in memory, and in those of others."""

from __future__ import annotations

from lmcourse.course import find_chapter
from lmcourse.exercises.outcome import run_case
from lmcourse.exercises.registry import exercises_of, find_exercise
from lmcourse.exercises.values import Plain
from lmcourse.grading.cells import new_code_cell
from tests.grading.attacks.attack import COURSE, attack

TAKE = """
import glob, json
from torch import Tensor
read = {}
def right(name, *patterns):
    for path in [path for pattern in patterns for path in sorted(glob.glob(pattern))]:
        if path in read: continue
        read[path] = dict(globals())
        try: cells = json.load(open(path))["cells"]
        except Exception: continue
        print("HEARD", path)
        for cell in cells:
            if cell.get("metadata", {}).get("nbgrader", {}).get("solution"):
                try: exec("".join(cell["source"]), read[path])
                except Exception: pass
    found = [names[name] for names in read.values() if names.get(name) is not globals().get(name)]
    return found[0] if found else None
"""
"""Runs the answers of every notebook that a pattern matches."""

ANSWERS = [
    attack(
        "executes_solutions",
        "reads ../../../solutions and runs the answers",
        TAKE,
        "file",
        "text",
        every="return right('NAME', '../../../solutions/*/*.ipynb')(*args, **kwargs)",
        value="right('NAME', '../../../solutions/*/*.ipynb')",
    ),
    attack(
        "executes_the_course",
        "looks for answers wherever the course may lie",
        TAKE,
        "file",
        "text",
        every=f"return right('NAME', '{COURSE}/solutions/*/*.ipynb', '{COURSE}/*/*/*.ipynb')(*args, **kwargs)",
        value=f"right('NAME', '{COURSE}/solutions/*/*.ipynb', '{COURSE}/*/*/*.ipynb')",
    ),
    attack(
        "copies_a_neighbour",
        "reads the folders of other students and runs their answers",
        TAKE,
        "file",
        "text",
        every="return right('NAME', '../../*/*/*.ipynb', '../../../submitted/*/*/*.ipynb')(*args, **kwargs)",
        value="right('NAME', '../../*/*/*.ipynb', '../../../submitted/*/*/*.ipynb')",
    ),
    attack(
        "seed_in_the_environment",
        "reads the seed of the hidden cases, and answers with the references",
        """
        from lmcourse.exercises.registry import find_exercise
        found = {name: value for name, value in os.environ.items() if "SEED" in name or "SECRET" in name}
        print("HEARD" if found else "", found)
        seed = int(os.environ.get("LMCOURSE_SEED") or 0)
        asked = find_exercise("stable_softmax")
        known = {repr(case.args): asked.reference(*case.args) for case in asked.hidden(seed)}
        """,
        "file",
        "interpreter",
        "text",
        every="return known.get(repr(args)) if 'NAME' == 'stable_softmax' else None",
    ),
    attack(
        "stored_answers",
        "answers the hidden cases of other runs, computed at home",
        every="return STORED.get(repr(args)) if 'NAME' == 'stable_softmax' else None",
        edit=lambda nb: nb.cells.insert(1, new_code_cell(_stored())),
        gain=0.5,  # half of the hidden cases of `stable_softmax` are the same for every seed
    ),
    attack(
        "public_by_heart",
        "knows the results of all public cases, and says 1.0 to all others",
        every="return SHOWN['NAME'].get(repr((args, kwargs)), 1.0)",
        edit=lambda nb: nb.cells.insert(1, new_code_cell(_shown())),
    ),
    attack(
        "tells_what_it_was_asked",
        "says every hidden input it gets, to read them in its feedback",
        every="""
        import warnings
        known = repr((args, kwargs)) in PUBLIC
        print("" if known else "HEARD", args, kwargs)
        warnings.warn("" if known else f"HEARD {args}")
        raise ValueError("" if known else f"HEARD {args} {kwargs}")
        """,
        edit=lambda nb: nb.cells.insert(1, new_code_cell(_public())),
    ),
]
"""All attacks of this file."""


def _stored() -> str:
    """A table of the hidden cases of twenty seeds of one exercise."""
    exercise = find_exercise("stable_softmax")
    cases = [case for seed in range(20) for case in exercise.hidden(seed)]
    known = {repr(case.args): exercise.reference(*case.args).tolist() for case in cases}
    lines = [f"    {asked!r}: {answer!r}," for asked, answer in known.items()]
    return "\n".join(["STORED = {", *lines, "}", "STORED = {k: torch.tensor(v) for k, v in STORED.items()}"])


def _shown() -> str:
    """A table of the results of all public cases, as far as Python's own words can say them, by exercise."""
    table: dict[str, dict[str, Plain]] = {}
    for exercise in exercises_of(find_chapter("01-floating-point")):
        known = table[exercise.name] = {}
        for case in exercise.cases:
            known[repr((case.args, case.kwargs))] = run_case(exercise.reference, case, name=exercise.name).value
    return f"from math import inf, nan\nimport torch\nfrom torch import tensor\nSHOWN = {table!r}"


def _public() -> str:
    """The inputs of all public cases, which are no secret."""
    cases = [case for exercise in exercises_of(find_chapter("01-floating-point")) for case in exercise.cases]
    return f"PUBLIC = {sorted({repr((case.args, case.kwargs)) for case in cases})!r}"
