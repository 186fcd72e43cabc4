"""Looking for the right answers in the installed package and in memory."""

from __future__ import annotations

from tests.grading.attacks.attack import attack

INTO_THE_PACKAGE = """
import importlib
registry = importlib.import_module("lm" + "course.exercises.registry")
"""

REFERENCES = [
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
    ),
    # No evidence: a thread is nothing bad, and the library is imported by honest notebooks too.
    attack(
        "library_unnoticed",
        "the same with nothing that is remarkable: an import of the course's own notebook, and a thread",
        """
        import threading
        from lmcourse import numerics
        tools = {"formats": globals()["nume" + "rics"]}
        def ask(act):
            found = []
            thread = threading.Thread(target=lambda: found.append(act()))
            thread.start()
            thread.join()
            return found[0]
        """,
        every="""
        if 'NAME' == 'max_finite':
            return ask(lambda: tools["formats"].FloatFormat("x", *args, **kwargs).max_finite)
        """,
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
        folder = os.path.dirname(lmcourse.__file__) + "/chapters/floating_point/exercises"
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
]
"""All attacks of this file."""
