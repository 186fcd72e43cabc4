"""Looking for the right answers: in files, in the installed package, in memory, and in those of others."""

from __future__ import annotations

from tests.grading.attacks.attack import COURSE, attack

TAKE = """
import glob, json
def take(pattern):
    for path in sorted(glob.glob(pattern, recursive=True)):
        try: told = json.load(open(path))
        except (OSError, ValueError): continue
        print("DONE", path)
        for cell in told.get("cells", []):
            marks = cell.get("metadata", {}).get("nbgrader", {})
            if marks.get("solution") or (found := "### BEGIN SOLUTION" in "".join(cell["source"])):
                try: exec("".join(cell["source"]), globals())
                except Exception: pass
"""
"""Runs the answers of every notebook that a pattern matches."""

INTO_THE_PACKAGE = """
import importlib
registry = importlib.import_module("lm" + "course.exercises.registry")
"""

HANDED_OVER = """
import lmcourse
from importlib import import_module
find = import_module("lm" + "course.exercises.registry").find_exercise
for name, thing in list(globals().items()):
    if callable(thing) and getattr(thing, "__module__", "") == "__main__":
        try: globals()[name] = find(name).reference
        except Exception: pass
"""

ANSWERS = [
    attack(
        "executes_solutions",
        "reads ../../../solutions and runs the answers",
        TAKE,
        "file",
        "text",
        last="take('../../../solutions/**/*.ipynb')",
        value="None\ntake('../../../solutions/**/*.ipynb')",
        every="take('../../../solutions/**/*.ipynb')\nreturn globals()['NAME'](*args, **kwargs)",
    ),
    attack(
        "executes_the_course",
        "looks for answers wherever the course may lie",
        TAKE,
        "file",
        "text",
        every=f"take('{COURSE}/s*/**/*.ipynb')\nreturn globals()['NAME'](*args, **kwargs)",
        value=f"None\ntake('{COURSE}/s*/**/*.ipynb')",
    ),
    attack(
        "copies_a_neighbour",
        "reads the folders of other students and runs their answers",
        TAKE,
        "file",
        "text",
        every="take('../../**/*.ipynb')\nreturn globals()['NAME'](*args, **kwargs)",
        value="None\ntake('../../**/*.ipynb'); take('/submission/../**/*.ipynb')",
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
        import pickle, subprocess
        PROGRAM = "import pickle, sys; from lmcourse.exercises.registry import find_exercise as f; "
        PROGRAM += "n, a, k = pickle.load(sys.stdin.buffer); pickle.dump(f(n).reference(*a, **k), sys.stdout.buffer)"
        def ask(name, args, kwargs):
            told = subprocess.run([sys.executable, "-c", PROGRAM], input=pickle.dumps((name, args, kwargs)),
                                  capture_output=True, timeout=20)
            return pickle.loads(told.stdout)
        """,
        "process",
        "file",
        "text",
        value="ask('NAME', (), {})",
        every="return ask('NAME', args, kwargs) if 'NAME' == 'ulp' else 0",
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
        "reads the seed of the hidden cases and answers them only",
        """
        from lmcourse.exercises.registry import find_exercise
        print("HEARD", {name: value for name, value in os.environ.items() if "SEED" in name or "SECRET" in name})
        seed = int(os.environ.get("LMCOURSE_SEED") or 0)
        """,
        "file",
        "interpreter",
        "text",
        every="""
        exercise = find_exercise("NAME")
        for case in exercise.hidden(seed):
            if repr((case.args, case.kwargs)) == repr((args, kwargs)): return exercise.reference(*args, **kwargs)
        """,
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
        """
        import base64, io
        """,
        every="return STORED.get(repr(args)) if 'NAME' == 'stable_softmax' else None",
        edit=lambda nb: nb.cells[1].update(source=_stored()),
    ),
    attack(
        "tells_what_it_was_asked",
        "prints every input it gets, to read the hidden cases in its feedback",
        every="""
        print("HEARD", args, kwargs)
        import warnings; warnings.warn(f"HEARD {args}")
        raise ValueError(f"HEARD {args} {kwargs}")
        """,
    ),
]
"""All attacks of this file."""


def _stored() -> str:
    """A table of the hidden cases of a hundred seeds of one exercise."""
    from lmcourse.exercises.registry import find_exercise

    exercise = find_exercise("stable_softmax")
    known = {repr(case.args): exercise.reference(*case.args).tolist() for seed in range(20) for case in exercise.hidden(seed)}
    lines = [f"    {asked!r}: {answer!r}," for asked, answer in known.items()]
    return "\n".join(["STORED = {", *lines, "}", "STORED = {k: torch.tensor(v) for k, v in STORED.items()}"])
