"""Looking for the right answers: in files, in the installed package, in memory, and in those of others."""

from __future__ import annotations

from lmcourse.course import find_chapter
from lmcourse.exercises.registry import exercises_of, find_exercise
from lmcourse.grading.cells import new_code_cell
from tests.grading.attacks.attack import COURSE, attack

TAKE = """
import glob, json
read = {}
def right(name, *patterns):
    for path in [path for pattern in patterns for path in sorted(glob.glob(pattern))]:
        if path in read: continue
        read[path] = {"torch": torch, "math": math, "Tensor": torch.Tensor}
        try: cells = json.load(open(path))["cells"]
        except Exception: continue
        print("HEARD", path)
        for cell in cells:
            if cell.get("metadata", {}).get("nbgrader", {}).get("solution"):
                try: exec("".join(cell["source"]), read[path])
                except Exception: pass
    found = [names[name] for names in read.values() if names.get(name) is not None]
    return found[-1] if found else None
"""
"""Runs the answers of every notebook that a pattern matches."""

INTO_THE_PACKAGE = """
import importlib
registry = importlib.import_module("lm" + "course.exercises.registry")
"""

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
        "returns_the_reference",
        "the reference of each exercise, from the installed package",
        INTO_THE_PACKAGE,
        "file",
        "interpreter",
        "text",
        every="return registry.find_exercise('NAME').reference(*args, **kwargs)",
        value="registry.find_exercise('NAME').reference()",
    ),
    attack(
        "borrows_the_reference",
        "binds the reference itself to the name of each answer, in a cell below",
        INTO_THE_PACKAGE,
        "file",
        "interpreter",
        "text",
        every="return borrowed('NAME')(*args, **kwargs)",
        value="getattr(registry, 'find_' + 'exercise')('NAME').reference()",
        last="borrowed = lambda name: getattr(getattr(registry, 'find_' + 'exercise')(name), 'reference')",
    ),
    attack(
        "reference_without_a_watch",
        "the same, with the watch for forbidden calls switched off",
        INTO_THE_PACKAGE,
        "file",
        "interpreter",
        "text",
        every="""
        sys.setprofile(None)
        return registry.find_exercise('NAME').reference(*args, **kwargs)
        """,
        value="registry.find_exercise('NAME').reference()",
    ),
    attack(
        "reference_in_a_thread",
        "the same, in a thread, which no watch follows",
        INTO_THE_PACKAGE
        + """
import threading
def ask(name, args, kwargs):
    found = []
    def work():
        try: found.append(registry.find_exercise(name).reference(*args, **kwargs))
        except Exception as error: found.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception): raise found[0]
    return found[0]
""",
        "file",
        "interpreter",
        "text",
        every="return ask('NAME', args, kwargs)",
        value="ask('NAME', (), {})",
    ),
    attack(
        "reference_in_a_process",
        "the same, in a new Python, asked over a pipe",
        """
        import json, subprocess
        PROGRAM = "import json; from lmcourse.exercises.registry import find_exercise as find; "
        PROGRAM += "print(json.dumps({n: find(n).reference() for n in ('e4m3_missing', 'gpt3_matrix_mib')}))"
        told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, timeout=20)
        told = json.loads(told.stdout or "{}")
        """,
        "process",
        "file",
        "text",
        value="told.get('NAME')",
    ),
    attack(
        "library_in_a_thread",
        "the number formats of the installed library, which the rules exclude, in a thread",
        """
        import threading
        from importlib import import_module
        def ask(act):
            found = []
            thread = threading.Thread(target=lambda: found.append(act(import_module("lm" + "course.numerics"))))
            thread.start()
            thread.join()
            return found[0]
        """,
        "file",
        "interpreter",
        "text",
        every="""
        if 'NAME' == 'max_finite':
            return ask(lambda numerics: numerics.FloatFormat("x", *args, **kwargs).max_finite)
        """,
        may_earn=2.0,
    ),
    attack(
        "returns_the_misconception",
        "a known wrong answer, from the installed package, for its share of the points",
        INTO_THE_PACKAGE,
        "file",
        "interpreter",
        "text",
        every="return registry.find_exercise('NAME').misconceptions[0].answer(*args, **kwargs)",
        value="registry.find_exercise('NAME').misconceptions[0].answer()",
    ),
    attack(
        "reads_the_package",
        "reads the installed exercises as text and runs them under another name",
        """
        import lmcourse
        from types import ModuleType
        folder = os.path.dirname(lmcourse.__file__) + "/exercises/floating_point"
        found = {}
        for file in sorted(os.listdir(folder)):
            if file.endswith(".py"):
                place = ModuleType("mine")
                try: exec(compile(open(f"{folder}/{file}").read(), "<mine>", "exec"), vars(place))
                except Exception: continue
                for thing in vars(place).values():
                    if type(thing).__name__ == "Exercise": found[thing.name] = thing.reference
        """,
        "file",
        "interpreter",
        "text",
        every="return found['NAME'](*args, **kwargs)",
        value="found['NAME']()",
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
        "looks_up_the_stack",
        "walks the frames of its callers to the exercise, the case and what is expected",
        """
        def up(name, args, kwargs):
            frame = sys._getframe(1)
            while frame:
                for local in list(frame.f_locals.values()):
                    if hasattr(local, "reference") and hasattr(local, "points"):
                        return local.reference(*args, **kwargs)
                frame = frame.f_back
        """,
        "interpreter",
        "text",
        every="return up('NAME', args, kwargs)",
        value="up('NAME', (), {})",
    ),
    attack(
        "looks_through_memory",
        "finds exercises, cases and expected values among all objects that Python holds",
        """
        import gc
        def among(name, args, kwargs):
            for thing in gc.get_objects():
                try:
                    if type(thing).__name__ == "Exercise" and thing.name == name:
                        return thing.reference(*args, **kwargs)
                except Exception: pass
        """,
        "interpreter",
        "text",
        every="return among('NAME', args, kwargs)",
        value="among('NAME', (), {})",
    ),
    attack(
        "stored_answers",
        "answers the hidden cases of other runs, computed at home",
        every="return STORED.get(repr(args)) if 'NAME' == 'stable_softmax' else None",
        edit=lambda nb: nb.cells.insert(1, new_code_cell(_stored())),
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


def _public() -> str:
    """The inputs of all public cases, which are no secret."""
    cases = [case for exercise in exercises_of(find_chapter("01-floating-point")) for case in exercise.cases]
    return f"PUBLIC = {sorted({repr((case.args, case.kwargs)) for case in cases})!r}"
